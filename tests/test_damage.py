"""Damage of every kind to every file.

Nothing undamaged is lost, all that can be shown is reported, and what is derived heals.

``DAMAGE_TIMES=20 pytest tests/test_damage.py`` does the samples twenty times as long.
"""

import contextlib
import json
import os
import random
import shutil
import sqlite3
from itertools import combinations
from zlib import crc32

import pytest
from damage import (
    SETTINGS,
    TOTAL,
    TRUTH,
    Life,
    assert_goes_on,
    lines_hit,
    must_show,
    room_of,
    use,
    without_derived,
)
from soundness import assert_sound, index_says

from optchat import cli
from optchat.base.json_line import BadLineError, is_cut
from optchat.base.record import (
    Entry,
    Message,
    Node,
    decode_message,
    decode_node,
    encode_message,
    encode_node,
)
from optchat.log.note_lines import decode_note, encode_note
from optchat.memory import Memory

TIMES = int(os.environ.get("DAMAGE_TIMES", "1"))


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    return Life(tmp_path_factory.mktemp("life") / "memory")


@pytest.fixture
def lay(life, tmp_path):
    """Opens files laid out anew; each memory is closed and gone before the next."""
    memories = []

    def close():
        for memory in memories:
            memory.close()
            shutil.rmtree(memory.root)
        memories.clear()

    def lay_(files):
        close()
        memories.append(life.open(files, tmp_path / "memory"))
        return memories[-1]

    yield lay_
    close()


def names(life, *rooms):
    return [name for name in life.closed if room_of(name) in rooms]


def assert_undamaged_is_there(life, memory, lost=()):
    """Word for word, under its number, with all that is known of it."""
    for id_ in range(TOTAL):
        found = memory.message(id_)
        if id_ not in lost:
            assert found == life.messages[id_]
        elif found is not None:
            assert (found.id, found.kind, found.text) == (
                id_,
                life.messages[id_].kind,
                life.messages[id_].text,
            )


def ids_of(life, name, numbers):
    """The messages that stand in these lines of a day file."""
    lines = life.closed[name].splitlines()
    return (
        {json.loads(lines[number])["i"] for number in numbers if number < len(lines)}
        if room_of(name) == "main"
        else set()
    )


def without_index(memory):
    """The same files once everything derived is made anew from them."""
    memory.close()
    for path in memory.root.glob("*.sqlite*"):
        path.unlink()


def test_a_life_has_every_file_and_nothing_to_report(life, lay):
    assert {room_of(name) for name in life.closed} == {
        "format",
        "main",
        "tree",
        "capture",
        "usage.jsonl",
        "view.json",
        "context.json",
        "config.json",
        "index.sqlite",
        "search.sqlite",
    }
    assert {room_of(name) for name in life.running} - {room_of(name) for name in life.closed} == {
        "index.sqlite-wal",
        "search.sqlite-wal",
    }
    assert any("pending" in name for name in life.running)
    for files in (life.closed, life.running, without_derived(life.closed)):
        memory = lay(files)
        assert_undamaged_is_there(life, memory)
        assert memory.settle(30)
        assert assert_sound(memory)["notes"] == []


# -- the last record, cut at every byte


@pytest.mark.parametrize("derived", [True, False])
@pytest.mark.parametrize("room", ["main", "tree", "capture", "pending", "usage.jsonl"])
def test_a_last_record_cut_at_any_byte_costs_itself_alone(life, lay, room, derived):
    files = life.running if room == "pending" else life.closed
    name = max(name for name in files if room in name)
    whole = files[name]
    start = whole.rfind(b"\n", 0, len(whole) - 1) + 1
    last = TOTAL - 1 if room == "main" else None
    # One file is read like another.
    step = 1 if TIMES > 1 or (room == "main" and not derived) else 7
    for cut in sorted({*range(start, len(whole), step), start, len(whole) - 1}):
        cut_files = files | {name: whole[:cut]}
        memory = lay(cut_files if derived else without_derived(cut_files))
        assert_undamaged_is_there(life, memory, {last} if cut < len(whole) - 1 else ())
        assert memory.record([Entry(kind="user", text="next")]) == [TOTAL]
        memory.capture_store().begin(life._draft("later", 1))
        with memory.notes.caught_up():
            pass
        report = memory.check()
        # What a cut took from the log, its leaf says; from notes, the index; a line of the tree is
        # built again, one on calls missed by nobody.
        assert bool(report["damage"]) == (
            (room == "main" and cut < len(whole) - 1) or (room == "capture" and derived)
        )
        if cut % 5 == 0:
            without_index(memory)
            again = Memory.open(memory.root, SETTINGS, compact=False, clock=life.clock)
            assert again.message(TOTAL).text == "next"
            again.close()


# -- single bytes and stretches


def spoilt(pick, data):
    """Bytes of a file changed.

    One, or a stretch as long as a sector or less; (first, end, data).
    """
    at = pick.randrange(len(data))
    if pick.random() < 0.25:
        at = pick.randrange(min(len(data), 128))  # where databases keep what they say of themselves
    if pick.random() < 0.75:
        new = pick.choice(
            [
                byte
                for byte in {0, 10, 34, 255, data[at] ^ 1, data[at] ^ 128, pick.randrange(256)}
                if byte != data[at]
            ]
        )
        return at, at + 1, data[:at] + bytes([new]) + data[at + 1 :]
    end = min(len(data), at + pick.choice((2, 16, 512)))
    return at, end, data[:at] + bytes(end - at) + data[end:]


def cases(life, count, *rooms):
    """(files, name, first byte, end, damaged data), ``count`` for every file of these rooms, closed
    and running.
    """
    pick = random.Random(f"{rooms} {TIMES}")
    for files in (life.closed, life.running):
        for name in [name for name in files if room_of(name) in rooms]:
            for _ in range(count * TIMES):
                yield files, name, *spoilt(pick, files[name])


def test_damage_to_the_truth_costs_what_it_hit_and_is_reported_as_far_as_it_shows(life, lay):
    for number, (files, name, first, end, data) in enumerate(cases(life, 4, *TRUTH)):
        hit = (
            ids_of(life, name, lines_hit(files[name], first, end)) if name in life.closed else set()
        )
        changed = files | {name: data}
        memory = lay(changed if number % 2 else without_derived(changed))
        report = memory.check()
        expected = must_show(room_of(name), files[name], data)
        context = (
            name,
            first,
            files[name][max(0, first - 20) : end + 10],
            data[max(0, first - 20) : end + 10],
            report,
        )
        if expected == "damage":
            assert report["damage"], context
        elif expected == "note":
            assert report["damage"] or report["notes"] or report["disagreements"], context
        assert_undamaged_is_there(life, memory, hit)
        use(memory)
        assert_goes_on(memory)
        assert_undamaged_is_there(life, memory, hit)
        if number % 3 == 0:
            without_index(memory)
            again = Memory.open(memory.root, SETTINGS, compact=False, clock=life.clock)
            assert_undamaged_is_there(life, again, hit)
            assert again.message(TOTAL).text == "afterwards"
            assert again.settle(30)
            assert again.check()["disagreements"] == []
            again.close()


def terms_in(root):
    with contextlib.closing(sqlite3.connect(root / "search.sqlite")) as database:
        database.execute("CREATE VIRTUAL TABLE temp.held USING fts5vocab(main, words, instance)")
        return sorted(database.execute("SELECT term, doc FROM temp.held"))


def test_damage_to_what_is_derived_loses_nothing_and_is_healed_or_reported(life, lay):
    """What a check is silent about must say the very same as what an undamaged log gives."""
    sound = lay(life.closed)
    says, terms = index_says(sound.root), terms_in(sound.root)
    derived = (
        "index.sqlite",
        "index.sqlite-wal",
        "search.sqlite",
        "search.sqlite-wal",
        "view.json",
        "context.json",
    )
    for number, (files, name, _, _, data) in enumerate(cases(life, 6, *derived)):
        memory = lay(files | {name: data})
        if number % 3 == 0:
            use(memory)
        report = memory.check()
        assert report["damage"] == []
        assert_undamaged_is_there(life, memory)
        if not report["disagreements"] and files is life.closed:
            with memory.notes.caught_up():
                assert index_says(memory.root) == says
            if (memory.root / "search.sqlite").exists() and memory.full_text.indexed() == TOTAL:
                assert terms_in(memory.root) == terms
        use(memory)
        assert_goes_on(memory)
        assert_undamaged_is_there(life, memory)
        if number % 4:
            continue
        without_index(memory)
        for view in ("view.json", "context.json"):
            (memory.root / view).unlink(missing_ok=True)
        again = Memory.open(memory.root, SETTINGS, compact=False, clock=life.clock)
        assert_undamaged_is_there(life, again)
        assert again.settle(30)
        assert_sound(again)
        again.close()


# -- whole files


WHOLE = {
    "deleted": lambda _: None,
    "emptied": lambda _: b"",
    "zeroed": lambda data: bytes(len(data)),
    "all ones": lambda data: b"\xff" * len(data),
    "halved": lambda data: data[: len(data) // 2],
    "doubled": lambda data: data + data,
}


def replaced(files, **changes):
    return {name: data for name, data in (files | changes).items() if data is not None}


@pytest.mark.parametrize("how", WHOLE)
def test_a_file_that_is_gone_or_garbage_costs_what_it_held_and_no_more(life, lay, how):
    for files in (life.closed, life.running):
        for name in [name for name in files if files is life.closed or name not in life.closed]:
            memory = lay(replaced(files, **{name: WHOLE[how](files[name])}))
            use(memory)
            report = memory.check()
            own = (
                ids_of(life, name, range(99)) if name in life.closed and how != "doubled" else set()
            )
            assert_undamaged_is_there(life, memory, own)
            lost = {id_ for id_ in own if memory.message(id_) is None}
            if room_of(name) == "main":
                assert sum("is lost" in line for line in report["damage"]) == len(lost)
                assert bool(lost) == (how != "doubled")
            if room_of(name) in ("main", "capture") and "pending" not in name and how != "doubled":
                assert report["damage"]
            if room_of(name) == "tree" and how in ("zeroed", "all ones"):
                assert report[
                    "damage"
                ]  # one that is gone may never have been there: lines are built when there is time
            if room_of(name) not in TRUTH:
                assert report["damage"] == []
            assert_goes_on(memory)
            assert_undamaged_is_there(life, memory, own)
            built = memory.store.read(lambda index: index.count("nodes"))
            assert built == sum((TOTAL + 1) >> level for level in range(9))


def test_files_in_each_others_place_cost_at_most_what_they_held(life, lay):
    for first, second in combinations(life.closed, 2):
        alike = room_of(first) == room_of(second)
        if not alike and not (
            first[-15:] == second[-15:]
            or "sqlite" in first + second
            or first.endswith(".json") == second.endswith(".json")
        ):
            continue
        memory = lay(life.closed | {first: life.closed[second], second: life.closed[first]})
        use(memory)
        lost = set() if alike else ids_of(life, first, range(99)) | ids_of(life, second, range(99))
        assert_undamaged_is_there(life, memory, lost)
        report = memory.check()
        if alike and room_of(first) in ("main", "tree"):
            assert report["damage"] == report["disagreements"] == []
        elif room_of(first) in TRUTH or room_of(second) in TRUTH:
            assert report["damage"]
        assert_goes_on(memory)
        assert_undamaged_is_there(life, memory, lost)


def test_everything_derived_at_once_is_made_anew(life, lay):
    files = {
        name: data for name, data in life.closed.items() if room_of(name) in (*TRUTH, "config.json")
    }
    memory = lay(files)
    assert memory.settle(30)
    assert_undamaged_is_there(life, memory)
    assert assert_sound(memory)["nodes"] == sum(TOTAL >> level for level in range(9))
    assert memory.search("message words")


# -- what the check says on the command line


@pytest.mark.parametrize(
    ("name", "spoil", "status"),
    [
        ("main/2026-05-01.jsonl", lambda data: data, 0),
        ("main/2026-05-01.jsonl", lambda data: data.replace(b"message", b"massage", 1), 1),
        ("capture/2026-05-02.jsonl", lambda data: data.replace(b"never", b"newer", 1), 1),
        ("tree/2026-05-02.jsonl", lambda data: data.replace(b"message", b"massage", 1), 1),
        ("usage.jsonl", lambda data: data.replace(b"small", b"large", 1), 1),
        ("view.json", lambda data: data[:-9], 1),
        ("main/2026-05-03.jsonl", lambda data: data + b'{"i":30,"ki', 0),
    ],
)
def test_the_command_ends_with_1_where_something_is_damaged_and_says_it_as_json(
    life, tmp_path, capsys, name, spoil, status
):
    life.open(life.closed | {name: spoil(life.closed[name])}, tmp_path / "optchat").close()
    assert cli.main(["check", "--home", str(tmp_path), "--json"]) == status
    report = json.loads(capsys.readouterr().out)
    assert bool(report["damage"] or report["disagreements"]) == bool(status)
    assert cli.main(["check", "--home", str(tmp_path)]) == status


# -- what the checksum covers


def test_a_damaged_fact_beside_the_text_is_damage_too(life, lay):
    name = "main/2026-05-01.jsonl"
    data = life.closed[name]
    for old, new in (
        (b'"size"', b'"sise"'),
        (b'"date":"2026', b'"date":"2027'),
        (b'"session":"s0', b'"session":"s1'),
        (b'"author":"Ana', b'"author":"Ann'),
        (b'"crc"', b'"cra"'),
    ):
        damaged = data.replace(old, new, 1)
        report = lay(without_derived(life.closed | {name: damaged})).check()
        assert "message 0: the checksum does not match" in report["damage"][0]


def test_a_damaged_fact_of_a_line_of_the_tree_is_damage_too(life, lay):
    name = "tree/2026-05-01.jsonl"
    for old, new in ((b'"by":"free', b'"by":"tree'), (b'"date":"2026', b'"date":"2027')):
        damaged = life.closed[name].replace(old, new, 1)
        assert damaged != life.closed[name]
        assert lay(without_derived(life.closed | {name: damaged})).check()["damage"]


def test_lines_whose_checksum_covers_a_part_are_counted(life, lay):
    """Of another program, which has none, or of before format 1."""
    name = "main/2026-05-01.jsonl"
    first, _, rest = life.closed[name].partition(b"\n")
    bare = {key: value for key, value in json.loads(first).items() if key != "crc"}
    older = bare | {"crc": crc32("{i}|{kind}|{text}".format_map(bare).encode())}
    for fields in (bare, older):
        line = json.dumps(fields, ensure_ascii=False).encode()
        memory = lay(without_derived(life.closed | {name: line + b"\n" + rest}))
        report = memory.check()
        assert (memory.message(0), report["damage"]) == (life.messages[0], [])
        (note,) = report["notes"]
        assert note.startswith(f"{name}: 1 lines have no checksum that covers all of them")


NOTE = {
    "type": "draft",
    "session": "s",
    "token": "t",
    "text": 'a "quoted" {text} \\ with [all] sorts',
    "turns": ["a", {"b": 1}],
}
LINES = [
    (encode_note(NOTE), decode_note),
    (
        encode_message(
            Message(
                id=7,
                kind="user",
                text='a "quoted" {text} \\',
                date="2026-05-01T09:00:00+00:00",
                session="s",
            )
        ),
        decode_message,
    ),
    (
        encode_node(Node(level=1, index=3, text="user: a {text}", by="local", date="2026-05-01")),
        decode_node,
    ),
    (
        encode_node(
            Node(level=1, index=3, text="user: a {text}", by="local", date="2026-05-01", spare=True)
        ),
        decode_node,
    ),
]


@pytest.mark.parametrize(("line", "decode"), LINES)
def test_what_a_crash_cut_is_told_from_what_was_whole(line, decode):
    line = line[:-1]
    assert all(is_cut(line[:end]) for end in range(1, len(line)))
    assert not any(is_cut(line[:end] + bytes(40)) for end in range(len(line)))
    for at in range(len(line)):
        for byte in {0, 32, 34, 44, 48, 92, 91, 123, 125, 255, line[at] ^ 1} - {line[at]}:
            spoilt_line = line[:at] + bytes([byte]) + line[at + 1 :]
            with contextlib.suppress(BadLineError):
                decode(spoilt_line)
                continue
            # A last byte that became a digit or a comma is as a crash may leave it: nothing can
            # tell.
            assert not is_cut(spoilt_line) or (at == len(line) - 1 and byte in b",0"), spoilt_line


# -- the tree, notes, host ids, words


def test_a_line_of_the_tree_that_was_built_again_is_damage_no_more(life, lay):
    name = "tree/2026-05-02.jsonl"
    memory = lay(
        without_derived(life.closed | {name: life.closed[name].replace(b"message", b"massage", 1)})
    )
    assert memory.check()["damage"]
    assert memory.settle(30)
    report = assert_sound(memory)
    assert ["it was built again" in line for line in report["notes"]] == [True]


WRONG = {
    "a session": (
        "UPDATE messages SET session = (SELECT id FROM sessions WHERE name = 's2') WHERE id = 3"
    ),
    "a length": "UPDATE messages SET length = length - 1 WHERE id = 3",
    "a kind": "UPDATE messages SET kind = kind + 1 WHERE id = 3",
    "a line's builder": "UPDATE nodes SET by = 3 WHERE level = 1 AND idx = 0",
    "a line's bytes": "UPDATE nodes SET bytes = bytes + 1 WHERE level = 1 AND idx = 0",
    "a host's id": "DELETE FROM uids WHERE uid = 'u1-3'",
    "a host's id elsewhere": "UPDATE uids SET id = id + 1 WHERE uid = 'u1-3'",
    "a host's id too much": "INSERT INTO uids VALUES ('forged', 3)",
    "a settled turn": "DELETE FROM uids WHERE uid = 'turn:gone1'",
    "a note": "DELETE FROM notes WHERE type = 'bind' AND session = 's1'",
    "a note twice": (
        "INSERT INTO notes (session, type, key, body) SELECT session, type, key, body FROM notes "
        "WHERE type = 'bind'"
    ),
    "a note of another session": (
        "UPDATE notes SET session = 's2' WHERE type = 'gap' AND session = 's1'"
    ),
    "an open turn": "DELETE FROM notes WHERE type = 'draft' AND key = 'open1'",
}


@pytest.mark.parametrize("name", WRONG)
def test_an_index_that_says_anything_else_than_the_files_is_found(life, lay, name):
    memory = lay(life.closed)
    assert memory.check()["disagreements"] == []
    with contextlib.closing(sqlite3.connect(memory.root / "index.sqlite")) as database:
        database.executescript(WRONG[name])
    report = memory.check()
    assert report["damage"] == []
    assert report["disagreements"]
    memory.store.rebuild_index()
    assert memory.settle(30)
    assert_sound(memory)


def test_an_index_that_is_wrong_about_the_size_of_what_is_to_be_summed_up_is_found(opened):
    memory = opened()
    memory.record([Entry(kind="user", text=f"message {k}") for k in range(8)])
    memory.store.commit([Node(level=0, index=k, text="x", by="free") for k in range(4)])
    assert_sound(memory)
    for last, level in ((5, 0), (3, 1)):
        with contextlib.closing(sqlite3.connect(memory.root / "index.sqlite")) as database:
            database.execute(
                "UPDATE ready SET bytes = bytes + 1 WHERE last = ? AND level = ?", (last, level)
            )
            database.commit()
        (*_, found) = memory.check()["disagreements"]
        assert "is to be built from" in found
    assert len(memory.check()["disagreements"]) == 2


def test_an_index_whose_pages_contradict_each_other_is_found(life, lay):
    """What a session's messages are is read from a table of its own inside the file."""
    memory = lay(life.closed)
    memory.close()
    path = memory.root / "index.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages_of_session'"
        ).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    cells = (page - 1) * size + 3
    data[cells : cells + 2] = (int.from_bytes(data[cells : cells + 2], "big") - 1).to_bytes(
        2, "big"
    )  # one entry fewer
    found = lay(life.closed | {"index.sqlite": bytes(data)}).check()
    assert any("index.sqlite is damaged" in line for line in found["disagreements"])


def test_a_note_whose_page_is_damaged_is_read_from_the_files_again(life, lay):
    for change in (b'"token":"open0"', b"asked and never"):
        data = life.closed["index.sqlite"]
        assert change in data
        memory = lay(life.closed | {"index.sqlite": data.replace(change, change[:-1] + b"\xe2")})
        drafts = memory.capture_store().news("s0", None).drafts
        assert [draft.token for draft in drafts if draft.token.startswith("open")] == ["open0"]
        assert drafts[0].text == "asked and never answered"


def test_a_file_of_notes_that_is_gone_is_said_to_be_until_all_is_made_anew(life, lay):
    name = "capture/2026-05-02.jsonl"
    memory = lay(replaced(life.closed, **{name: None}))
    assert memory.capture_store().news("s1", None).drafts == []
    assert [f"{name}, byte 0: is gone or shorter than it was"] == memory.check()["damage"]
    assert any(name in warning for warning in memory.status()["warnings"])
    assert [
        note["token"] for note in memory.notes.notes("draft") if note["token"].startswith("open")
    ] == ["open0", "open2"]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM words_data WHERE id = (SELECT max(id) FROM words_data)",
        "UPDATE meta SET indexed = indexed - 1",
        "forged",
    ],
)
def test_a_full_text_that_says_anything_else_than_the_messages_is_found(life, lay, change):
    memory = lay(life.closed)
    memory.full_text.close()
    with contextlib.closing(
        sqlite3.connect(memory.root / "search.sqlite", isolation_level=None)
    ) as database:
        if change == "forged":
            database.execute("INSERT INTO words (rowid, terms) VALUES (3, 'a word nobody said')")
        else:
            database.execute(change)
    memory.close()
    again = Memory.open(memory.root, SETTINGS, compact=False, clock=life.clock)
    found = again.check()["disagreements"]
    again.close()
    if "indexed" in change:
        assert found == []  # it is behind, which is no fault
    else:
        assert any("search.sqlite" in line for line in found)


def test_settings_that_are_damaged_are_said_and_cost_nothing_else(life, tmp_path):
    for content in (
        b"",
        b"\x00" * 30,
        b'{"view_budget_chars": 2\xff00}',
        b'{"view_budget_bhars": 2000}',
    ):
        root = tmp_path / f"of{len(content)}"
        life.open(life.closed | {"config.json": content}, root).close()
        with Memory.open(root, compact=False, clock=life.clock) as memory:
            assert memory.warnings
            assert_undamaged_is_there(life, memory)
