"""Several real processes on one memory.

All that was acknowledged is there once, in each one's order, whoever dies or forks.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import threading
import time
from itertools import pairwise

import pytest
from children import children, unprivileged
from effort import effort
from soundness import assert_sound

from optchat.base.errors import LockTimeoutError, StoreError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.capture.capture import Capture
from optchat.log.store import Store
from optchat.memory import Memory

pytestmark = pytest.mark.timeout(effort(120, 3_600))

SMALL = Settings(view_budget_chars=4_000)

WRITER = """
root, name, turns, compact = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "True"
memory = Memory.open(root, Settings(view_budget_chars=4000), compact=compact)
say("open")
wait_for("go")
for turn in range(turns):
    entries = [Entry(kind="user" if k % 2 else "talk", text=f"{name} {turn} {k}" + " words" * (turn % 40), session=name) for k in range(1 + turn % 5)]
    ids = memory.record(entries, timeout_s=30)
    assert ids == list(range(ids[0], ids[0] + len(entries)))
    say(turn, *ids)
    if turn % 10 == 0:
        memory.view()
if compact:
    assert memory.settle(60)
memory.close()
"""


def acknowledged(lines):
    """ids by turn out of what a writer said."""
    return {int(line.split()[0]): [int(word) for word in line.split()[1:]] for line in lines}


def assert_all_there(memory, said):
    """``said``: what each writer had acknowledged.

    Every one of it is in the log once, with its id, and each writer's in its order.
    """
    log = [
        message.text.split(" words")[0]
        for message in memory.store.messages(0, memory.store.total())
    ]
    assert len(log) == len(set(log))
    for name, turns in said.items():
        for turn, ids in turns.items():
            assert [log[id_] for id_ in ids] == [f"{name} {turn} {k}" for k in range(len(ids))]
        own = [tuple(map(int, text.split()[1:])) for text in log if text.split()[0] == name]
        assert own == sorted(own)


def hear_all(child):
    lines = []
    with contextlib.suppress(AssertionError):
        while True:
            lines.append(child.hear(60))
    return lines


def test_four_processes_append_while_one_compacts(opened, root):
    with children() as start:
        writers = {name: start(WRITER, root, name, 60, name == "a") for name in "abcd"}
        for child in writers.values():
            assert child.hear() == "open"
        for child in writers.values():
            child.tell("go")
        said = {name: acknowledged(child.rest(100)) for name, child in writers.items()}
    memory = opened(settings=SMALL)
    assert all(len(turns) == 60 for turns in said.values())
    assert memory.store.total() == sum(
        len(ids) for turns in said.values() for ids in turns.values()
    )
    assert_all_there(memory, said)
    assert memory.settle(60)
    assert_sound(memory)
    assert opened(settings=SMALL).view() == memory.view()


def test_views_of_processes_that_stay_open_are_equal_once_all_is_built(opened, root):
    code = """
    memory = Memory.open(sys.argv[1], Settings(view_budget_chars=4000))
    for turn in range(40):
        memory.record([Entry(kind="talk", text=f"{os.getpid()} {turn} {k} " + "more " * (turn % 30)) for k in range(4)])
    say("done")
    wait_for("show")
    assert memory.settle(60)
    say(memory.view().encode().hex())
    """
    with children() as start:
        started = [start(code, root) for _ in range(3)]
        for child in started:
            assert child.hear() == "done"
        memory = opened(settings=SMALL)
        assert memory.settle(60)
        mine = memory.view()
        for child in started:
            child.tell("show")
        assert [bytes.fromhex(child.hear()).decode() for child in started] == [mine] * 3
        for child in started:
            child.rest()


@pytest.mark.parametrize(
    "moment_s",
    [pytest.param(0.02, marks=pytest.mark.slow), 0.1, pytest.param(0.3, marks=pytest.mark.slow)],
)
def test_a_process_killed_in_the_middle_costs_nothing_that_was_acknowledged(opened, root, moment_s):
    with children() as start:
        writers = {name: start(WRITER, root, name, 80, True) for name in "ab"}
        victim = start(WRITER, root, "victim", 100_000, True)
        for child in (*writers.values(), victim):
            assert child.hear() == "open"
        for child in (*writers.values(), victim):
            child.tell("go")
        time.sleep(moment_s)
        victim.kill()
        said = {name: acknowledged(child.rest(100)) for name, child in writers.items()}
        said["victim"] = acknowledged(hear_all(victim))
    memory = opened(settings=SMALL)
    assert_all_there(memory, said)
    extra = memory.store.total() - sum(
        len(ids) for turns in said.values() for ids in turns.values()
    )
    assert 0 <= extra <= 5  # the one batch that was not acknowledged
    assert memory.settle(60)
    assert_sound(memory)


NURSERY = """
memory_of = lambda: Memory.open(sys.argv[1], Settings(view_budget_chars=4000), compact=True)
while True:
    word = sys.stdin.readline().split()
    if not word:
        break
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        name, heard = word[0], open(word[1], "w")
        memory = memory_of()
        os.write(done, b".")
        for turn in range(10**6):
            ids = memory.record([Entry(kind="user", text=f"{name} {turn} {k}" + " words" * (turn % 40), session=name) for k in range(1 + turn % 5)])
            print(turn, *ids, file=heard, flush=True)
    os.read(ready, 1)
    os.close(ready), os.close(done)
    say(pid)
    os.waitpid(pid, 0)
    say("gone")
"""


def test_processes_killed_again_and_again_cost_nothing_that_was_acknowledged(
    opened, root, tmp_path
):
    """``kill -9`` in the middle of appends and of compaction, at another moment each time."""
    said = {}
    with children() as start:
        nursery = start(NURSERY, root)
        for round_ in range(effort(15, 200)):
            name, heard = f"v{round_}", tmp_path / f"heard{round_}"
            nursery.tell(f"{name} {heard}")
            victim = int(nursery.hear())
            time.sleep(0.003 * (round_ * 7 % 40))
            os.kill(victim, signal.SIGKILL)
            assert nursery.hear() == "gone"
            # What a killed process had begun to print was acknowledged; of the last line perhaps
            # only a part came out.
            said[name] = acknowledged(
                line for line in heard.read_text().splitlines(keepends=True) if line.endswith("\n")
            )
            if round_ % 5 == 0:
                with Memory.open(root, SMALL, compact=False) as memory:
                    assert_all_there(memory, said)
    memory = opened(settings=SMALL)
    assert_all_there(memory, said)
    assert memory.settle(60)
    assert_sound(memory)


TALKER = """
from optchat.compaction import work
root, name, turns, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), open(sys.argv[4], "a")
real = work.StoreWork.commit

def commit(self, *nodes, **options):
    began = time.monotonic()
    real(self, *nodes, **options)
    print(began, time.monotonic(), file=steps, flush=True)

work.StoreWork.commit = commit
memory = Memory.open(root, Settings(view_budget_chars=4000))
say("open")
wait_for("go")
for turn in range(turns):
    ids = memory.record([Entry(kind="user" if k % 2 else "talk", text=f"{name} {turn} {k}" + " words" * (turn % 40), session=name) for k in range(1 + turn % 5)], timeout_s=60)
    say(turn, *ids)
    if turn % 10 == 0:
        memory.view(), memory.recall("words", name), memory.search("words", 3)
say("done")
wait_for("settle")
assert memory.settle(100)
memory.view()  # whoever comes first merges; who meets the lock shows the view as it was
say("settled")
wait_for("show")
say(memory.view().encode().hex())
memory.close()
"""


@pytest.mark.slow
def test_eight_processes_talk_and_compact_while_others_are_killed(opened, root, tmp_path):
    turns, said, steps = effort(40, 250), {}, {}

    def talker(start, name, turns):
        steps[name] = tmp_path / f"steps-{name}"
        child = start(TALKER, root, name, turns, steps[name])
        assert child.hear() == "open"
        return child

    with children() as start:
        talkers = {name: talker(start, name, turns) for name in "abcdefgh"}
        victims = {f"v{k}": talker(start, f"v{k}", 10**6) for k in range(effort(2, 6))}
        for child in (*talkers.values(), *victims.values()):
            child.tell("go")
        for name, victim in victims.items():
            time.sleep(effort(0.4, 3))
            victim.kill()
            said[name] = acknowledged(hear_all(victim))
        for name, child in talkers.items():
            lines = list(iter(lambda child=child: child.hear(100), "done"))
            said[name] = acknowledged(lines)
            assert len(said[name]) == turns
        for child in talkers.values():
            child.tell("settle")
        assert {child.hear(100) for child in talkers.values()} == {"settled"}
        for child in talkers.values():
            child.tell("show")
        views = {child.hear(100) for child in talkers.values()}
        for child in talkers.values():
            child.rest()
    memory = opened(settings=SMALL)
    assert_all_there(memory, said)
    assert memory.settle(60)
    assert views == {memory.view().encode().hex()}
    assert_sound(memory)
    assert_one_at_a_time(
        [
            [tuple(map(float, line.split())) for line in path.read_text().splitlines()]
            for path in steps.values()
        ]
    )


def assert_one_at_a_time(spans_of_each):
    """No two processes were at the same work at once."""
    spans = sorted(
        (began, ended, who) for who, spans in enumerate(spans_of_each) for began, ended in spans
    )
    assert len({who for *_, who in spans}) >= 1
    for (_, ended, who), (began, _, next_) in pairwise(spans):
        assert began >= ended or who == next_, "two compactors at once"


def test_threads_of_several_memories_talk_and_compact(opened, root):
    """Several agents in one process, with and without a memory object of their own."""
    memories = [opened(settings=SMALL, compact=True) for _ in range(3)]
    said, failures = {f"t{k}": {} for k in range(8)}, []

    def talk(number):
        memory, name = memories[number % 3], f"t{number}"
        try:
            for turn in range(effort(25, 250)):
                entries = [
                    Entry(
                        kind="user",
                        text=f"{name} {turn} {k}" + " words" * (turn % 40),
                        session=name,
                    )
                    for k in range(1 + turn % 5)
                ]
                said[name][turn] = memory.record(entries, timeout_s=60)
                if turn % 10 == number:
                    memory.view(), memory.recall("words", name), memory.search("words", 3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(memory.settle(60) for memory in memories)
    assert_all_there(memories[0], said)
    assert memories[0].store.total() == sum(
        len(ids) for turns in said.values() for ids in turns.values()
    )
    assert len({memory.view() for memory in memories}) == 1
    assert sum(memory.compactor.owner for memory in memories) == 1
    assert_sound(memories[1])


# -- locks that do not do what locks should


def turn_of(ask, answer):
    return [{"role": "user", "content": ask}, {"role": "assistant", "content": answer}]


@pytest.mark.slow
def test_a_lock_held_by_a_process_that_hangs_is_said_in_time_and_costs_nothing(opened, root):
    """Stopped in the middle of an append, it is neither dead nor at work.

    Its lock is waited for as long as in earnest.
    """
    memory = opened()
    memory.record([Entry(kind="user", text="before")])
    with children() as start:
        stuck = start(
            (
                "memory = Memory.open(sys.argv[1], compact=False)\nwith "
                "memory.store.locked():\n    say('held')\n    time.sleep(100)"
            ),
            root,
        )
        assert stuck.hear() == "held"
        os.kill(stuck.process.pid, signal.SIGSTOP)
        capture = Capture(memory.capture_store(), session="s1")
        began = time.monotonic()
        capture.turn_started("ask 1")
        assert time.monotonic() - began < 1  # a turn that begins waits for nobody
        refused = []

        def record():
            try:
                opened().record([Entry(kind="note", text="never")])
            except LockTimeoutError as error:
                refused.append(str(error))

        thread = threading.Thread(target=record)
        thread.start()
        capture.turn_ended(turn_of("ask 1", "answer 1"))
        thread.join()
        assert time.monotonic() - began < 5 + 4  # and the machine may be slow
        assert any(
            "another process has held it for 5 s" in text
            and "logged as soon as the lock is free" in text
            for text in memory.warnings
        )
        assert len(refused) == 1
        assert "end it" in refused[0]
        assert "before" in memory.view()
        stuck.kill()
    capture.turn_started("ask 2")
    capture.turn_ended(turn_of("ask 1", "answer 1") + turn_of("ask 2", "answer 2"))
    assert [entry.text for entry in memory.session_entries("s1")] == [
        "ask 1",
        "answer 1",
        "ask 2",
        "answer 2",
    ]
    assert_sound(memory)


def test_what_was_kept_aside_is_logged_when_its_process_leaves(opened, root, monkeypatch):
    memory, other = opened(), opened()
    monkeypatch.setattr("optchat.log.session_notes.LOCK_WAIT_S", 0.05)
    capture = Capture(memory.capture_store(), session="s1")
    with other.store.locked():
        capture.turn_started("ask 1")
        capture.turn_ended(turn_of("ask 1", "answer 1"))
    memory.close()
    assert [entry.text for entry in other.session_entries("s1")] == ["ask 1", "answer 1"]


def test_lock_files_of_dead_processes_mean_nothing(opened, root):
    with children() as start:
        victim = start(WRITER, root, "v", 100_000, True)
        assert victim.hear() == "open"
        victim.tell("go")
        said = [victim.hear() for _ in range(5)]
        victim.kill()
        said = acknowledged([*said, *hear_all(victim)])
    (root / "capture").mkdir(exist_ok=True)
    for name in ("write.lock", "compactor.lock", "capture/pending-1-0a0b0c0d.lock"):
        (root / name).write_bytes(b"4711\n")
    memory = opened(compact=True, settings=SMALL)
    began = time.monotonic()
    memory.record([Entry(kind="user", text="next 0 0")], timeout_s=2)
    assert memory.settle(60)
    assert memory.compactor.owner
    assert time.monotonic() - began < 30
    assert_all_there(memory, {"v": said})


def test_where_locks_do_nothing_others_lines_are_seen_all_the_same(opened, monkeypatch):
    """As on some network disks: who writes takes in what has come, by the size of the files."""
    monkeypatch.setattr(fcntl, "flock", lambda _file, _how: None)
    memories = [opened(), opened(), opened()]
    said = [f"turn {turn}" for turn in range(12)]
    for turn, text in enumerate(said):
        assert memories[turn % 3].record([Entry(kind="user", text=text, session="s")]) == [turn]
    for memory in memories:
        assert [entry.text for entry in memory.session_entries("s")] == said
    assert memories[0].settle(20)
    assert_sound(memories[1])


@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_disk_without_locks_is_said_to_be_one_and_not_to_be_busy(
    opened, root, monkeypatch, number
):
    memory = opened()
    memory.record([Entry(kind="user", text="before")])

    def no_lock(_file, how):
        if how != fcntl.LOCK_UN:
            raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", no_lock)
        capture = Capture(memory.capture_store(), session="s1")
        for refused in (
            lambda: memory.record([Entry(kind="user", text="never")]),
            lambda: capture.turn_ended(turn_of("ask", "answer")),
            lambda: Memory.open(root, SMALL, compact=False),
        ):
            began = time.monotonic()
            with pytest.raises(StoreError, match="cannot lock") as caught:
                refused()
            assert os.strerror(number) in str(caught.value)
            assert "local disk" in str(caught.value)
            assert not isinstance(caught.value, LockTimeoutError)
            assert time.monotonic() - began < 5
        assert "before" in memory.view()
    capture.turn_ended(turn_of("ask", "answer"))
    assert [entry.text for entry in memory.session_entries("s1")] == ["ask", "answer"]


def test_a_directory_that_becomes_read_only_is_named_and_goes_on_when_it_is_not():
    code = """
    from optchat.capture.capture import Capture
    root = Path(sys.argv[1])
    memory = Memory.open(root, compact=False)
    memory.record([Entry(kind="user", text=f"message {k}") for k in range(5)])
    capture = Capture(memory.capture_store(), session="s1")
    everything = [root, *root.rglob("*")]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    for act in (lambda: memory.record([Entry(kind="user", text="x")]), lambda: capture.turn_started("ask"), lambda: capture.turn_ended(TURN)):
        try:
            act()
            say("done")
        except OptchatError as error:
            say(error)
    say(len(memory.view()) > 100, "message 4" in memory.zoom(4))
    for path in everything:
        path.chmod(0o700 if path.is_dir() else 0o600)
    memory.record([Entry(kind="user", text="x")])
    capture.turn_ended(TURN)
    say(*[message.text for message in memory.store.messages(5, 99)])
    report = memory.check()
    say(report["damage"], report["disagreements"])
    """.replace("TURN", repr(turn_of("ask", "answer")))
    with unprivileged() as (start, directory):
        *refusals, shown, log, report = start(code, directory / "memory").rest()
    assert len(refusals) == 3
    for refusal in refusals:
        assert "cannot" in refusal
        assert "Give your user the right" in refusal
    assert (shown, log, report) == ("True True", "x ask answer", "[] []")


def test_the_room_of_notes_may_be_deleted_under_an_open_memory(opened, root):
    memory = opened()
    capture = Capture(memory.capture_store(), session="s1")
    capture.turn_started("ask 1")
    capture.turn_ended(turn_of("ask 1", "answer 1"))
    shutil.rmtree(root / "capture")
    capture.turn_started("ask 2")
    capture.turn_ended(turn_of("ask 1", "answer 1") + turn_of("ask 2", "answer 2"))
    shutil.rmtree(root / "capture")
    capture.shutdown()
    assert [entry.text for entry in memory.session_entries("s1")] == [
        "ask 1",
        "answer 1",
        "ask 2",
        "answer 2",
    ]


DERIVED = [
    ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"],
    pytest.param(["index.sqlite"], marks=pytest.mark.slow),
    pytest.param(["index.sqlite-wal", "index.sqlite-shm"], marks=pytest.mark.slow),
    pytest.param(["index.sqlite-wal"], marks=pytest.mark.slow),
    ["search.sqlite"],
    pytest.param(["view.json"], marks=pytest.mark.slow),
]


@pytest.mark.parametrize("names", DERIVED)
def test_derived_files_deleted_while_they_are_open_elsewhere_come_back(opened, root, names):
    memory = opened(settings=SMALL)
    with children() as start:
        writers = {name: start(WRITER, root, name, 60, name == "a") for name in "ab"}
        for child in writers.values():
            assert child.hear() == "open"
        for child in writers.values():
            child.tell("go")
        for _ in range(6):
            time.sleep(0.03)
            for name in names:
                (root / name).unlink(missing_ok=True)
            memory.record([Entry(kind="note", text=f"mine {_} 0", session="mine")])
            memory.view()
        said = {name: acknowledged(child.rest(100)) for name, child in writers.items()}
    assert_all_there(memory, said)
    assert memory.settle(60)
    fresh = opened(settings=SMALL)
    assert_all_there(fresh, said)
    assert fresh.settle(60)
    assert fresh.view() == memory.view()
    assert_sound(fresh)


@pytest.mark.slow
@pytest.mark.parametrize("filled", [False, True])
def test_many_processes_open_at_once_what_has_no_index_yet(opened, root, filled):
    if filled:
        memory = opened()
        memory.record([Entry(kind="user", text=f"m {k} 0", session="m") for k in range(2_000)])
        memory.close()
        (root / "index.sqlite").unlink()
    code = """
    wait_for("go")
    memory = Memory.open(sys.argv[1], compact=False)
    before = memory.store.read(lambda index: index.generation())
    say(*memory.record([Entry(kind="user", text=f"{os.getpid()} 0 0")]), before)
    """
    with children() as start:
        started = [start(code, root) for _ in range(6)]
        for child in started:
            child.tell("go")
        said = [list(map(int, child.rest()[0].split())) for child in started]
    assert len({generation for _, generation in said}) == 1  # made by the first, used by the others
    ids = sorted(id_ for id_, _ in said)
    first = 2_000 if filled else 0
    assert ids == list(range(first, first + 6))
    memory = opened()
    assert memory.store.total() == first + 6
    assert_sound(memory)


def test_an_index_made_by_another_is_not_made_once_more(opened, monkeypatch):
    """At the first start of several processes on a long log each would otherwise make it anew, one
    after the other.
    """
    with monkeypatch.context() as patch:
        patch.setattr(
            Store, "_follow_log", lambda _self: None
        )  # it is overtaken between opening the file and the lock
        late = opened()
    first = opened()
    first.record([Entry(kind="user", text="y")])
    made = first.store.read(lambda index: index.generation())
    late.record([Entry(kind="user", text="z")])
    assert {memory.store.read(lambda index: index.generation()) for memory in (first, late)} == {
        made
    }


@pytest.mark.slow
def test_check_finds_nothing_wrong_while_others_write_and_build(opened, root):
    memory = opened(settings=SMALL)
    with children() as start:
        writers = [start(WRITER, root, name, 100_000, name == "a") for name in "ab"]
        for child in writers:
            assert child.hear() == "open"
        for child in writers:
            child.tell("go")
        for _ in range(15):
            assert_sound(memory)
            time.sleep(0.02)
        assert memory.store.total() > 0


# -- forks

FORKING = """
import signal
signal.alarm(60)
memory = Memory.open(sys.argv[1], Settings(view_budget_chars=4000))
stop = threading.Event()

def talk(name):
    turn = 0
    while not stop.is_set():
        memory.record([Entry(kind="user", text=f"{name} {turn} {k}", session=name) for k in range(3)])
        memory.view()
        memory.search(name)
        turn += 1

threads = [threading.Thread(target=talk, args=(f"t{k}",)) for k in range(2)]
for thread in threads:
    thread.start()
for number in range(12):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            for turn in range(5):
                ids = memory.record([Entry(kind="user", text=f"c{number} {turn} {k}", session=f"c{number}") for k in range(3)])
                assert f"c{number} {turn} 2" in memory.zoom(ids[-1])
            assert memory.view()
            memory.search("user")
            assert len(list(memory.session_entries(f"c{number}"))) == 15
            memory.close()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
stop.set()
for thread in threads:
    thread.join()
assert memory.settle(60)
say(memory.store.total(), len(memory.view()))
memory.close()
"""


def test_a_forked_child_goes_on_with_the_memory_it_inherited(opened, root):
    with children() as start:
        total, _ = map(int, start(FORKING, root).rest(100)[0].split())
    memory = opened(settings=SMALL)
    log = [message.text for message in memory.store.messages(0, memory.store.total())]
    assert len(log) == len(set(log)) == total
    assert [text for text in log if text.startswith("c")] == [
        f"c{n} {turn} {k}" for n in range(12) for turn in range(5) for k in range(3)
    ]
    for name in ("t0", "t1"):
        turns = [int(text.split()[1]) for text in log if text.startswith(name)]
        assert turns == sorted(turns)
    assert memory.settle(60)
    assert_sound(memory)


def test_a_child_that_lives_on_keeps_no_lock_of_its_dead_parent(opened, root):
    code = """
    memory = Memory.open(sys.argv[1])
    memory.record([Entry(kind="user", text="x")])
    while not memory.compactor.owner:
        time.sleep(0.01)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    say(child)
    time.sleep(60)
    """
    with children() as start:
        parent = start(code, root)
        forked = int(parent.hear())
        try:
            parent.kill()
            memory = opened(compact=True)
            end = time.monotonic() + 5
            while not memory.compactor.owner and time.monotonic() < end:
                time.sleep(0.02)
            assert memory.compactor.owner
            assert memory.record([Entry(kind="user", text="y")], timeout_s=1) == [1]
        finally:
            os.kill(forked, signal.SIGKILL)


def test_a_memory_cloned_while_it_is_in_use_goes_its_own_way(opened, root, tmp_path):
    """As when a profile is cloned: locks and the notes of a living process are copied along."""
    memory = opened(compact=True)
    capture = Capture(memory.capture_store(), session="s1")
    messages = turn_of("before", "yes")
    capture.turn_started("before")
    capture.turn_ended(messages)
    capture.turn_started("open when it was cloned")
    clone = opened(shutil.copytree(root, tmp_path / "clone"), compact=True)
    elsewhere = Capture(clone.capture_store(), session="s1")
    elsewhere.initialized()
    elsewhere.turn_started("only in the clone")
    elsewhere.turn_ended([*messages, *turn_of("only in the clone", "fine")])
    capture.turn_ended([*messages, *turn_of("open when it was cloned", "done")])
    for one in (memory, clone):
        assert one.settle(20)
        assert_sound(one)
    assert [entry.text for entry in memory.session_entries("s1")] == [
        "before",
        "yes",
        "open when it was cloned",
        "done",
    ]
    assert [entry.text for entry in clone.session_entries("s1")] == [
        "before",
        "yes",
        "open when it was cloned",
        "only in the clone",
        "fine",
    ]


ENDS_AT_ONCE = """
from optchat.compaction.model import Model
root, turn = Path(sys.argv[1]), int(sys.argv[2])
asked = threading.Event()

def ask(said, model):
    asked.set()
    time.sleep(600)

memory = Memory.open(root, Settings(summarizer="model"), model=Model("slow-1", ask))
memory.record([Entry(kind="user", text=f"turn {turn} " + "and much was said about it " * 40)])
if turn % 2:
    assert asked.wait(20)
say("said")
"""


@pytest.mark.slow
def test_an_interpreter_that_ends_at_once_has_everything_on_disk_and_no_complaint(root):
    """Nobody closes the memory; its thread is at work, or a model's call is out."""
    with children() as start:
        for turn in range(6):
            one = start(ENDS_AT_ONCE, root, turn)
            assert one.rest(30) == ["said"]
            assert one.errors() == ""
    with Memory.open(root, compact=False) as memory:
        assert [message.text.split(" and")[0] for message in memory.store.messages(0, 9)] == [
            f"turn {turn}" for turn in range(6)
        ]
