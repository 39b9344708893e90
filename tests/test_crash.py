"""Law 7 at every operation: whatever a disk does at any moment of a memory's life, what was acknowledged is there once and in order."""

import shutil
from datetime import timedelta, timezone

import crashes
import faults
import pytest
from effort import effort

from optchat.memory import Memory

FAULTS = {
    "full, with a part of it written": {"how": faults.no_space, "landing": 20},
    "an error though all of it landed": {"how": faults.disk_error, "landing": 10_000, "late": True},
    "an error": {"how": faults.disk_error},
    "errors until somebody sees to it": {"how": faults.no_space, "landing": 20, "for_ever": True},
}

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
        if isinstance(disk, faults.Plug):
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
        go_on(life, teller, left, CLOCKS[step % len(CLOCKS)])
        shutil.rmtree(root, ignore_errors=True)


@EVERY_LIFE
def test_an_error_at_any_operation_is_got_over_by_those_who_live_on(life, tmp_path):
    for step in range(operations(life, tmp_path)):
        for name in effort([list(FAULTS)[step % len(FAULTS)]], FAULTS):
            root = tmp_path / f"at{step}{name}"
            teller, disk = lived(life, root, at=step, **FAULTS[name])
            disk.heal()
            teller.close()
            assert all(one.sure for one in teller.said), (step, name)
            go_on("", teller, root)


@EVERY_LIFE
def test_a_power_cut_at_any_operation_costs_nothing_that_was_acknowledged(life, tmp_path):
    for step in range(operations(life, tmp_path)):
        root = tmp_path / f"at{step}"
        teller, plug = lived(life, root, at=step, how=faults.Crash, landing=10_000, layer=faults.Plug)
        for names_landed in effort([step % 2 == 0], [False, True]):
            left = root.with_name(f"left{step}{names_landed}")
            plug.pull(root, left, names_landed=names_landed)
            if step % 3 == 0:
                for path in left.glob("*.sqlite*"):
                    path.unlink()
            go_on(life, teller, left)
        teller.close()
        plug.let_go()


@pytest.mark.parametrize("life", ["records", "takes in"])
def test_what_is_acknowledged_after_another_was_killed_at_any_operation_outlasts_a_power_cut(life, tmp_path):
    """The one that was killed may have made a file and not lived to see to it that its name stays."""
    for step in range(operations(life, tmp_path)):
        root = tmp_path / f"at{step}"
        teller, plug = lived(life, root, at=step, how=faults.Crash, landing=10_000, layer=faults.Plug)
        other = teller.again(root)
        plug.heal()
        with faults.disk(layer=lambda same=plug: same), Memory.open(root, crashes.SMALL, compact=False, clock=other.clock) as memory:
            other.record(memory, 1)
            plug.pull(root, root.with_name(f"left{step}"))
        go_on(life, other, root.with_name(f"left{step}"))
        teller.close()
        plug.let_go()
