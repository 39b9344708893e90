"""A log written by another implementation of the design: it opens as it is, is read, and goes on.

The writer here is literal: message lines with the keys i, kind, text, size, date, session, node
lines with l, i, text, size, date.
"""

import json
import random

import pytest
from soundness import assert_sound

from optchat.base.address import Place
from optchat.base.record import Entry
from optchat.base.settings import Settings

KINDS = ("user", "talk", "tool", "echo")


def foreign_text(number):
    return f"message {number} \u4e2d\u6587 \U0001d11e " + "and some words " * (number * 7 % 40)


def write(root, messages=100, levels=10, *, ascii_=False, spaces=False, end="\n", days=3):
    """A log of ``messages`` over some days with its tree complete up to ``levels``."""
    for room in ("main", "tree"):
        (root / room).mkdir(parents=True)
    style = (
        {"ensure_ascii": ascii_} if spaces else {"ensure_ascii": ascii_, "separators": (",", ":")}
    )
    lines = {}
    for i in range(messages):
        kind, text = KINDS[i % 4], foreign_text(i)
        line = {
            "i": i,
            "kind": kind,
            "text": text,
            "size": len(f"{kind}: {text}".encode()),
            "date": f"2026-04-0{1 + i * days // messages}T10:00:00Z",
            "session": f"s{i // 30}",
        }
        lines.setdefault(f"main/2026-04-0{1 + i * days // messages}.jsonl", []).append(
            json.dumps(line, **style)
        )
    for i in range(messages):
        for level in range(min(levels, ((i + 1) & -(i + 1)).bit_length())):
            text = f"foreign line {level} {i >> level}"
            node = {
                "l": level,
                "i": i >> level,
                "text": text,
                "size": len(text),
                "date": "2026-04-01T10:00:00Z",
            }
            lines.setdefault(f"tree/2026-04-0{1 + i * days // messages}.jsonl", []).append(
                json.dumps(node, **style)
            )
    for name, found in lines.items():
        (root / name).write_bytes("".join(line + end for line in found).encode())


@pytest.mark.parametrize(
    "style", [{}, {"ascii_": True}, {"spaces": True}, {"end": "\r\n"}, {"days": 1}]
)
def test_a_foreign_log_opens_zooms_and_goes_on(opened, root, style):
    write(root, **style)
    before = {path: path.read_bytes() for path in root.rglob("*.jsonl")}
    memory = opened(settings=Settings(view_budget_chars=3_000))
    assert [message.text for message in memory.store.messages(0, 200)] == [
        foreign_text(k) for k in range(100)
    ]
    assert memory.message(31).session == "s1"
    assert [message.id for message in memory.session_entries("s1")] == list(range(30, 60))
    assert memory.zoom("64+32") == "64+16|foreign line 4 4\n80+16|foreign line 4 5"
    assert memory.zoom(7) == f"7+1|echo: {foreign_text(7)}"
    assert "2026-04-0" in memory.date(7)
    assert "foreign line" in memory.view()
    assert memory.settle(30)
    assert {path: path.read_bytes() for path in before} == before
    assert memory.store.read(lambda index: index.count("nodes")) == 197
    assert memory.record([Entry(kind="user", text=f"mine {k}") for k in range(28)]) == list(
        range(100, 128)
    )
    assert memory.settle(30)
    assert memory.zoom("0+128").startswith("0+64|foreign line 6 0\n64+64|")
    assert memory.search("message 42")[0].id == 42
    again = opened(settings=Settings(view_budget_chars=3_000))
    assert again.view() == memory.view()
    assert_sound(again)


def test_a_tree_that_is_not_complete_is_completed(opened, root):
    write(root, levels=2)
    memory = opened()
    assert memory.settle(30)
    assert memory.store.read(lambda index: index.count("nodes")) == 197
    assert memory.store.texts([Place(1, 3)]) == {Place(1, 3): "foreign line 1 3"}
    assert_sound(memory)


def test_messages_without_any_tree_get_one(opened, root):
    write(root, levels=0)
    memory = opened()
    assert memory.settle(30)
    assert memory.store.read(lambda index: index.count("nodes")) == 197
    assert_sound(memory)


def test_lines_in_any_order_are_put_in_theirs(opened, root):
    """Clocks step back: the day files' names say nothing about the order of ids."""
    write(root, days=1)
    (day,) = (root / "main").iterdir()
    lines = day.read_bytes().splitlines(keepends=True)
    random.Random(3).shuffle(lines)
    day.write_bytes(b"".join(lines[:40]))
    (root / "main" / "2020-01-01.jsonl").write_bytes(b"".join(lines[40:]))
    memory = opened()
    assert [message.text for message in memory.store.messages(0, 200)] == [
        foreign_text(k) for k in range(100)
    ]
    assert memory.settle(30)
    assert_sound(memory)


def test_unknown_keys_missing_ones_and_odd_values_are_no_reason_to_lose_a_message(opened, root):
    (root / "main").mkdir(parents=True)
    lines = [
        '{"i":0,"kind":"user","text":"plain"}',
        '{"text":"keys in another order","session":null,"kind":"talk","i":1,"future":{"a":[1,2]}}',
        (
            '{"i":2,"kind":"a kind of its '
            'own","text":"","size":"wrong","date":17,"session":["x"],"uid":5,"unshown":1}'
        ),
        '{"i":3,"kind":"user","text":"half \\ud83d a character","size":1}',
        '{"i":4,"kind":"user","text":"an escaped \\u0000 NUL and \\"quotes\\"","size":1}',
        '{"i":5,"kind":"user","text":"' + "long " * 400_000 + '"}',
    ]
    (root / "main" / "2026-04-01.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    memory = opened()
    found = [message.text for message in memory.store.messages(0, 10)]
    assert found[:5] == [
        "plain",
        "keys in another order",
        "",
        "half \ufffd a character",
        'an escaped \x00 NUL and "quotes"',
    ]
    assert len(found[5]) == 2_000_000
    assert memory.settle(60)
    assert memory.record([Entry(kind="user", text="next")]) == [6]
    assert_sound(memory)


def test_a_log_that_another_goes_on_writing_is_followed(opened, root):
    """Whoever writes without our lock is seen by the size of the file."""
    write(root, messages=10, days=1)
    memory = opened()
    (day,) = (root / "main").iterdir()
    with day.open("ab") as file:
        file.write(
            b'{"i":10,"kind":"user","text":"theirs","size":12,"date":"2026-04-01T10:00:00Z",'
            b'"session":"s"}\n'
        )
    assert memory.record([Entry(kind="user", text="mine")]) == [11]
    assert [message.text for message in memory.store.messages(9, 20)] == [
        foreign_text(9),
        "theirs",
        "mine",
    ]
    assert memory.settle(30)
    assert_sound(memory)


def test_a_line_another_is_just_writing_is_seen_once_it_is_whole(opened, root):
    write(root, messages=3, days=1)
    (day,) = (root / "main").iterdir()
    line = b'{"i":3,"kind":"user","text":"theirs","size":12,"date":"","session":"s"}\n'
    with day.open("ab") as file:
        file.write(line[:30])
        file.flush()
        memory = opened()
        assert memory.store.total() == 3
        file.write(line[30:])
    assert memory.record([Entry(kind="user", text="mine")]) == [4]
    assert memory.message(3).text == "theirs"
    assert_sound(memory)


def test_a_gap_in_the_numbers_is_kept(opened, root):
    write(root, messages=10, days=1, levels=0)
    (day,) = (root / "main").iterdir()
    lines = day.read_bytes().splitlines(keepends=True)
    day.write_bytes(b"".join(lines[:4] + lines[7:]))
    memory = opened()
    assert [message and message.id for message in memory.store.messages(0, 20)] == [
        0,
        1,
        2,
        3,
        None,
        None,
        None,
        7,
        8,
        9,
    ]
    assert memory.record([Entry(kind="user", text="next")]) == [10]
    assert memory.settle(30)
    assert sorted(memory.check()["damage"]) == [f"message {k} is lost" for k in (4, 5, 6)]


@pytest.mark.parametrize(
    "line",
    [
        '{"l":0,"i":999999999,"text":"x"}',
        '{"l":48,"i":281474976710655,"text":"x"}',
        '{"l":3,"i":0,"text":"x"}',
        '{"l":9,"i":0,"text":"x"}',
        '{"l":-1,"i":0,"text":"x"}',
        '{"l":60,"i":0,"text":"x"}',
    ],
)
def test_a_node_that_cannot_be_harms_nothing(opened, root, line):
    write(root, messages=10, levels=0, days=1)
    (root / "tree" / "2026-04-01.jsonl").write_text(line + "\n")
    memory = opened()
    assert memory.store.total() == 10
    assert memory.record([Entry(kind="user", text="next")]) == [10]
    assert memory.settle(30)
    assert len(memory.view()) <= 16_000
    assert opened().store.total() == 11
    assert memory.check()["disagreements"] == []


def test_a_message_whose_number_is_far_off_is_damage(opened, root):
    write(root, messages=10, levels=0, days=1)
    (day,) = (root / "main").iterdir()
    with day.open("a") as file:
        file.write('{"i":99999999999,"kind":"user","text":"x"}\n')
    memory = opened()
    assert memory.record([Entry(kind="user", text="next")]) == [10]
    assert any("far beyond the log" in line for line in memory.check()["damage"])
    assert opened().store.total() == 11


def test_a_day_file_in_the_wrong_room_invents_nothing(opened, root):
    write(root, messages=10, levels=0, days=1)
    (day,) = (root / "main").iterdir()
    wrong = "".join(f'{{"i":{i},"kind":"user","text":"x","crc":1}}\n' for i in range(30))
    (root / "tree" / day.name).write_text(wrong)
    memory = opened()
    assert memory.record([Entry(kind="user", text="next")]) == [10]
    assert memory.settle(30)
    assert memory.check()["disagreements"] == []
