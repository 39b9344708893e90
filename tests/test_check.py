"""What `check` finds.

Every damage to the truth that numbers, checksums and structure can show, every disagreement, and
nothing else.
"""

import contextlib
import json
import sqlite3

import pytest
from soundness import assert_sound

from optchat.base.record import Entry, Node, encode_node
from optchat.base.settings import Settings
from optchat.log import files
from optchat.memory import check
from optchat.memory.findings import Findings


@pytest.fixture
def grown(opened):
    memory = opened(settings=Settings(view_budget_chars=4_000))
    for day in range(3):
        memory.record(
            [
                Entry(kind="user", text=f"message {day} {k} " + "words " * k, session=f"s{day}")
                for k in range(40)
            ]
        )
        memory.store.clock.forward(days=1)
        assert memory.settle(30)
    return memory


def day(memory, room="main", number=1):
    return sorted((memory.root / room).iterdir())[number]


def lines(path):
    return path.read_bytes().splitlines(keepends=True)


def findings(opened, memory):
    memory.close()
    return opened(settings=Settings(view_budget_chars=4_000)).check()


def test_a_sound_memory_has_nothing_to_report(grown):
    report = assert_sound(grown)
    assert report["messages"] == 120
    assert report["nodes"] == 120 + 60 + 30 + 15 + 7 + 3 + 1
    assert report["notes"] == []
    json.dumps(report)


def test_it_changes_no_byte_of_any_day_file_and_says_how_far_it_is(grown):
    before = {path: path.read_bytes() for path in grown.root.rglob("*.jsonl")}
    steps = []
    grown.check(lambda what, done, total: steps.append((what, done, total)))
    assert {path: path.read_bytes() for path in before} == before
    assert steps[-1][1] == steps[-1][2] == sum(map(len, before.values()))
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)


DAMAGE = {
    "a changed text": (
        lambda line: line.replace(b"message", b"massage"),
        ["checksum", "message 45 is lost"],
    ),
    "no JSON": (lambda line: b"x" + line[1:], ["is not JSON", "message 45 is lost"]),
    "a missing line": (lambda _: b"", ["message 45 is lost"]),
    "an empty line": (lambda _: b"\n", ["message 45 is lost"]),
    "a line twice": (lambda line: line + line, ["message 45 is there a second time"]),
    "another's number": (lambda line: line.replace(b'"i":45', b'"i":46'), ["message 45 is lost"]),
    "a key missing": (
        lambda line: line.replace(b'"text"', b'"test"'),
        ["it needs i, kind and text", "message 45 is lost"],
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_to_a_message_is_found_with_its_place(opened, grown, name):
    change, expected = DAMAGE[name]
    path = day(grown)
    kept = lines(path)
    path.write_bytes(b"".join([*kept[:5], change(kept[5]), *kept[6:]]))
    report = findings(opened, grown)
    for part in expected:
        assert any(part in line for line in report["damage"]), report
    where = [line for line in report["damage"] if "byte" in line]
    assert all(
        line.startswith(f"main/{path.name}, byte {sum(map(len, kept[:5]))}")
        or "second time" in line
        for line in where
    )
    (opened().store).rebuild_index()
    again = opened().check()
    assert again["damage"] == report["damage"]
    assert again["disagreements"] == []


def test_a_missing_day_is_found(opened, grown):
    day(grown).unlink()
    report = findings(opened, grown)
    assert len([line for line in report["damage"] if "is lost" in line]) == 40
    assert report["messages"] == 120


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"text":"', b'"text":"X'),
        lambda line: line[:20] + b"\n",
        lambda _: b"",
    ],
)
def test_damage_to_the_tree_is_found_and_is_gone_once_it_is_built_again(opened, grown, change):
    path = day(grown, "tree", 0)
    kept = lines(path)
    path.write_bytes(b"".join([*kept[:3], change(kept[3]), *kept[4:]]))
    grown.close()
    memory = opened(settings=Settings(view_budget_chars=4_000))
    before = memory.check()
    assert any("stands on a line that is missing" in line for line in before["damage"])
    memory.store.rebuild_index()
    assert memory.check()["disagreements"] == []
    assert memory.settle(30)
    after = memory.check()
    assert not any("missing" in line for line in after["damage"])


def test_a_node_twice_is_found_but_one_in_place_of_a_fallback_is_not(opened, grown):
    with day(grown, "tree", -1).open("ab") as file:
        file.write(encode_node(Node(level=0, index=3, text="once more", by="local")))
    report = findings(opened, grown)
    assert len([line for line in report["damage"] if "3+1 is there a second time" in line]) == 1
    assert report["disagreements"] == []


def test_a_line_in_place_of_a_fallback_is_no_damage(opened):
    memory = opened()
    memory.record([Entry(kind="user", text="x")])
    memory.store.commit([Node(level=0, index=0, text="for now", by="fallback")])
    with day(memory, "tree", 0).open("ab") as file:
        file.write(encode_node(Node(level=0, index=0, text="the real line", by="model")))
    memory.close()
    memory = opened()
    assert "the real line" in memory.view()
    assert_sound(memory)


def test_a_torn_tail_is_a_note_and_no_damage(opened, grown):
    for number in (0, 2):
        with day(grown, number=number).open("ab") as file:
            file.write(b'{"i":120,"ki')
    report = findings(opened, grown)
    assert report["damage"] == []
    assert report["disagreements"] == []
    assert len(report["notes"]) == 2
    memory = opened(settings=Settings(view_budget_chars=4_000))
    assert memory.record([Entry(kind="user", text="next")]) == [120]
    assert memory.check()["damage"] == []


def sql(memory, *statements):
    with contextlib.closing(sqlite3.connect(memory.root / "index.sqlite")) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("UPDATE nodes SET chars = chars + 1 WHERE level = 1 AND idx = 2", "differ in line 4+2"),
        ("DELETE FROM nodes WHERE level = 2 AND idx = 3", "holds"),
        ("INSERT INTO ready VALUES (7, 0, 10, 0, 0)", "line 7+1 can be built"),
        ("UPDATE messages SET offset = offset + 1 WHERE id = 9", "message 9 in another place"),
        ("UPDATE messages SET file = NULL WHERE id = 9", "message 9 in another place"),
    ],
)
def test_an_index_that_disagrees_with_the_log_is_found(grown, statement, part):
    sql(grown, statement)
    report = grown.check()
    assert any(part in line for line in report["disagreements"]), report
    assert report["damage"] == []


def test_derived_files_that_disagree_are_found(grown):
    saved = json.loads((grown.root / "view.json").read_bytes())
    (grown.root / "view.json").write_bytes(json.dumps(saved | {"lines": [[5, 90]]}).encode())
    assert any("shows line 2880+32" in line for line in grown.check()["disagreements"])
    (grown.root / "view.json").write_bytes(b"{")
    assert any("view.json cannot be used" in line for line in grown.check()["disagreements"])


def test_a_long_list_of_findings_is_cut_and_counted(opened, grown):
    day(grown).write_bytes(b"garbage\n" * 500)
    report = findings(opened, grown)
    assert len(report["damage"]) <= 51
    assert report["damage"][-1].startswith("and ")
    some = Findings()
    for k in range(60):
        some.add(str(k))
    assert some.listed()[-1] == "and 10 more"


def test_a_stuck_lock_does_not_keep_it_from_looking(grown, monkeypatch):
    monkeypatch.setattr(
        type(grown.store.lock),
        "held",
        lambda *_: (_ for _ in ()).throw(
            files.LockTimeoutError("cannot lock write.lock: it is held")
        ),
    )
    report = grown.check()
    assert report["damage"] == report["disagreements"] == []
    assert any("may be behind" in line for line in report["notes"])


def test_its_cost_grows_with_the_log_and_not_faster(opened, monkeypatch):
    """Counted in steps, not in time.

    An array made anew for each line would take hours for a million.
    """
    made = []
    real = check.array
    monkeypatch.setattr(check, "array", lambda *args: made.append(args) or real(*args))
    memory = opened()
    memory.record([Entry(kind="user", text=f"m {k}") for k in range(500)])
    assert memory.settle(30)
    made.clear()
    assert_sound(memory)
    assert len(made) < 20
