"""Importing: only what is new, in order, nothing lost, and a report that says what happened."""

from __future__ import annotations

import json
import shutil
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_db import StateDb

from optchat.base.record import Entry
from optchat.imports import merge
from optchat.imports.merge import import_source
from optchat.imports.sources import open_source
from optchat.memory import Memory


def silent(*_):
    pass


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "optchat", compact=False) as opened:
        yield opened


def take(memory, path):
    report = import_source(memory, open_source(path), silent)
    return report.added, report.known


def log(memory):
    found = [memory.message(id_) for id_ in range(memory.status()["messages"])]
    return [(message.session, message.kind, message.text) for message in found]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


TALK = [
    {"kind": "user", "text": "ok", "session": "s1"},
    {"kind": "talk", "text": "fine", "session": "s1"},
    {"kind": "user", "text": "ok", "session": "s1"},
    {"kind": "user", "text": "ok", "session": "s2"},
]


def test_what_is_imported_stands_in_the_log_in_its_order(memory, tmp_path):
    assert take(memory, jsonl(tmp_path / "a.jsonl", TALK)) == (4, 0)
    assert log(memory) == [(row["session"], row["kind"], row["text"]) for row in TALK]


def test_importing_twice_adds_nothing_and_repeats_within_the_source_stay(memory, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", TALK)
    take(memory, path)
    assert take(memory, path) == (0, 4)
    assert len(log(memory)) == 4


def test_a_renamed_source_adds_nothing(memory, tmp_path):
    path = jsonl(
        tmp_path / "a.jsonl",
        [{"kind": "user", "text": "no session"}, {"kind": "talk", "text": "none"}],
    )
    take(memory, path)
    renamed = path.rename(tmp_path / "other.txt")
    assert take(memory, renamed) == (0, 2)


def test_a_grown_source_adds_only_what_it_grew_by(memory, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", TALK[:2])
    take(memory, path)
    jsonl(path, [*TALK, {"kind": "user", "text": "ok", "session": "s1"}])
    assert take(memory, path) == (3, 2)
    assert [text for _, _, text in log(memory)] == ["ok", "fine", "ok", "ok", "ok"]


def test_what_was_said_in_between_changes_nothing(memory, tmp_path):
    path = jsonl(tmp_path / "a.jsonl", TALK)
    take(memory, path)
    memory.record(
        [
            Entry(kind="user", text="ok", session="s1"),
            Entry(kind="user", text="later", session="s9"),
        ]
    )
    assert take(memory, path) == (0, 4)


def test_a_session_that_was_captured_live_adds_nothing(memory, tmp_path):
    memory.record(
        [Entry(kind=row["kind"], text=row["text"] + " \n", session=row["session"]) for row in TALK]
    )
    assert take(memory, jsonl(tmp_path / "a.jsonl", TALK)) == (0, 4)


def test_a_session_that_was_captured_in_part_is_completed(memory, tmp_path):
    memory.record([Entry(kind="user", text="ok", session="s1")])
    assert take(memory, jsonl(tmp_path / "a.jsonl", TALK)) == (3, 1)


def test_the_same_words_in_another_session_or_by_another_kind_are_new(memory, tmp_path):
    memory.record(
        [Entry(kind="talk", text="ok", session="s1"), Entry(kind="user", text="ok", session="s3")]
    )
    assert take(memory, jsonl(tmp_path / "a.jsonl", TALK)) == (4, 0)


def test_a_message_the_host_gave_an_id_is_known_by_it_even_if_its_text_was_masked(memory, tmp_path):
    memory.record([Entry(kind="echo", text="key=sk-…89AB", session="s1", uid="u1", call="c1")])
    path = jsonl(
        tmp_path / "a.jsonl",
        [{"kind": "echo", "text": "key=***", "session": "s1", "uid": "u1", "call": "c1"}],
    )
    assert take(memory, path) == (0, 1)


def test_entries_without_a_session_share_one_that_comes_from_the_first(memory, tmp_path):
    take(
        memory,
        jsonl(
            tmp_path / "a.jsonl",
            [{"kind": "user", "text": "first"}, {"kind": "user", "text": "second"}],
        ),
    )
    sessions = {session for session, _, _ in log(memory)}
    assert len(sessions) == 1
    assert sessions.pop().startswith("import-")


def test_a_day_file_of_a_memory_imports_into_another_and_adds_nothing_to_its_own(memory, tmp_path):
    entry = Entry(
        kind="user",
        text="a\nb",
        session="s1",
        author="Ann",
        platform="telegram",
        date="2026-03-02T09:00:00+01:00",
    )
    memory.record([entry, entry])
    day = next((tmp_path / "optchat" / "main").iterdir())
    assert take(memory, day) == (0, 2)
    with Memory.open(tmp_path / "second", compact=False) as second:
        assert take(second, day) == (2, 0)
        message = second.message(0)
        assert (message.text, message.author, message.platform, message.date) == (
            entry.text,
            "Ann",
            "telegram",
            entry.date,
        )


@pytest.mark.parametrize("newer", [False, True])
def test_a_hermes_database_imports_once_and_later_only_what_was_said_since(memory, tmp_path, newer):
    host = StateDb(tmp_path / "state.db", newer=newer)
    host.session("s1")
    for index in range(8):
        host.turn("s1", "ok" if index % 2 else f"question {index}", "done")
    assert take(memory, host.path) == (16, 0)
    assert take(memory, host.path) == (0, 16)
    host.compress("s1", head=3, tail=4)
    host.turn("s1", "ok", "done")
    assert take(memory, host.path) == (2, 16)
    moved = tmp_path / "elsewhere.sqlite"
    shutil.copy(host.close(), moved)
    assert take(memory, moved) == (0, 18)


def test_what_cannot_be_read_is_counted_and_the_first_faults_are_named(memory, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"kind": "user", "text": "good"}\n'
        + b"{broken\n" * 9
        + b'{"role": "system", "content": "x"}\n'
    )
    report = import_source(memory, open_source(path), silent)
    assert (report.added, report.unreadable, dict(report.left_out)) == (1, 9, {"system rows": 1})
    assert report.usable
    assert report.faults == [f"line {number} is not JSON" for number in range(2, 7)]
    assert "4 more" in report.text("optchat {}".format)
    assert json.loads(json.dumps(report.facts()))["unreadable"] == 9


def test_a_source_of_nothing_but_faults_is_not_usable(memory, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{broken\n" * 3)
    assert not import_source(memory, open_source(path), silent).usable


def test_a_source_is_recorded_in_batches_and_progress_reaches_its_end(
    memory, tmp_path, monkeypatch
):
    monkeypatch.setattr(merge, "BATCH_ENTRIES", 10)
    sizes, shown = [], []
    record = memory.record
    monkeypatch.setattr(
        memory, "record", lambda entries: sizes.append(len(entries)) or record(entries)
    )
    path = jsonl(
        tmp_path / "a.jsonl", [{"kind": "user", "text": f"message {n}"} for n in range(25)]
    )
    import_source(memory, open_source(path), lambda *args: shown.append(args))
    assert sizes == [10, 10, 5]
    assert shown[-1] == ("importing", path.stat().st_size, path.stat().st_size)
    assert [text for _, _, text in log(memory)] == [f"message {n}" for n in range(25)]


def test_large_texts_fill_a_batch_before_it_has_many_entries(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(merge, "BATCH_CHARS", 1000)
    sizes = []
    record = memory.record
    monkeypatch.setattr(
        memory, "record", lambda entries: sizes.append(len(entries)) or record(entries)
    )
    take(
        memory,
        jsonl(tmp_path / "a.jsonl", [{"kind": "user", "text": f"{n}" * 400} for n in range(1, 10)]),
    )
    assert sizes == [3, 3, 3]


def test_what_was_recorded_before_a_failure_stays_and_is_not_recorded_again(
    memory, tmp_path, monkeypatch
):
    monkeypatch.setattr(merge, "BATCH_ENTRIES", 10)
    path = jsonl(
        tmp_path / "a.jsonl", [{"kind": "user", "text": f"message {n}"} for n in range(25)]
    )
    record, calls = memory.record, []

    def fail_at_the_second(entries):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return record(entries)

    monkeypatch.setattr(memory, "record", fail_at_the_second)
    with pytest.raises(OSError, match="No space left"):
        take(memory, path)
    monkeypatch.setattr(memory, "record", record)
    assert take(memory, path) == (15, 10)
    assert [text for _, _, text in log(memory)] == [f"message {n}" for n in range(25)]


WORDS = st.sampled_from(["ok", "ok ", "yes", "Ja, 10 €", "好", "\ud83d", ""])
ROWS = st.lists(
    st.tuples(st.sampled_from(["user", "talk"]), WORDS, st.sampled_from(["", "s1", "s2"])),
    max_size=14,
)


@given(ROWS, st.data())
@settings(max_examples=40, deadline=None)
def test_importing_a_source_as_it_grows_gives_the_log_of_importing_it_once(
    tmp_path_factory, rows, data
):
    base = tmp_path_factory.mktemp("grow")
    lines = [{"kind": kind, "text": text, "session": session} for kind, text, session in rows]
    # What is recognised again is what differs by more than white space: of such twins the first
    # spelling stays.
    cuts = sorted(data.draw(st.lists(st.integers(0, len(lines)), max_size=4)))
    with (
        Memory.open(base / "once", compact=False) as once,
        Memory.open(base / "grown", compact=False) as grown,
    ):
        for end in (*cuts, len(lines), len(lines)):
            path = jsonl(base / "source.jsonl", lines[:end])
            if end and path.read_text().strip():
                take(grown, path)
        if lines:
            take(once, jsonl(base / "source.jsonl", lines))
        assert log(grown) == log(once)
        assert len(log(once)) == sum(1 for row in lines if row["text"])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "big.jsonl"
    with path.open("w") as file:
        for number in range(25_000):
            file.write(
                json.dumps(
                    {
                        "kind": "user",
                        "text": f"message {number} " + "x" * 1000,
                        "session": f"s{number % 50}",
                    }
                )
                + "\n"
            )
    with Memory.open(tmp_path / "optchat", compact=False) as memory:
        tracemalloc.start()
        try:
            take(memory, path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20_000_000
