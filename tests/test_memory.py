"""A memory as its callers see it.

Said, shown, opened, found and looked after, by several at once.
"""

import json
import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from freezegun import freeze_time
from soundness import assert_sound

import optchat
from optchat.base.errors import OptchatError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.memory import Memory


def said(count, start=0, **fields):
    return [Entry(kind="user", text=f"message {k}", **fields) for k in range(start, start + count)]


def texts(memory):
    return [message and message.text for message in memory.store.messages(0, memory.store.total())]


def test_the_public_names_are_there():
    assert {optchat.Memory, optchat.Entry, optchat.Settings, optchat.OptchatError} == {
        Memory,
        Entry,
        Settings,
        OptchatError,
    }


def test_the_example_of_the_documentation_runs(root):
    with Memory.open(root, settings=Settings()) as memory:
        ids = memory.record(
            [
                Entry(kind="user", text="I moved the deadline to June", session="s1"),
                Entry(kind="talk", text="Noted.", session="s1"),
            ]
        )
        assert ids == [0, 1]
        assert memory.settle(timeout_s=30)
        assert "0+1|user: I moved the deadline to June" in memory.view()
        assert "June" in memory.recall("deadline", session="s1")
        assert memory.zoom(0) == "0+1|user: I moved the deadline to June"
        assert memory.date(1).startswith("1: ")
        assert [hit.id for hit in memory.search("deadline", limit=20)] == [0]
        assert memory.status()["messages"] == 2
        assert memory.check()["damage"] == []


def test_an_empty_memory_can_be_asked_everything(memory):
    assert memory.recall("anything") == ""
    assert memory.view().endswith("</chat>")
    assert memory.search("anything") == []
    assert memory.settle(5)
    assert memory.message(0) is None
    assert list(memory.session_entries("s")) == []
    json.dumps(memory.status())
    json.dumps(memory.check())


def test_the_status_says_what_a_user_wants_to_know(opened, clock):
    memory = opened()
    memory.record(said(3, session="a"))
    clock.forward(days=2)
    memory.record(said(2, 3, session="b"))
    before = memory.status()
    assert (
        before["messages"],
        before["sessions"],
        before["lines_built"],
        before["lines_ready"],
        before["full_text_behind"],
    ) == (5, 2, 0, 5, 5)
    assert before["first_date"].startswith("2026-05-01")
    assert before["last_append"].startswith("2026-05-03")
    assert memory.settle(20)
    after = memory.status()
    assert (after["lines_built"], after["lines_ready"], after["full_text_behind"]) == (
        5 + 2 + 1,
        0,
        0,
    )
    assert after["view_chars"] == len(memory.view()) <= after["view_budget_chars"]
    assert after["bytes_on_disk"]["main"] > 0
    assert after["compactor"] == "none"
    json.dumps(after)


def test_who_compacts_is_said(opened):
    first = opened(compact=True)
    end = time.monotonic() + 10
    while first.status()["compactor"] != "this process" and time.monotonic() < end:
        time.sleep(0.01)
    assert first.status()["compactor"] == "this process"
    assert opened().status()["compactor"] == "another process"


def test_progress_is_told_of_a_first_index_and_of_lines(opened, root):
    memory = opened()
    memory.record(said(20))
    memory.close()
    (root / "index.sqlite").unlink()
    steps = []
    again = opened(progress=lambda *step: steps.append(step))
    assert steps[-1][0] == "index"
    assert steps[-1][1] == steps[-1][2] > 0
    lines = []
    again.settle(20, progress=lambda *step: lines.append(step))
    assert lines
    assert all(what == "lines" and done <= total == 38 for what, done, total in lines)


def test_closing_twice_and_leaving_the_block_are_the_same(root):
    with Memory.open(root) as memory:
        memory.record(said(1))
        memory.close()
    memory.close()
    assert not memory.compactor._thread.is_alive()


def test_an_open_that_fails_leaves_no_thread_and_no_connection_behind(root, recwarn):
    (root / "main").parent.mkdir(parents=True)
    (root / "main").write_bytes(b"")
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(OptchatError):
            Memory.open(root)
    assert threading.active_count() == before
    assert not recwarn.list


def test_several_memories_on_one_directory_in_one_process_are_one(opened):
    many = [opened() for _ in range(4)]
    for k in range(20):
        assert many[k % 4].record(said(2, 2 * k)) == [2 * k, 2 * k + 1]
    assert all(texts(memory) == [f"message {k}" for k in range(40)] for memory in many)
    assert many[1].settle(20)
    assert len({memory.view() for memory in many}) == 1
    assert_sound(many[3])


def test_two_directories_in_one_process_never_mix(opened, tmp_path):
    one, two = opened(tmp_path / "one", compact=True), opened(tmp_path / "two", compact=True)
    for k in range(30):
        one.record([Entry(kind="user", text=f"one {k}")])
        two.record([Entry(kind="user", text=f"two {k}")])
    assert one.settle(20)
    assert two.settle(20)
    assert "two" not in one.view()
    assert "one" not in two.view()
    assert one.search("two") == []


def test_threads_of_one_memory_lose_and_double_nothing(opened):
    memory = opened(compact=True, settings=Settings(view_budget_chars=3_000))
    failures = []

    def work(name):
        try:
            for turn in range(25):
                ids = memory.record(
                    [Entry(kind="user", text=f"{name} {turn} {k}", session=name) for k in range(3)],
                    timeout_s=30,
                )
                assert [memory.message(id_).text for id_ in ids] == [
                    f"{name} {turn} {k}" for k in range(3)
                ]
                assert len(memory.view()) <= 3_000
                memory.search(name), memory.zoom(ids[0]), memory.status()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"t{k}",)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    log = texts(memory)
    assert len(log) == len(set(log)) == 6 * 25 * 3
    for k in range(6):
        assert [text for text in log if text.startswith(f"t{k}")] == [
            f"t{k} {turn} {j}" for turn in range(25) for j in range(3)
        ]
    assert memory.settle(30)
    assert_sound(memory)


def test_showing_the_view_does_not_wait_for_who_holds_the_lock(opened):
    """A turn shows the view.

    Whoever keeps the write lock, or merges in the background, must not hold it up.
    """
    memory = opened(settings=Settings(view_budget_chars=3_000))
    memory.record(said(300))
    other = opened(settings=Settings(view_budget_chars=3_000))
    while memory.compactor.step():
        pass
    with other.store.locked():
        follower = threading.Thread(target=memory._follow)
        follower.start()
        began = time.monotonic()
        assert memory.view()
        assert time.monotonic() - began < 1
        follower.join()


def test_the_log_follows_the_local_day(root):
    """Midnight, both changes to and from summer time, and a zone that changes.

    Ids go on, whatever the names of the days.
    """
    moments = [
        ("2026-03-28T23:59:59+01:00", 1),
        ("2026-03-29T00:00:00+01:00", 1),
        ("2026-03-29T03:00:00+02:00", 2),
        ("2026-10-25T02:30:00+02:00", 2),
        ("2026-10-25T02:30:00+01:00", 1),
        ("2026-10-24T23:00:00-07:00", -7),
    ]
    for k, (moment, hours) in enumerate(moments):
        now = datetime.fromisoformat(moment)
        with (
            freeze_time(now.astimezone(UTC)),
            Memory.open(
                root,
                compact=False,
                clock=lambda now=now, hours=hours: now.astimezone(timezone(timedelta(hours=hours))),
            ) as memory,
        ):
            assert memory.record(said(1, k)) == [k]
            assert memory.message(k).date == moment
    with Memory.open(root, compact=False) as memory:
        assert texts(memory) == [f"message {k}" for k in range(6)]
        assert memory.settle(20)
        assert_sound(memory)
    assert sorted(path.name for path in (root / "main").iterdir()) == [
        "2026-03-28.jsonl",
        "2026-03-29.jsonl",
        "2026-10-24.jsonl",
        "2026-10-25.jsonl",
    ]


@pytest.mark.parametrize("year", [1, 9999])
def test_a_clock_at_either_end_of_time_is_no_trouble(opened, year):
    edge = (
        datetime(year, 1, 1, tzinfo=UTC)
        if year == 1
        else datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    )
    memory = opened(clock=lambda: edge)
    assert memory.record(said(2)) == [0, 1]
    assert texts(opened(clock=lambda: edge)) == ["message 0", "message 1"]
    assert opened().record(said(1, 2)) == [2]
    assert memory.record(said(1, 3)) == [3]
    assert memory.settle(20)
    assert_sound(memory)


def test_what_an_append_costs_does_not_grow_with_the_log(opened, monkeypatch):
    """Counted in SQL statements and system calls, not in time."""
    counts = []
    for size in (50, 2_000):
        memory = opened(memory_path(opened, size))
        memory.record(said(size))
        memory.record(said(1))
        steps = []
        memory.store._index._writer._connection.set_trace_callback(steps.append)
        memory.store._index._reader._connection.set_trace_callback(steps.append)
        memory.record(said(8))
        counts.append(len(steps))
    assert counts[0] == counts[1] < 60


def memory_path(opened, size):
    return opened().root.with_name(f"of{size}")
