"""Several real processes on one memory: all that was acknowledged is there once, in each one's order, whoever dies or forks."""

import contextlib
import os
import signal
import time

import pytest
from children import children
from soundness import assert_sound

from optchat.core.records import Entry
from optchat.core.settings import Settings
from optchat.storage.store import Store

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
    """``said``: what each writer had acknowledged. Every one of it is in the log once, with its id, and each writer's in its order."""
    log = [message.text.split(" words")[0] for message in memory._store.messages(0, memory._store.total())]
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
    assert memory._store.total() == sum(len(ids) for turns in said.values() for ids in turns.values())
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


@pytest.mark.parametrize("moment_s", [pytest.param(0.02, marks=pytest.mark.slow), 0.1, pytest.param(0.3, marks=pytest.mark.slow)])
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
    extra = memory._store.total() - sum(len(ids) for turns in said.values() for ids in turns.values())
    assert 0 <= extra <= 5  # the one batch that was not acknowledged
    assert memory.settle(60)
    assert_sound(memory)


@pytest.mark.slow
def test_processes_killed_again_and_again_cost_nothing_that_was_acknowledged(opened, root):
    said = {}
    with children() as start:
        for round_ in range(40):
            name = f"v{round_}"
            victim = start(WRITER, root, name, 100_000, round_ % 2 == 0)
            assert victim.hear() == "open"
            victim.tell("go")
            time.sleep(0.005 * (round_ % 30))
            victim.kill()
            said[name] = acknowledged(hear_all(victim))
    memory = opened(settings=SMALL)
    assert_all_there(memory, said)
    assert memory.settle(60)
    assert_sound(memory)


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


@pytest.mark.parametrize("filled", [pytest.param(False, marks=pytest.mark.slow), True])
def test_many_processes_open_at_once_what_has_no_index_yet(opened, root, filled):
    if filled:
        memory = opened()
        memory.record([Entry(kind="user", text=f"m {k} 0", session="m") for k in range(2_000)])
        memory.close()
        (root / "index.sqlite").unlink()
    code = """
    wait_for("go")
    memory = Memory.open(sys.argv[1], compact=False)
    before = memory._store.read(lambda index: index.generation())
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
    assert memory._store.total() == first + 6
    assert_sound(memory)


def test_an_index_made_by_another_is_not_made_once_more(opened, monkeypatch):
    """At the first start of several processes on a long log each would otherwise make it anew, one after the other."""
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_follow_log", lambda _self: None)  # it is overtaken between opening the file and the lock
        late = opened()
    first = opened()
    first.record([Entry(kind="user", text="y")])
    made = first._store.read(lambda index: index.generation())
    late.record([Entry(kind="user", text="z")])
    assert {memory._store.read(lambda index: index.generation()) for memory in (first, late)} == {made}


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
        assert memory._store.total() > 0


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
say(memory._store.total(), len(memory.view()))
memory.close()
"""


def test_a_forked_child_goes_on_with_the_memory_it_inherited(opened, root):
    with children() as start:
        total, _ = map(int, start(FORKING, root).rest(100)[0].split())
    memory = opened(settings=SMALL)
    log = [message.text for message in memory._store.messages(0, memory._store.total())]
    assert len(log) == len(set(log)) == total
    assert [text for text in log if text.startswith("c")] == [f"c{n} {turn} {k}" for n in range(12) for turn in range(5) for k in range(3)]
    for name in ("t0", "t1"):
        turns = [int(text.split()[1]) for text in log if text.startswith(name)]
        assert turns == sorted(turns)
    assert memory.settle(60)
    assert_sound(memory)


def test_a_child_that_lives_on_keeps_no_lock_of_its_dead_parent(opened, root):
    code = """
    memory = Memory.open(sys.argv[1])
    memory.record([Entry(kind="user", text="x")])
    while not memory._compactor.owner:
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
            while not memory._compactor.owner and time.monotonic() < end:
                time.sleep(0.02)
            assert memory._compactor.owner
            assert memory.record([Entry(kind="user", text="y")], timeout_s=1) == [1]
        finally:
            os.kill(forked, signal.SIGKILL)
