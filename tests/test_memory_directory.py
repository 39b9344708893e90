"""A memory directory as what is imported: of before format 1, of another program, a backup."""

import json
import shutil
from zlib import crc32

import pytest
from damage import TOTAL, Life, without_derived
from soundness import assert_sound

from optchat import cli
from optchat.base.errors import SourceError
from optchat.base.json_line import encode_line
from optchat.base.record import Entry
from optchat.imports.memory_directory import MemoryDirectory
from optchat.imports.merge import import_source
from optchat.imports.sources import open_source
from optchat.log.format import FORMAT, NAME
from optchat.memory import Memory


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    return Life(tmp_path_factory.mktemp("life") / "memory")


def as_before_format_1(name, data):
    """A day file with the checksums that lines had then: of the number and the words."""
    covered = {"main": "{i}|{kind}|{text}", "tree": "{l}|{i}|{text}"}.get(name.partition("/")[0])
    if covered is None:
        return data
    lines = []
    for line in data.splitlines():
        fields = json.loads(line)
        fields["crc"] = crc32(covered.format_map(fields).encode())
        lines.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return b"".join(lines)


@pytest.fixture
def older(life, tmp_path):
    """The Hermes home with a memory of before format 1."""
    for name, data in without_derived(life.running).items():
        if name in (NAME, "index.sqlite-wal", "search.sqlite-wal"):
            continue
        path = tmp_path / "old" / "optchat" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_before_format_1(name, data))
    return tmp_path / "old"


@pytest.fixture
def empty(life, tmp_path):
    with Memory.open(tmp_path / "new" / "optchat", compact=False, clock=life.clock) as memory:
        yield memory


def take(memory, path):
    return import_source(memory, open_source(path), lambda _what, _done, _total: None)


def lines_of(root):
    return {
        (line["l"], line["i"]): (line["text"], line["by"], line["date"])
        for path in sorted((root / "tree").glob("*.jsonl"))
        for line in map(json.loads, path.read_bytes().splitlines())
    }


@pytest.mark.parametrize("where", [".", "optchat"])
def test_an_older_memory_comes_over_with_all_it_holds(life, older, empty, where):
    report = take(empty, older / where)
    assert (report.whole, report.added, report.unreadable) == (True, TOTAL, 0)
    assert [empty.message(id_) for id_ in range(TOTAL)] == life.messages
    assert lines_of(empty.root) == lines_of(older / "optchat")
    assert report.lines == len(lines_of(empty.root))
    for session in ("s0", "s1", "s2"):
        assert list(empty.session_entries(session)) == [
            message for message in life.messages if message.session == session
        ]
    assert empty.settle(30)
    assert assert_sound(empty)["notes"] == []
    assert empty.record([Entry(kind="user", text="next")]) == [TOTAL]


def test_open_turns_and_other_notes_come_over(life, older, empty, tmp_path):
    take(empty, older)
    with life.open(life.running, tmp_path / "same") as same:
        open_turns = [
            {draft.token for draft in memory.capture_store().overdue(life.clock())}
            for memory in (empty, same)
        ]
    assert open_turns[0] == open_turns[1] != set()
    assert (empty.root / "usage.jsonl").read_bytes() == life.closed["usage.jsonl"]


def test_imported_again_nothing_comes_twice(older, empty):
    take(empty, older)
    again = take(empty, older)
    assert (again.whole, again.added, again.known) == (False, 0, TOTAL)


def test_beside_what_is_there_messages_get_new_numbers(life, older, empty):
    empty.record([Entry(kind="user", text="mine", session="own")])
    report = take(empty, older)
    assert (report.whole, report.added) == (False, TOTAL)
    assert empty.message(0).text == "mine"
    for id_, message in enumerate(life.messages, 1):
        found = empty.message(id_)
        assert (found.text, found.date, found.session) == (
            message.text,
            message.date,
            message.session,
        )


def test_messages_are_taken_in_the_order_of_their_numbers(older, empty):
    """Day files of a clock that was put back are not in that order."""
    main = older / "optchat" / "main"
    first, last = min(main.iterdir()), max(main.iterdir())
    first.rename(main / "2027-01-01.jsonl")
    last.rename(first)
    empty.record([Entry(kind="user", text="mine", session="own")])
    texts = [item.entry.text for item in MemoryDirectory(older / "optchat").items()]
    take(empty, older)
    assert [empty.message(id_ + 1).text for id_ in range(TOTAL)] == texts
    assert texts[0].startswith("message 0 0")


def test_a_damaged_line_comes_over_as_it_is_and_is_named(life, older, empty):
    path = older / "optchat" / "main" / "2026-05-02.jsonl"
    path.write_bytes(path.read_bytes().replace(b"message 1 3", b"massage 1 3"))
    report = take(empty, older)
    assert (report.whole, report.added, report.unreadable) == (True, TOTAL - 1, 1)
    assert empty.message(TOTAL - 1) == life.messages[-1]
    assert any("checksum" in text for text in empty.check()["damage"])


def test_a_redacted_message_stays_redacted(life, older, empty, tmp_path):
    with Memory.open(older / "optchat", compact=False, clock=life.clock) as memory:
        memory.redact(3)
    take(empty, older)
    assert empty.message(3).text == "[redacted]"
    with Memory.open(tmp_path / "other", compact=False, clock=life.clock) as other:
        other.record([Entry(kind="user", text="mine")])
        assert take(other, older).left_out["redacted messages"] == 2
        assert not other.search("massage")


def test_what_was_cut_off_is_finished_by_doing_it_again(life, older, empty):
    """After a crash in its midst: some messages, and nothing that stands on them."""
    half = older.with_name("half")
    shutil.copytree(older, half)
    for path in [*(half / "optchat" / "tree").iterdir(), *(half / "optchat" / "main").iterdir()][
        :-1
    ]:
        path.unlink()
    (left,) = (half / "optchat" / "main").iterdir()
    left.rename(left.with_name("2026-05-01.jsonl"))
    shutil.copy(older / "optchat" / "main" / "2026-05-01.jsonl", left.with_name("2026-05-01.jsonl"))
    take(empty, half)
    take(empty, older)
    assert [empty.message(id_).text for id_ in range(TOTAL)] == [
        message.text for message in life.messages
    ]


def test_a_directory_without_a_memory_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no memory in this directory"):
        open_source(tmp_path)


def test_a_memory_of_a_later_format_is_refused(older):
    (older / "optchat" / NAME).write_bytes(encode_line({"format": FORMAT + 1, "by": "optchat 9"}))
    with pytest.raises(SourceError, match="Upgrade optchat"):
        open_source(older)


def test_the_command_says_what_came_over(older, tmp_path, capsys):
    (tmp_path / "home").mkdir()
    assert cli.main(["import", str(older), "--home", str(tmp_path / "home")]) == 0
    said = capsys.readouterr().out
    assert f"{TOTAL} added" in said
    assert "Taken over with their numbers" in said
    assert cli.main(["check", "--home", str(tmp_path / "home")]) == 0
