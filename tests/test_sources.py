"""What a file to import is, and what is read from it."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tracemalloc
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_db import SUMMARY, StateDb

from optchat.base.errors import SourceError
from optchat.base.json_line import clean
from optchat.base.record import KINDS
from optchat.imports import sources
from optchat.imports.sources import open_source


def said(path):
    return [(item.entry.kind, item.entry.text) for item in open_source(path).items() if item.entry]


def left_out(path):
    return [item.left_out for item in open_source(path).items() if item.left_out]


def faults(path):
    return [f"{item.place} {item.fault}" for item in open_source(path).items() if item.fault]


@pytest.fixture
def lines(tmp_path):
    def write(*rows, name="messages.jsonl"):
        path = tmp_path / name
        path.write_bytes(
            b"".join(
                (row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n"
                for row in rows
            )
        )
        return path

    return write


# -- what a file is


def test_a_file_is_told_by_its_content_and_not_by_its_name(tmp_path, lines):
    assert open_source(lines({"kind": "user", "text": "hi"}, name="state.db")).form == "JSONL"
    assert (
        open_source(lines(b"2026-03-02 bought a boat", name="log.jsonl")).form
        == "notes, one a line"
    )
    database = StateDb(tmp_path / "LOG.txt")
    assert open_source(database.close()).form == "Hermes state.db"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n \n\x00\x00\n", "is empty"),
        ("{}\n".encode("utf-16"), "is UTF-16"),
        (b'[{"role": "user", "content": "hi"}]', "one JSON array"),
        (b"\x7fELF\x02\x01\x01" + bytes(60) + b"\x03\x3e\x01" * 40, "binary"),
        (bytes(range(256)) * 40, "binary"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_its_reason(tmp_path, content, says):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=says) as caught:
        open_source(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(SourceError, match="directory"):
        open_source(tmp_path)
    with pytest.raises(SourceError, match="no such file"):
        open_source(tmp_path / "gone.jsonl")


def test_an_unreadable_file_is_refused(tmp_path, lines, monkeypatch):
    path = lines({"kind": "user", "text": "hi"})

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(SourceError, match="Permission denied"):
        open_source(path)


def test_another_sqlite_file_and_a_broken_one_are_refused(tmp_path):
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE cats (name)")
    db.commit()
    db.close()
    with pytest.raises(SourceError, match="no Hermes database"):
        open_source(other)
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    with pytest.raises(SourceError, match="cannot read the database"):
        open_source(broken)


# -- JSONL


def test_roles_and_kinds_become_kinds(lines):
    path = lines(
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "tool", "content": "42", "tool_name": "ask"},
        {"role": "system", "content": "be nice"},
        *({"kind": kind, "text": f"a {kind}"} for kind in KINDS),
    )
    assert said(path) == [
        ("user", "hello"),
        ("talk", "hi"),
        ("echo", "42"),
        *((kind, f"a {kind}") for kind in KINDS),
    ]
    assert left_out(path) == ["system rows"]


def test_session_author_platform_tool_and_call_are_taken(lines):
    path = lines(
        {
            "kind": "echo",
            "text": "x",
            "session": "s1",
            "author": "Ann",
            "platform": "telegram",
            "tool": "ls",
            "call": "c1",
            "uid": "u9",
        },
        {"role": "tool", "content": "y", "session_id": 7, "tool_name": "ls", "tool_call_id": "c2"},
    )
    first, second = (item.entry for item in open_source(path).items())
    assert (first.session, first.author, first.platform, first.tool, first.call, first.uid) == (
        "s1",
        "Ann",
        "telegram",
        "ls",
        "c1",
        "u9",
    )
    assert (second.session, second.tool, second.call) == ("7", "ls", "c2")


def test_tool_calls_follow_the_text_they_came_with(lines):
    path = lines(
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {"id": "c1", "function": {"name": "read_file", "arguments": '{"path":  "a.py"}'}},
                {"id": "c2", "name": "ls", "args": {"dir": "ü"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c3", "function": {"name": "now"}}],
        },
    )
    assert said(path) == [
        ("talk", "Looking."),
        ("tool", 'read_file {"path":  "a.py"}'),
        ("tool", 'ls {"dir": "ü"}'),
        ("tool", "now {}"),
    ]
    assert [item.entry.call for item in open_source(path).items()] == ["", "c1", "c2", "c3"]


@pytest.mark.parametrize("key", ["date", "timestamp"])
@pytest.mark.parametrize(
    "value",
    [
        "2026-03-02T09:00:00+01:00",
        1_772_438_400,
        1_772_438_400_000,
        "2026-03-02T08:00:00Z",
        "1772438400",
    ],
)
def test_dates_are_one_moment_however_they_are_written(lines, key, value):
    path = lines({"kind": "user", "text": "hi", key: value})
    date = next(open_source(path).items()).entry.date
    assert datetime.fromisoformat(date) == datetime(
        2026, 3, 2, 9, tzinfo=timezone(timedelta(hours=1))
    )


@pytest.mark.parametrize("value", ["yesterday", "", None, True, [2026], 1e300, float("nan")])
def test_a_date_that_is_none_costs_no_message(lines, value):
    path = lines({"kind": "user", "text": "hi", "date": value})
    assert [item.entry.date for item in open_source(path).items()] == [""]


def test_lines_that_cannot_be_read_are_named_and_the_rest_is_read(lines):
    path = lines(
        {"kind": "user", "text": "first"},
        b'{"kind": "user", "text": "cut',
        b"",
        "just a text",
        {"text": "nobody said this"},
        {"role": "critic", "content": "boo"},
        {"kind": "thought", "text": "hm"},
        {"role": "user"},
        b'{"kind": "user", "text": "cut \xe6\x9e"}',
        b"[" * 100_000,
        {"kind": "user", "text": "last"},
    )
    assert said(path) == [("user", "first"), ("user", "last")]
    assert [fault.split(" ", 2)[1] for fault in faults(path)] == [
        "2",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "10",
    ]
    assert "not JSON" in faults(path)[0]
    assert "UTF-8" in faults(path)[6]


def test_odd_but_readable_lines_are_read(lines):
    path = lines(
        b'\xef\xbb\xbf{"kind": "user", "text": "after a mark"}\r',
        b'{"kind": "user", "text": "half an emoji \\ud83d"}',
        b'{"kind": "user", "text": "a nul \\u0000 inside", "score": NaN}',
        {"role": "user", "content": 42},
    )
    assert [text for _, text in said(path)] == [
        "after a mark",
        "half an emoji \ufffd",
        "a nul \x00 inside",
        "42",
    ]


def test_an_endless_line_is_stepped_over(lines, monkeypatch):
    monkeypatch.setattr(sources, "LINE_BYTES_MAX", 100)
    path = lines(
        {"kind": "user", "text": "a"},
        b'{"kind":"user","text":"' + b"x" * 3_000_000 + b'"}',
        {"kind": "user", "text": "b"},
    )
    assert said(path) == [("user", "a"), ("user", "b")]
    assert faults(path)[0].startswith("line 2 is longer")
    last = list(open_source(path).items())[-1]
    assert last.position == path.stat().st_size


def test_a_session_with_its_messages_on_one_line_is_read(lines):
    path = lines(
        {
            "id": "s1",
            "source": "telegram",
            "messages": [
                {"role": "user", "content": "hi"},
                "no",
                {"role": "assistant", "content": "ho"},
            ],
        }
    )
    entries = [item.entry for item in open_source(path).items() if item.entry]
    assert [(entry.text, entry.session, entry.platform) for entry in entries] == [
        ("hi", "s1", "telegram"),
        ("ho", "s1", "telegram"),
    ]
    assert faults(path) == ["line 1, message 2 is not a JSON object"]


def test_parts_that_are_no_text_become_marks_with_type_bytes_and_digest(lines):
    png = b"\x89PNG\r\n" + bytes(300)
    import base64

    data = "data:image/png;base64," + base64.b64encode(png).decode()
    path = lines(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is this"},
                {"type": "image_url", "image_url": {"url": data}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://boats.example/ilse.png"}}
            ],
        },
        {"role": "user", "content": {}},
        {"role": "user", "content": []},
    )
    mark = f"[image/png: 306 bytes, sha256 {hashlib.sha256(png).hexdigest()}]"
    assert said(path) == [
        ("user", f"what is this\n{mark}"),
        ("user", "[image_url: https://boats.example/ilse.png]"),
    ]
    assert left_out(path) == ["empty messages"] * 2


def test_tool_parts_among_content_are_calls_and_results_and_thoughts_are_left(lines):
    path = lines(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "t1", "name": "ls", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "a.py"}],
                }
            ],
        },
    )
    assert said(path) == [("talk", "I look"), ("tool", 'ls {"a": 1}'), ("echo", "a.py")]


def test_what_a_host_writes_around_and_instead_of_words_is_not_taken_as_words(lines):
    block = (
        "<memory-context>\n[System note: The following is recalled memory context, NOT new user "
        "input.]\n\nold things\n</memory-context>"
    )
    path = lines(
        {"role": "user", "content": f"hello\n\n{block}"},
        {"role": "assistant", "content": SUMMARY},
        {"role": "user", "content": "[CONTEXT SUMMARY]: we spoke"},
        {"role": "assistant", "content": "(empty)"},
        {"role": "assistant", "content": ""},
        {"kind": "user", "text": "I wrote <memory-context>myself</memory-context>"},
    )
    assert said(path) == [
        ("user", "hello"),
        ("user", "I wrote <memory-context>myself</memory-context>"),
    ]


TEXTS = st.text(st.characters(), min_size=1)


@given(st.lists(st.tuples(st.sampled_from(KINDS), TEXTS), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_whatever_was_written_as_jsonl_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"kind": kind, "text": text}) + "\n" for kind, text in rows),
        encoding="ascii",
    )
    # json writes a character beyond the 16-bit plane and a surrogate pair alike; both mean that
    # character.
    assert said(path) == [(kind, clean(text)) for kind, text in rows]


def test_a_big_file_is_read_as_it_comes(tmp_path):
    path = tmp_path / "big.jsonl"
    row = json.dumps({"kind": "user", "text": "x" * 1000}) + "\n"
    path.write_text(row * 30_000)
    tracemalloc.start()
    try:
        count = sum(1 for _ in open_source(path).items())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 30_000
    assert peak < 2_000_000


# -- notes


@pytest.mark.parametrize(
    ("line", "text", "day"),
    [
        ("bought a boat", "bought a boat", ""),
        ("17|bought a boat", "bought a boat", ""),
        ("17 2026-03-02|bought a boat", "bought a boat", "2026-03-02"),
        ("17|2026-03-02 bought a boat", "bought a boat", "2026-03-02"),
        ("2026-03-02 bought a boat", "bought a boat", "2026-03-02"),
        ("2026-03-02T09:10:11+01:00 bought a boat", "bought a boat", "2026-03-02"),
        ("[2026-03-02 09:10] bought a boat", "bought a boat", "2026-03-02"),
        ("2026-03-02: bought a boat", "bought a boat", "2026-03-02"),
        ("bought a boat" + " " * 500, "bought a boat", ""),
        ("bought a boat" + "\x00" * 50, "bought a boat", ""),
        ("12 boats|and a jetty", "12 boats|and a jetty", ""),
        ("2026-13-45 is no day", "2026-13-45 is no day", ""),
        ("2026-03-02", "2026-03-02", ""),
        ("17|", "17|", ""),
        ("买了一条船", "买了一条船", ""),
    ],
)
def test_a_line_of_notes_is_a_note_with_its_date(lines, line, text, day):
    entries = [item.entry for item in open_source(lines(line.encode())).items()]
    assert [(entry.kind, entry.text, entry.date[:10]) for entry in entries] == [("note", text, day)]


def test_forgotten_and_broken_notes_are_stepped_over(lines):
    width = 120
    rows = [
        b"first note".ljust(width),
        b" " * width,
        b"cut \xe6\x9e".ljust(width),
        "Jürgen zahlt bar".encode().ljust(width),
    ]
    path = lines(*rows)
    assert said(path) == [("note", "first note"), ("note", "Jürgen zahlt bar")]
    assert faults(path) == ["line 3 is not UTF-8"]


# -- Hermes' database


@pytest.fixture(params=["older host", "newer host"])
def host(request, tmp_path):
    database = StateDb(tmp_path / "state.db", newer=request.param == "newer host")
    yield database
    database.close()


def test_rows_of_both_hosts_are_read_in_the_order_they_were_stored(host):
    host.session("s1")
    host.session("s2", source="telegram")
    host.say("s1", "user", "list the files")
    call = [
        {
            "id": "c1",
            "call_id": "c1",
            "type": "function",
            "function": {"name": "terminal", "arguments": '{"command": "ls"}'},
        }
    ]
    host.say("s2", "user", "hi from the tram")
    host.say("s1", "assistant", "", tool_calls=json.dumps(call))
    host.say("s1", "tool", "a.py b.py", tool_call_id="c1", tool_name="terminal")
    host.say("s1", "assistant", "Two files.")
    entries = [item.entry for item in open_source(host.path).items()]
    assert [(entry.session, entry.kind, entry.text) for entry in entries] == [
        ("s1", "user", "list the files"),
        ("s2", "user", "hi from the tram"),
        ("s1", "tool", 'terminal {"command": "ls"}'),
        ("s1", "echo", "a.py b.py"),
        ("s1", "talk", "Two files."),
    ]
    assert entries[1].platform == "telegram"
    assert (entries[3].tool, entries[3].call) == ("terminal", "c1")
    moments = [datetime.fromisoformat(entry.date) for entry in entries]
    assert moments == sorted(moments)
    assert moments[0].timestamp() == pytest.approx(1_772_600_007.25)


def test_a_list_stored_as_json_is_text_and_marks(host):
    host.session("s1")
    host.say(
        "s1",
        "user",
        "\x00json:"
        + json.dumps(
            [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
            ]
        ),
    )
    host.say("s1", "user", "\x00json:[broken")
    assert said(host.path) == [("user", "look\n[image_url: https://a.example/b.png]")]
    assert len(faults(host.path)) == 1


def test_sessions_nobody_took_part_in_are_left_out(host):
    host.session("s1")
    host.session("sub", source="subagent", parent_session_id="s1")
    host.session("night", source="cron")
    host.session("task", model_config=json.dumps({"_delegate_from": "s1"}))
    host.turn("s1", "count to three", "1 2 3")
    for other in ("sub", "night", "task"):
        host.turn(other, "do it", "done")
    assert said(host.path) == [("user", "count to three"), ("talk", "1 2 3")]
    assert left_out(host.path) == ["messages of cron and subagent runs"] * 6


def test_notices_and_reports_of_the_newer_host_are_told_from_words(tmp_path):
    host = StateDb(tmp_path / "state.db", newer=True)
    host.session("s1", display_name="Ann", chat_type="dm")
    host.say("s1", "user", "hello")
    host.say(
        "s1",
        "assistant",
        "Your request was not processed. Send it again.",
        display_kind="failed_turn",
    )
    host.say(
        "s1",
        "user",
        "[ASYNC DELEGATION COMPLETE — d1] found 3 boats",
        display_kind="async_delegation_complete",
    )
    host.say("s1", "user", "The model was switched.", display_kind="model_switch")
    host.close()
    assert said(host.path) == [
        ("user", "hello"),
        ("work", "[ASYNC DELEGATION COMPLETE — d1] found 3 boats"),
    ]
    assert next(open_source(host.path).items()).entry.author == "Ann"


def test_copies_after_a_compression_are_left_out_and_repeats_are_kept(host):
    host.session("s1")
    words = ["ok", "ok", "ok", "what", "ok", "ok", "ok", "ok"]
    for index, word in enumerate(words):
        host.turn("s1", word, f"answer {index % 2}")
    host.compress("s1", head=3, tail=5)
    host.turn("s1", "ok", "answer 0")
    host.compress("s1", head=3, tail=4, keep_dates=True)
    host.turn("s1", "ok", "answer 1")
    spoken = [text for kind, text in said(host.path) if kind == "user"]
    assert spoken == [*words, "ok", "ok"]
    assert len(said(host.path)) == 20


def test_a_compression_into_a_new_session_brings_only_what_is_new(host):
    host.session("s1")
    for index in range(6):
        host.turn("s1", f"question {index}", f"answer {index}")
    host.compress("s1", head=3, tail=4, child="s2")
    host.turn("s2", "question 6", "answer 6")
    assert [text for kind, text in said(host.path) if kind == "user"] == [
        f"question {index}" for index in range(7)
    ]


def test_a_branch_brings_only_what_is_new(host):
    host.session("s1")
    host.turn("s1", "ok", "fine")
    host.turn("s1", "ok", "fine")
    host.branch("s1", "s2")
    host.turn("s2", "ok", "fine")
    host.turn("s1", "ok", "fine")
    found = [
        (item.entry.session, item.entry.text)
        for item in open_source(host.path).items()
        if item.entry
    ]
    assert found == [("s1", "ok"), ("s1", "fine")] * 2 + [
        ("s2", "ok"),
        ("s2", "fine"),
        ("s1", "ok"),
        ("s1", "fine"),
    ]


def test_a_new_session_that_merely_follows_another_is_read_whole(host):
    host.session("s1", end_reason="new_session")
    host.turn("s1", "hi", "hello")
    host.session("s2", parent_session_id="s1")
    host.turn("s2", "hi", "hello")
    assert said(host.path) == [("user", "hi"), ("talk", "hello")] * 2


def test_a_message_glued_to_a_summary_is_read_once(host):
    host.session("s1")
    host.turn("s1", "first", "one")
    host.turn("s1", "second", "two")
    merged = (
        "[PRIOR CONTEXT — for reference only; not a new message]\ntwo\n\n[END OF PRIOR CONTEXT "
        f"— COMPACTION SUMMARY BELOW]\n\n{SUMMARY}"
    )
    more = {"message_uid": host.live["s1"][-1]["message_uid"]} if host.newer else {}
    host.say("s1", "assistant", merged, **more)
    assert said(host.path) == [
        ("user", "first"),
        ("talk", "one"),
        ("user", "second"),
        ("talk", "two"),
    ]


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("turn"),
            st.sampled_from(["ok", "yes", "go on"]),
            st.sampled_from(["done", "fine"]),
        ),
        st.tuples(st.just("compress"), st.integers(0, 4), st.integers(0, 6), st.booleans()),
    ),
    max_size=24,
)


@given(STEPS, st.booleans())
@settings(max_examples=100, deadline=None)
def test_in_any_life_of_a_session_each_message_is_read_exactly_once(tmp_path_factory, steps, newer):
    host = StateDb(tmp_path_factory.mktemp("life") / "state.db", newer=newer)
    host.session("s1")
    told = []
    for step in steps:
        if step[0] == "turn":
            host.turn("s1", *step[1:])
            told += [("user", step[1]), ("talk", step[2])]
        elif len(host.live["s1"]) > step[1]:
            host.compress("s1", step[1], step[2], keep_dates=step[3])
    assert said(host.close()) == told


def test_reading_leaves_a_database_and_its_directory_as_they_were(tmp_path):
    host = StateDb(tmp_path / "state.db")
    host.db.execute("PRAGMA journal_mode = WAL")
    host.session("s1")
    host.turn("s1", "hi", "hello")
    path = host.close()
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    assert list(before) == ["state.db"]
    assert len(said(path)) == 2
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before


def test_what_a_running_host_has_not_checkpointed_yet_is_read_too(tmp_path):
    host = StateDb(tmp_path / "state.db")
    host.db.execute("PRAGMA journal_mode = WAL")
    host.session("s1")
    host.turn("s1", "hi", "hello")
    assert (tmp_path / "state.db-wal").stat().st_size
    assert said(host.path) == [("user", "hi"), ("talk", "hello")]
    host.close()


def test_a_host_without_wal_can_write_while_its_database_is_read(tmp_path):
    host = StateDb(tmp_path / "state.db")
    host.session("s1")
    for index in range(500):
        host.say("s1", "user", f"message {index}")
    host.db.execute("PRAGMA busy_timeout = 0")
    reading = open_source(host.path).items()
    next(reading)
    host.say("s1", "user", "said meanwhile")
    assert sum(1 for _ in reading) == 499
    host.close()


@pytest.mark.skipif(os.name == "nt", reason="names with these characters cannot be made there")
def test_a_path_with_odd_characters_is_opened(tmp_path):
    folder = tmp_path / "a b?c#d%41ü"
    folder.mkdir()
    host = StateDb(folder / "state.db")
    host.session("s1")
    host.turn("s1", "hi", "hello")
    assert len(said(host.close())) == 2
