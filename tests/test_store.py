"""The truth under its lock.

What is acknowledged is there once, in order, whatever failed, was cut, or was written by others.
"""

import json
import logging
import os
import sqlite3
from datetime import UTC, datetime, timedelta

import faults
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness import assert_sound

from optchat.base.address import Place
from optchat.base.errors import LockTimeoutError, OptchatError, StoreError
from optchat.base.json_line import clean
from optchat.base.record import Entry, Message, Node, encode_message
from optchat.log import files, reads, recovery, store
from optchat.log.index import Index
from optchat.log.sqlite import DamagedError
from optchat.log.store import Store


def said(count, start=0, **fields):
    return [Entry(kind="user", text=f"message {k}", **fields) for k in range(start, start + count)]


def texts(memory):
    """Every message's text in the order of ids; None where one is lost."""
    memory = getattr(memory, "store", memory)
    return [message and message.text for message in memory.messages(0, memory.total())]


def words(count, start=0):
    return [f"message {k}" for k in range(start, start + count)]


def only_day(root, room="main"):
    (day,) = (root / room).glob("*.jsonl")
    return day


def truth(root):
    """Every byte of the truth, by file."""
    return {
        path.relative_to(root): path.read_bytes()
        for room in ("main", "tree")
        for path in sorted((root / room).iterdir())
    }


# -- recording and reading


def test_what_is_said_comes_back_word_for_word_with_all_that_is_known_of_it(memory, clock):
    entry = Entry(
        kind="tool",
        text="ls -l\n\tÄ𝄞 中文 \x00 end",
        session="s1",
        uid="u7",
        turn="t",
        call="c1",
        tool="bash",
        author="Ana",
        platform="cli",
        unshown=True,
    )
    assert memory.record([entry]) == [0]
    stored = memory.message(0)
    assert stored == Message(
        id=0,
        date=clock().isoformat(timespec="seconds"),
        **{name: getattr(entry, name) for name in entry.__slots__ if name != "date"},
    )


def test_ids_are_dense_and_in_order_over_batches_and_days(memory, clock, root):
    assert memory.record(said(3)) == [0, 1, 2]
    clock.forward(days=1)
    assert memory.record(said(2, 3)) == [3, 4]
    assert texts(memory) == words(5)
    assert [path.name for path in sorted((root / "main").iterdir())] == [
        "2026-05-01.jsonl",
        "2026-05-02.jsonl",
    ]


def test_nothing_said_writes_nothing(memory, root):
    assert memory.record([]) == []
    assert truth(root) == {}


def test_a_batch_is_one_write_and_one_sync(memory):
    memory.record(said(1))
    with faults.disk() as disk:
        memory.record(said(8, 1))
    assert [step for step, _ in disk.operations] == ["open", "write", "fsync"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("user", "talk", "")),
            st.text(alphabet=st.characters()),
            st.text(alphabet=st.characters(), max_size=5),
        ),
        max_size=5,
    )
)
@settings(max_examples=40, deadline=None)
def test_every_text_of_unicode_comes_back_as_it_was_but_for_lone_surrogates(
    tmp_path_factory, batch
):
    store_ = Store(tmp_path_factory.mktemp("m"), clock=lambda: datetime.now(UTC))
    store_.record(
        [
            Entry(kind=kind, text=text, session=session, uid=session, date="d")
            for kind, text, session in batch
        ]
    )
    assert [(m.kind, m.text, m.session) for m in store_.messages(0, store_.total())] == [
        tuple(map(clean, one)) for one in batch
    ]
    for _, _, session in batch:
        assert [m.session for m in store_.session_messages(session)] == [
            clean(s) for _, _, s in batch if clean(s) == clean(session)
        ] or not session
    store_.close()


def test_half_a_character_anywhere_in_an_entry_is_no_reason_to_fail(opened):
    memory = opened()
    half = "\ud83d"
    generation = memory.store.read(lambda index: index.generation())
    fields = dict.fromkeys(
        ("kind", "text", "date", "session", "uid", "turn", "call", "tool", "author", "platform"),
        half,
    )
    assert memory.record([Entry(**fields)]) == [0]
    assert memory.record(said(1)) == [1]
    assert texts(memory) == ["\ufffd", "message 0"]
    assert [m.id for m in memory.session_entries(half)] == [0]
    assert (
        memory.store.read(lambda index: index.generation()) == generation
    )  # it did not have to be made anew
    assert memory.settle(20)
    report = memory.check()
    assert report["disagreements"] == []
    assert report["damage"] == []


def test_sessions_are_read_in_order_and_from_an_id_on(memory):
    memory.record([Entry(kind="user", text=str(k), session=f"s{k % 3}") for k in range(900)])
    assert [m.id for m in memory.session_entries("s1")] == list(range(1, 900, 3))
    assert [m.id for m in memory.session_entries("s1", 600)] == list(range(601, 900, 3))
    assert list(memory.session_entries("none")) == []


@pytest.mark.parametrize("id_", [-1, 3, 10**9, 2**63, 2**80, -(2**80)])
def test_a_message_that_was_never_said_is_none(memory, id_):
    memory.record(said(3))
    assert memory.message(id_) is None


# -- law 8: opening and reading change no byte of the truth


def test_opening_and_reading_change_no_byte_of_the_truth(opened, root):
    memory = opened()
    memory.record(said(20))
    memory.settle(20)
    with only_day(root).open("ab") as file:
        file.write(b'{"i":20,"kind":"us')
    before = truth(root)
    again = opened()
    (
        again.view(),
        again.zoom(3),
        again.zoom("0+8"),
        again.date(2),
        again.search("message"),
        again.status(),
        again.check(),
    )
    assert truth(root) == before


# -- law 9: what is shown is durable


def test_nothing_is_shown_before_it_is_synced(opened, monkeypatch):
    memory = opened()
    memory.record(said(1))
    seen = []
    real = os.fsync

    class Watch:
        def __getattr__(self, name):
            return getattr(os, name)

        def fsync(self, file):
            seen.append((memory.store.total(), memory.view()))
            real(file)

    monkeypatch.setattr(files, "os", Watch())
    before = memory.store.total(), memory.view()
    memory.record(said(1, 1))
    assert seen == [before]


@pytest.mark.parametrize("fix_taken_out", [False, True])
def test_without_the_sync_the_test_of_durability_fails(opened, monkeypatch, fix_taken_out):
    """A test of the test.

    A disk that loses what was not synced loses messages exactly if the sync is left out.
    """
    memory = opened()
    synced = {}

    class Volatile:
        def __getattr__(self, name):
            return getattr(os, name)

        def fsync(self, file):
            if not fix_taken_out:
                synced[os.readlink(f"/proc/self/fd/{file}")] = os.fstat(file).st_size
            os.fsync(file)

    monkeypatch.setattr(files, "os", Volatile())
    memory.record(said(3))
    memory.record(said(3, 3))
    monkeypatch.undo()
    day = only_day(memory.root)
    os.truncate(day, synced.get(str(day), 0))  # the power cut
    assert texts(opened()) == ([] if fix_taken_out else words(6))


# -- failed appends


FAULTS = [
    ("write", faults.no_space, 0),
    ("write", faults.no_space, 30),
    ("write", faults.disk_error, 200),
    ("fsync", faults.disk_error, 0),
    ("open", faults.disk_error, 0),
]


@pytest.mark.parametrize(("step", "how", "landing"), FAULTS)
def test_a_failed_append_says_so_and_the_same_entries_go_in_once_at_the_next_attempt(
    opened, step, how, landing
):
    memory = opened()
    memory.record(said(2))
    with faults.disk(at=0, how=how, only=step, landing=landing), pytest.raises(StoreError):
        memory.record(said(4, 2))
    assert texts(memory) == words(2)
    assert memory.record(said(4, 2)) == [2, 3, 4, 5]
    assert texts(memory) == texts(opened()) == words(6)
    assert_sound(memory)


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("landing", [0, 10, 150, 10_000])
def test_entries_go_in_once_also_if_the_disk_did_not_even_let_itself_be_cut_back(
    opened, step, landing
):
    memory, other = opened(), opened()
    memory.record(said(2))
    with faults.disk(at=step, for_ever=True, landing=landing), pytest.raises(StoreError):
        memory.record(said(4, 2))
    other.record([Entry(kind="talk", text="meanwhile")])
    memory.record(said(4, 2))
    memory.record(said(1, 6))
    assert sorted(texts(memory)) == sorted([*words(7), "meanwhile"])
    assert [text for text in texts(memory) if text != "meanwhile"] == words(7)
    assert texts(opened()) == texts(memory)


def test_other_entries_after_a_failed_append_are_not_taken_for_the_failed_ones(opened):
    memory = opened()
    with faults.disk(at=2, for_ever=True), pytest.raises(StoreError):
        memory.record(said(2))
    memory.record([Entry(kind="user", text="other")])
    memory.record(said(2))
    assert texts(memory)[-3:] == ["other", *words(2)]


@pytest.mark.parametrize("landing", [0, 40])
def test_a_failed_commit_builds_the_same_nodes_once_at_the_next_attempt(opened, landing, root):
    memory = opened()
    memory.record(said(8))
    with (
        faults.disk(at=0, how=faults.no_space, only="write", landing=landing),
        pytest.raises(StoreError),
    ):
        memory.settle(20)
    assert memory.settle(20)
    assert len(only_day(root, "tree").read_bytes().splitlines()) == 15
    assert_sound(memory)


# -- law 7 in the small: a process that dies at any operation


@pytest.mark.parametrize("landing", [0, 25, 10_000])
def test_after_a_crash_at_any_operation_acknowledged_entries_are_there_once_in_order(
    opened, landing, tmp_path, clock
):
    def life(memory, acknowledged):
        for first in range(0, 6, 3):
            memory.record(said(3, first))
            acknowledged += words(3, first)
            clock.forward(hours=15)
            memory.settle(20)

    with faults.disk() as disk:
        life(opened(tmp_path / "count"), [])
    for step in range(len(disk.operations)):
        acknowledged = []
        with faults.disk(at=step, how=faults.Crash, landing=landing), pytest.raises(faults.Crash):
            life(opened(tmp_path / f"{step}"), acknowledged)
        again = opened(tmp_path / f"{step}")
        found = texts(again)
        assert found[: len(acknowledged)] == acknowledged
        assert found == words(len(found))
        assert len(found) <= len(acknowledged) + 3
        again.record(said(1, len(found)))
        assert again.settle(20)
        assert texts(again) == words(len(found) + 1)
        report = again.check()
        assert report["disagreements"] == []
        assert report["damage"] == []


# -- torn tails


def test_a_torn_tail_at_any_byte_is_stepped_over_and_swallows_nothing(opened, tmp_path):
    source = opened(tmp_path / "source")
    source.record(
        [
            Entry(kind="user", text="first"),
            Entry(kind="user", text="zweite Nachricht \u4e2d𝄞", session="s"),
        ]
    )
    lines = only_day(source.root).read_bytes()
    start = lines.index(b"\n") + 1
    for cut in range(start, len(lines) + 1):
        root = tmp_path / f"cut{cut}"
        (root / "main").mkdir(parents=True)
        (root / "main" / "2026-05-01.jsonl").write_bytes(lines[:cut])
        memory = opened(root)
        whole = cut >= len(lines) - 1
        expected = ["first", "zweite Nachricht \u4e2d𝄞"][: 1 + whole]
        assert texts(memory) == expected
        memory.record([Entry(kind="user", text="next")])
        assert texts(memory) == [*expected, "next"]
        if cut % 10 == 0 or cut >= len(lines) - 2:
            assert texts(opened(root)) == [*expected, "next"]
            assert memory.settle(20)
            assert_sound(memory)


def test_a_torn_tail_that_stays_is_read_once_not_at_every_append(opened, root, clock, monkeypatch):
    memory = opened()
    memory.record(said(1))
    with only_day(root).open("ab") as file:
        file.write(b'{"i":1,"kind":"user","text":"' + b"x" * 1000)
    clock.forward(days=1)
    scanned = []
    real = reads.scan
    monkeypatch.setattr(
        reads, "scan", lambda path, offset=0: scanned.append(path.name) or real(path, offset)
    )
    for k in range(1, 6):
        memory.record(said(1, k))
    assert len(scanned) <= 1
    assert texts(memory) == words(6)


def test_without_the_newline_before_it_the_next_line_would_be_swallowed(opened, root, monkeypatch):
    """A test of the test for the repair of torn tails."""
    opened().record(said(1))
    with only_day(root).open("ab") as file:
        file.write(b'{"i":1,"ki')
    monkeypatch.setattr(files, "_last_byte", lambda _file, _size: b"\n")
    memory = opened()
    memory.record(said(1, 1))
    memory.close()
    (root / "index.sqlite").unlink()
    assert texts(opened()) != words(2)


# -- damage in the middle


def spoil(day, number, change):
    lines = day.read_bytes().splitlines(keepends=True)
    lines[number] = change(lines[number])
    day.write_bytes(b"".join(lines))


CHANGES = {
    "no JSON": lambda line: b"{" + line[2:],
    "another text": lambda line: line.replace(b"message", b"MESSAGE"),
    "another id": lambda line: line.replace(b'"i":5,', b'"i":3,'),
    "zeros": lambda line: bytes(len(line) - 1) + b"\n",
    "cut UTF-8": lambda line: line.replace(b"message", b"mess\xe4\xb8\xff"),
    "joined with the next": lambda line: line[:-1],
    "gone": lambda _line: b"",
    "not an object": lambda _line: b"[1,2]\n",
    "a far id": lambda _line: b'{"i":99999999999,"kind":"user","text":"x"}\n',
}


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_bad_line_in_the_middle_is_stepped_over_and_reported_and_ids_never_shift(
    opened, root, name, rebuilt
):
    memory = opened()
    memory.record(said(10))
    memory.close()
    spoil(only_day(root), 5, CHANGES[name])
    if rebuilt:
        (root / "index.sqlite").unlink()
    memory = opened()
    lost = {5, 6} if name == "joined with the next" else {5}
    expected = [None if k in lost else word for k, word in enumerate(words(10))]
    assert texts(memory) == expected
    assert memory.record(said(1, 10)) == [10]
    assert memory.settle(20)
    assert texts(memory) == texts(opened()) == [*expected, "message 10"]
    assert "is lost" in memory.zoom(5)
    assert "is lost" in memory.view()
    report = memory.check()
    assert report["disagreements"] == []
    assert any("message 5 is lost" in line for line in report["damage"])


def test_the_last_line_damaged_does_not_give_its_id_to_another(opened, root):
    memory = opened()
    memory.record(said(10))
    memory.settle(20)
    memory.close()
    spoil(only_day(root), 9, CHANGES["another text"])
    (root / "index.sqlite").unlink()
    assert opened().record(said(1, 10)) == [10]


def test_a_second_line_with_a_known_id_is_ignored_and_reported(opened, root):
    memory = opened()
    memory.record(said(3))
    with only_day(root).open("ab") as file:
        file.write(encode_message(Message(id=1, kind="user", text="forged", date="", session="")))
    assert texts(opened()) == words(3)
    memory.record(said(1, 3))
    (root / "index.sqlite").unlink()
    again = opened()
    assert texts(again) == words(4)
    report = again.check()
    assert [line for line in report["damage"] if "a second time" in line]
    assert report["disagreements"] == []


def test_a_node_line_that_is_damaged_is_built_again(opened, root):
    memory = opened()
    memory.record(said(8))
    memory.settle(20)
    memory.close()
    spoil(only_day(root, "tree"), 2, lambda line: line.replace(b"message", b"MESSAGE"))
    memory = opened()
    assert "MESSAGE" not in memory.view() + "".join(memory.zoom(f"{k}+2") for k in (0, 2, 4, 6))
    assert memory.settle(20)
    assert memory.store.read(lambda index: index.count("nodes")) == 15
    assert memory.check()["disagreements"] == []


# -- days and clocks


def test_a_clock_that_steps_back_changes_nothing_about_order(memory, clock):
    memory.record(said(2))
    for step in (-1, -3, 5, -30, 400):
        clock.forward(days=step)
        start = memory.store.total()
        memory.record(said(2, start))
    assert texts(memory) == words(12)


@pytest.mark.parametrize("days", [-1, 1, 0])
def test_what_another_wrote_but_could_not_index_is_taken_in_whatever_day_it_has(
    opened, clock, days, monkeypatch
):
    """Its ids would be given away again otherwise, and an acknowledged message lost."""
    memory, other = opened(), opened(clock=lambda: clock() + timedelta(days=days))
    memory.record(said(1))
    with monkeypatch.context() as patch:
        patch.setattr(Index, "add_messages", failing_index)
        assert other.record(said(1, 1)) == [1]
    assert memory.record(said(1, 2)) == [2]
    assert texts(memory) == texts(opened()) == words(3)
    assert_sound(memory)


def failing_index(*_, **__):
    raise StoreError("cannot use index.sqlite: database or disk is full")


@pytest.mark.parametrize(
    "error",
    [
        StoreError("the disk is full"),
        DamagedError("a page is damaged"),
        TypeError("None is no number"),
        MemoryError(),
    ],
)
def test_an_entry_is_acknowledged_though_the_index_cannot_follow(
    opened, monkeypatch, caplog, error
):
    memory = opened()

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Index, "add_messages", fail)
        assert memory.record(said(2)) == [0, 1]
    assert len(caplog.records) == 1
    assert memory.record(said(1, 2)) == [2]
    assert texts(memory) == words(3)
    assert_sound(memory)


def test_batches_within_one_lock_get_their_own_numbers(opened, monkeypatch):
    memory = opened()
    memory.record(said(1))
    with monkeypatch.context() as patch:
        patch.setattr(Index, "add_messages", failing_index)
        with memory.store.locked():
            assert [memory.record(said(2, 1)), memory.record(said(1, 3))] == [[1, 2], [3]]
    assert texts(memory) == words(1)  # what the index knows
    assert memory.record(said(1, 4)) == [4]
    assert texts(memory) == words(5)
    assert_sound(memory)


def test_a_batch_that_failed_within_one_lock_is_not_doubled_by_its_second_attempt(opened):
    memory = opened()
    memory.record(said(1))
    with memory.store.locked():
        with faults.disk(at=2, for_ever=True), pytest.raises(StoreError):
            memory.record(said(3, 1))
        assert memory.record(said(3, 1)) == [1, 2, 3]
    assert texts(memory) == words(4)
    assert_sound(memory)


# -- the lock


def test_an_entry_that_cannot_have_the_lock_is_refused_in_time_and_written_nowhere(opened):
    memory = opened()
    with files.Lock(memory.root / "write.lock").held(1):
        with pytest.raises(LockTimeoutError):
            memory.record(said(1), timeout_s=0.1)
        with pytest.raises(LockTimeoutError):
            memory.record(said(1), timeout_s=0)
    memory.record(said(1))
    assert texts(memory) == words(1)


def test_a_memory_opens_though_the_lock_is_stuck_and_works_once_it_is_free(
    opened, root, monkeypatch
):
    monkeypatch.setattr(recovery, "LOCK_WAIT_S", 0.2)
    first = opened()
    first.record(said(3))
    with only_day(root).open("ab") as file:
        file.write(b'{"i":3,"ki')
    lock = files.Lock(root / "write.lock")
    with lock.held(1):
        memory = opened()
        assert "message 2" in memory.zoom(2)
        fresh = opened(root.with_name("fresh"))
    assert memory.record(said(1, 3)) == [3]
    assert fresh.record(said(1)) == [0]
    assert texts(memory) == words(4)


def test_a_reader_inside_a_writers_block_heals_the_index_without_waiting_for_itself(opened):
    memory = opened()
    memory.record(said(3))
    with memory.store.locked():
        (memory.root / "index.sqlite").unlink()
        assert memory.store.total() == 3


# -- the index fails


@pytest.mark.parametrize(
    "step", ["BEGIN IMMEDIATE", "INSERT INTO messages", "UPDATE files", "COMMIT"]
)
def test_an_index_that_cannot_be_written_costs_no_message(opened, monkeypatch, step):
    memory, other = opened(), opened()

    class Full:
        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            return getattr(self.real, name)

        def execute(self, sql, *values):
            if sql.startswith(step):
                raise sqlite3.OperationalError("database or disk is full")
            return self.real.execute(sql, *values)

        def executemany(self, sql, *values):
            return (
                self.execute(sql, *values)
                if sql.startswith(step)
                else self.real.executemany(sql, *values)
            )

    index = memory.store._index
    with monkeypatch.context() as patch:
        patch.setattr(index, "_writer", Full(index._writer))
        assert memory.record(said(1)) == [0]
    assert other.record(said(1, 1)) == [1]
    assert memory.record(said(1, 2)) == [2]
    assert texts(other) == words(3)


def test_a_closed_memory_says_so_and_touches_nothing(opened, root):
    memory, other = opened(), opened()
    memory.record(said(3))
    memory.settle(20)
    memory.close()
    before = {path: path.stat().st_ino for path in root.iterdir() if path.suffix == ".sqlite"}
    for use in (
        lambda: memory.record(said(1)),
        memory.view,
        lambda: memory.zoom(0),
        lambda: memory.search("message"),
        memory.status,
        memory.check,
    ):
        with pytest.raises(OptchatError, match="closed"):
            use()
    assert {path: path.stat().st_ino for path in before} == before
    assert texts(other) == words(3)
    memory.close()


def test_a_directory_that_was_removed_is_made_again(opened, root):
    memory = opened()
    memory.record(said(3))
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    root.rmdir()
    assert memory.record(said(1)) == [0]
    assert texts(memory) == words(1)


# -- nodes


def test_a_node_is_written_once_and_the_first_counts(opened, root):
    memory, other = opened(), opened()
    memory.record(said(2))
    node = Node(level=0, index=0, text="first", by="local")
    assert len(memory.store.commit([node, Node(level=0, index=1, text="b", by="local")])) == 2
    assert other.store.commit([Node(level=0, index=0, text="second", by="local")]) == []
    assert other.store.texts([Place(0, 0)]) == {Place(0, 0): "first"}
    assert len(only_day(root, "tree").read_bytes().splitlines()) == 2


def test_a_node_has_a_date_and_no_half_characters(opened, root, clock):
    memory = opened()
    memory.record(said(1))
    memory.store.commit([Node(level=0, index=0, text="half \ud83d", by="model")])
    line = json.loads(only_day(root, "tree").read_bytes())
    assert line["date"] == clock().isoformat(timespec="seconds")
    assert (
        memory.store.texts([Place(0, 0)])
        == opened().store.texts([Place(0, 0)])
        == {Place(0, 0): "half \ufffd"}
    )
    assert_sound(memory)


def test_texts_of_the_tree_are_held_in_bounded_number(opened, monkeypatch):
    monkeypatch.setattr(store, "_TEXTS_KEPT", 16)
    memory = opened()
    memory.record(said(64))
    memory.settle(20)
    places = [Place(0, k) for k in range(64)]
    assert len(memory.store.texts(places)) == 64
    assert len(memory.store._texts) <= 16
