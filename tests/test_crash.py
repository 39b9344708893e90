"""Law 7 at every operation: whatever a disk does at any moment of a memory's life, what was acknowledged is there once and in order."""

import shutil
from datetime import timedelta, timezone

import crashes
import faults
import pytest

from optchat.memory import Memory

LIVES = {
    "records": (crashes.nothing, crashes.records),
    "takes in": (crashes.left_by_others, crashes.takes_in),
    "builds": (crashes.nothing, crashes.builds),
    "makes anew what is gone": (crashes.derived_files_gone, crashes.makes_anew),
    "makes anew what is damaged": (crashes.derived_files_damaged, crashes.makes_anew),
    "converses": (crashes.nothing, crashes.converses),
}
EVERY_LIFE = pytest.mark.parametrize("life", LIVES)


def lived(life, root, *, layer=faults.Disk, **fault):
    """Live a life with a fault: its teller, still holding everything open, and its disk."""
    before, live = LIVES[life]
    first = crashes.Teller(root)
    before(first)
    teller = first.again(root)
    teller.host = first.host
    with faults.disk(commits=True, layer=layer, **fault) as disk:
        if layer is faults.Plug:
            disk.watch(root)
        teller.disk = disk if fault.get("how") is not faults.Crash else None
        try:
            live(teller)
        except faults.Crash:
            assert fault["how"] is faults.Crash
    return teller, disk


def operations(life, tmp_path):
    """How many there are in a life without a fault."""
    teller, disk = lived(life, tmp_path / "count")
    teller.close()
    with Memory.open(tmp_path / "count", crashes.SMALL, compact=False, clock=teller.clock) as memory:
        crashes.assert_whole(memory, teller.said)
    return len(disk.operations)


CLOCKS = (lambda now: now, lambda now: now - timedelta(hours=3), lambda now: now.astimezone(timezone(timedelta(hours=-9))), lambda now: now + timedelta(days=2))


def go_on(life, teller, root, clock=CLOCKS[0]):
    """A new process after a crash, perhaps by another clock: it goes on with what is left, and all must be well."""
    other = teller.again(root)
    other.clock.now = clock(other.clock.now)
    if life == "converses":
        crashes.converses(other)
    with Memory.open(root, crashes.SMALL, compact=False, clock=other.clock) as memory:
        memory._notes.commit("", [], [])  # whoever next writes brings in what was kept aside
        crashes.assert_whole(memory, other.said)
        if life == "takes in":
            assert [draft.token for draft in memory.capture_store().news("d", None).drafts] == ["begun"]


@EVERY_LIFE
def test_a_crash_at_any_operation_costs_nothing_that_was_acknowledged(life, tmp_path):
    for step in range(operations(life, tmp_path)):
        root = tmp_path / f"at{step}"
        teller, _ = lived(life, root, at=step, how=faults.Crash, landing=(0, 25, 10_000)[step % 3])
        left = root.with_name(f"left{step}")
        shutil.copytree(root, left) if root.exists() else None
        teller.close()
        go_on(life, teller, left, CLOCKS[step % 4])
        shutil.rmtree(root, ignore_errors=True)
