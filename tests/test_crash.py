"""Law 7 at every operation.

Whatever a disk does at any moment of a memory's life, what was acknowledged is there once and in
order.
"""

import os
import shutil
import stat
from datetime import timedelta, timezone
from functools import partial
from pathlib import Path

import crashes
import faults
import pytest
from children import children
from effort import effort
from soundness import assert_sound

from optchat.base.errors import OptchatError, StoreError
from optchat.base.record import Entry
from optchat.log import files
from optchat.log.session_notes import NoteLog
from optchat.log.store import Store
from optchat.memory import Memory

pytestmark = pytest.mark.timeout(effort(120, 3_600))

FAULTS = {
    "full, with a part of it written": {"how": faults.no_space, "landing": 20},
    "an error though all of it landed": {"how": faults.disk_error, "landing": 10_000, "late": True},
    "an error": {"how": faults.disk_error},
    "errors until somebody sees to it": {"how": faults.no_space, "landing": 20, "for_ever": True},
    "the same though all of it landed": {
        "how": faults.disk_error,
        "landing": 10_000,
        "for_ever": True,
    },
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
SOME_LIVES = pytest.mark.parametrize(
    "life", effort(["records", "takes in", "builds", "converses"], LIVES)
)
POWER_LIVES = pytest.mark.parametrize("life", effort(["records", "takes in", "converses"], LIVES))


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
    """Those of a life without a fault."""
    teller, disk = lived(life, tmp_path / "count")
    teller.close()
    with Memory.open(
        tmp_path / "count", crashes.SMALL, compact=False, clock=teller.clock
    ) as memory:
        crashes.assert_whole(memory, teller.said)
    return [operation for operation, _ in disk.operations]


CLOCKS = (
    lambda now: now,
    lambda now: now - timedelta(hours=3),
    lambda now: now.astimezone(timezone(timedelta(hours=-9))),
    lambda now: now + timedelta(days=2),
)


def go_on(life, teller, root, clock=CLOCKS[0]):
    """A new process after a crash, perhaps by another clock.

    It goes on with what is left, and all must be well.
    """
    other = teller.again(root)
    other.clock.now = clock(other.clock.now)
    if life == "converses":
        crashes.converses(other)
    with Memory.open(root, crashes.SMALL, compact=False, clock=other.clock) as memory:
        memory.notes.commit("", [], [])  # whoever next writes brings in what was kept aside
        crashes.assert_whole(memory, other.said)
        if life == "takes in":
            assert [draft.token for draft in memory.capture_store().news("d", None).drafts] == [
                "begun"
            ]


def crash_at_any(life, tmp_path):
    for step, operation in enumerate(operations(life, tmp_path)):
        for landing in (25, 0, 10_000) if operation == "write" else (0,):
            root = tmp_path / f"at{step}-{landing}"
            teller, _ = lived(life, root, at=step, how=faults.Crash, landing=landing)
            # What has half a line as its end matters where it is appended to: on the same day.
            for turn in (0, step) if landing == 25 else (step,):
                left = root.with_name(f"left{step}-{landing}-{turn}")
                shutil.copytree(root, left) if root.exists() else None
                go_on(life, teller, left, CLOCKS[turn % len(CLOCKS)])
            teller.close()
            shutil.rmtree(root, ignore_errors=True)


def error_at_any(life, tmp_path):
    for step in range(len(operations(life, tmp_path))):
        for name in effort([list(FAULTS)[step % len(FAULTS)]], FAULTS):
            root = tmp_path / f"at{step}{name}"
            teller, disk = lived(life, root, at=step, **FAULTS[name])
            disk.heal()
            teller.close()
            assert all(one.sure for one in teller.said), (step, name)
            go_on("", teller, root)


LEAVES_MORE = {False: ("fsync", "commit"), True: ("open", "mkdir", "unlink", "replace", "commit")}
"""After which operations there is more, or less, on a disk that loses power than before.

If names land only when synced, or at once.
"""


def power_cut_at_any(life, tmp_path, layer=faults.Plug):
    every = ["commit", *operations(life, tmp_path)]
    for step in range(len(every) - 1):
        landed = [
            names_landed for names_landed, after in LEAVES_MORE.items() if every[step] in after
        ]
        if not landed:
            continue
        root = tmp_path / f"at{step}"
        teller, plug = lived(life, root, at=step, how=faults.Crash, landing=10_000, layer=layer)
        for names_landed in landed:
            left = root.with_name(f"left{step}{names_landed}")
            plug.pull(root, left, names_landed=names_landed)
            if step % 3 == 0:
                for path in left.glob("*.sqlite*"):
                    path.unlink()
            go_on(life, teller, left)
        teller.close()
        plug.let_go()


def killed_then_power_cut(life, tmp_path):
    for step in range(len(operations(life, tmp_path))):
        root = tmp_path / f"at{step}"
        teller, plug = lived(
            life, root, at=step, how=faults.Crash, landing=10_000, layer=faults.Plug
        )
        other = teller.again(root)
        plug.heal()
        with (
            faults.disk(layer=lambda same=plug: same),
            Memory.open(root, crashes.SMALL, compact=False, clock=other.clock) as memory,
        ):
            other.record(memory, 1)
            plug.pull(root, root.with_name(f"left{step}"))
        go_on(life, other, root.with_name(f"left{step}"))
        teller.close()
        plug.let_go()


@EVERY_LIFE
def test_a_crash_at_any_operation_costs_nothing_that_was_acknowledged(life, tmp_path):
    crash_at_any(life, tmp_path)


@SOME_LIVES
def test_an_error_at_any_operation_is_got_over_by_those_who_live_on(life, tmp_path):
    error_at_any(life, tmp_path)


@POWER_LIVES
def test_a_power_cut_at_any_operation_costs_nothing_that_was_acknowledged(life, tmp_path):
    power_cut_at_any(life, tmp_path)


@pytest.mark.parametrize("life", ["records", "takes in"])
def test_what_is_said_after_another_was_killed_outlasts_a_power_cut(life, tmp_path):
    """The one that was killed may have made a file and not lived to see to it that its name
    stays.
    """
    killed_then_power_cut(life, tmp_path)


EXITS = """
sys.path.insert(0, sys.argv[2])
import crashes, faults
root = Path(sys.argv[1])

class Loud(crashes.Teller):
    def sure(self, *texts):
        super().sure(*texts)
        with open(f"{self.root}.said", "a") as file:
            print(*texts, sep="\\n", file=file)

def live(step):
    with faults.disk(at=step, how=lambda: os._exit(9), landing=(0, 25, 10_000)[step % 3], commits=True) as disk:
        crashes.records(Loud(root / f"exit{step}"))
    os._exit(0)

step = 0
while True:
    child = os.fork()
    if child == 0:
        try:
            live(step)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    say(step, status)
    if status != 9:
        break
    step += 1
"""


def test_a_process_that_really_ends_costs_nothing_acknowledged(tmp_path):
    with children() as start:
        ended = [
            tuple(map(int, line.split()))
            for line in start(EXITS, tmp_path, Path(__file__).parent).rest(100)
        ]
    assert [status for _, status in ended] == [9] * (len(ended) - 1) + [0]
    assert len(ended) > 20
    for step, _ in ended:
        root = tmp_path / f"exit{step}"
        said = (
            Path(f"{root}.said").read_text().splitlines() if Path(f"{root}.said").exists() else []
        )
        with Memory.open(root, crashes.SMALL, compact=False) as memory:
            found = [message.text for message in memory.store.messages(0, memory.store.total())]
            assert found[: len(said)] == said
            assert len(found) <= len(said) + 3
            assert memory.record([Entry(kind="note", text="last")]) == [len(found)]
            assert memory.settle(20)
            assert_sound(memory)


def test_a_line_that_is_cut_twice_takes_no_number(tmp_path):
    """Once by a crash, and again by a disk that refused the next line and then to be cut back."""
    teller = crashes.Teller(tmp_path / "memory")
    memory = teller.open()
    teller.record(memory, 2)
    (day,) = (teller.root / "main").iterdir()
    with day.open("ab") as file:
        file.write(b'{"i":2,"kind":"us')
    with faults.disk(at=1, for_ever=True, landing=20), pytest.raises(StoreError):
        memory.record([Entry(kind="user", text="given up")])
    teller.record(memory, 2)
    teller.close()
    for path in teller.root.glob("index.sqlite*"):
        path.unlink()
    go_on("", teller, teller.root)


def test_a_line_that_is_cut_twice_is_no_damage(tmp_path):
    """Nothing that was acknowledged stands after it to show that it was not."""
    with Memory.open(tmp_path / "memory", crashes.SMALL, compact=False) as memory:
        memory.record([Entry(kind="user", text="said")])
        (day,) = (memory.root / "main").iterdir()
        with day.open("ab") as file:
            file.write(b'{"i":1,"kind":"us' + files.TORN + b'{"i":1,"ki')
        assert memory.store.total() == 1
        assert_sound(memory)


# -- tests of the tests: with a safeguard taken out they fail


class Forgetful(faults.Plug):
    """A disk under code that does not sync what it writes."""

    def fsync(self, file):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            super().fsync(file)


def take_out_nothing(_patch):
    pass


def take_out_the_repair_of_torn_lines(patch):
    patch.setattr(files, "_last_byte", lambda _file, _size: b"\n")


def take_out_the_cutting_back(patch):
    patch.setattr(files, "_cut_back", lambda _file, _size: None)
    patch.setattr(Store, "_landed", lambda _self, _entries: [])


def take_out_the_second_look_at_what_failed(patch):
    patch.setattr(Store, "_landed", lambda _self, _entries: [])


def take_out_the_sync_of_names(patch):
    patch.setattr(files, "_sync_dir", lambda _path: None)


def take_out_the_order_of_notes(patch):
    def early(self, notes, real=NoteLog._append):
        for path in self._log.directory.glob("pending-*.jsonl"):
            path.unlink()
        real(self, notes)

    patch.setattr(NoteLog, "_append", early)


SAFEGUARDS = [
    (crash_at_any, "records", take_out_the_repair_of_torn_lines),
    (error_at_any, "records", take_out_the_cutting_back),
    (error_at_any, "records", take_out_the_second_look_at_what_failed),
    (power_cut_at_any, "records", take_out_the_sync_of_names),
    (partial(power_cut_at_any, layer=Forgetful), "records", take_out_nothing),
    (crash_at_any, "takes in", take_out_the_order_of_notes),
]


@pytest.mark.parametrize(
    ("strike", "life", "take_out"),
    SAFEGUARDS,
    ids=[f"{taken.__name__}" for *_, taken in SAFEGUARDS],
)
def test_without_a_safeguard_the_same_strikes_are_seen_to_cost_something(
    strike, life, take_out, tmp_path, monkeypatch
):
    take_out(monkeypatch)
    with pytest.raises((AssertionError, OptchatError)):
        strike(life, tmp_path)
