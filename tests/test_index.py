"""The index.

What it derives from the log, that it heals, and that nobody who leaves takes it away from the
others.
"""

import contextlib
import random
import sqlite3
from functools import partial

import pytest
from children import children
from effort import share
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness import assert_sound

from optchat.base.address import Place
from optchat.base.cost import Cost
from optchat.base.errors import OptchatError
from optchat.base.record import Entry, Node
from optchat.log.day_files import Spot
from optchat.log.index import Index
from optchat.log.rows import MessageRow, NodeRow
from optchat.log.sqlite import DamagedError


def said(count, start=0, **fields):
    return [Entry(kind="user", text=f"message {k}", **fields) for k in range(start, start + count)]


def texts(memory):
    return [message and message.text for message in memory.store.messages(0, memory.store.total())]


# -- law 6: the ready table holds exactly the nodes a full scan would find


def full_scan(total, built):
    """Straight from the definition.

    Every node that is not built and whose sources are all there.
    """
    found = {(id_, 0) for id_ in range(total) if (0, id_) not in built}
    for level, index in built:
        pair = (level, index ^ 1)
        parent = (level + 1, index >> 1)
        if pair in built and parent not in built:
            found.add((((parent[1] + 1) << parent[0]) - 1, parent[0]))
    return found


def ready_of(index):
    return {(ready.place.end - 1, ready.place.level) for ready in index.ready(100_000)}


def message_rows(first, count):
    return [
        MessageRow(id_, Spot("2026-05-01.jsonl", id_ * 10, 9), 40, "")
        for id_ in range(first, first + count)
    ]


def node_rows(places):
    return [
        NodeRow(
            place, Spot("2026-05-01.jsonl", place.level * 1000 + place.index, 9), 30, 30, "local"
        )
        for place in places
    ]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_ready_table_is_what_a_full_scan_finds_in_whatever_order_nodes_are_built(
    tmp_path_factory, data
):
    index = Index(tmp_path_factory.mktemp("i") / "index.sqlite")
    with index.transaction():
        index.wipe()
    total, built = 0, set()
    for _ in range(data.draw(st.integers(1, 12))):
        with index.transaction():
            if data.draw(st.booleans()):
                count = data.draw(st.integers(1, 9))
                index.add_messages(message_rows(total, count), "main")
                total += count
            else:
                choices = sorted(full_scan(total, built))
                chosen = (
                    data.draw(st.lists(st.sampled_from(choices), unique=True, max_size=12))
                    if choices
                    else []
                )
                places = [Place(level, ((last + 1) >> level) - 1) for last, level in chosen]
                index.add_nodes(node_rows(places), "tree")
                built |= {tuple(place) for place in places}
        assert ready_of(index) == full_scan(total, built)
    with index.transaction():
        index.rebuild_ready()
    assert ready_of(index) == full_scan(total, built)
    index.close()


def test_the_ready_table_is_the_same_after_a_rebuild(opened, root):
    memory, other = opened(), opened()
    pick = random.Random(5)
    for _ in range(12):
        memory.record(said(pick.randrange(1, 30)))
        for _ in range(pick.randrange(3)):
            ready = memory.store.read(lambda index: index.ready(1_000))
            chosen = pick.sample(ready, pick.randrange(len(ready) + 1))
            other.store.commit(
                [
                    Node(
                        level=r.place.level,
                        index=r.place.index,
                        text=f"line {r.place.address}",
                        by="local",
                    )
                    for r in chosen
                ]
            )
    assert_sound(memory)
    live = memory.store.read(ready_of)
    for change in (
        "UPDATE files SET known = 0",
        "DELETE FROM ready; DELETE FROM nodes; DELETE FROM messages; UPDATE files SET known = 0",
    ):
        with contextlib.closing(sqlite3.connect(root / "index.sqlite")) as database:
            database.executescript(change)
        fresh = opened()
        assert fresh.store.read(ready_of) == live
        assert_sound(fresh)
    memory.store.rebuild_index()
    assert memory.store.read(ready_of) == live
    assert_sound(memory)


def test_children_come_before_parents_and_old_before_new(opened):
    memory = opened()
    memory.record(said(16))
    memory.store.commit([Node(level=0, index=k, text="x", by="free") for k in range(4, 16)])
    order = [ready.place for ready in memory.store.read(lambda index: index.ready(100))]
    assert order[:4] == [Place(0, k) for k in range(4)]
    assert order[4:] == [Place(1, k) for k in range(2, 8)]
    assert [
        r.place for r in memory.store.read(lambda index: index.ready(100, [Cost.FREE]))
    ] == order
    assert not memory.store.read(lambda index: index.ready(100, [Cost.LOCAL, Cost.MODEL]))


# -- healing

WRONG = {
    "empty": lambda path: path.write_bytes(b""),
    "no database": lambda path: path.write_bytes(
        b"This is no database, but a text of some length. " * 100
    ),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100]),
    "zeros inside": lambda path: path.write_bytes(
        path.read_bytes()[:4096] + bytes(path.stat().st_size - 4096)
    ),
    "another version": lambda path: run(path, "UPDATE meta SET value = 999 WHERE key = 'version'"),
    "a table is missing": lambda path: run(path, "DROP TABLE nodes"),
    "all tables are missing": lambda path: run(path, "DROP TABLE meta"),
    "a column is missing": lambda path: run(path, "ALTER TABLE messages DROP COLUMN bytes"),
    "another log's": lambda path: run(path, "UPDATE messages SET offset = offset + 7"),
    "ahead of the log": lambda path: run(path, "UPDATE files SET known = known + 1000000"),
    "texts for numbers": lambda path: run(path, "UPDATE messages SET offset = 'x'"),
    "a text for the sum": lambda path: run(path, "UPDATE files SET known = 'x'"),
    "no generation": lambda path: run(
        path, "UPDATE meta SET value = x'00ff' WHERE key = 'generation'"
    ),
    "files that are none": lambda path: run(path, "DELETE FROM files"),
    "negative places": lambda path: run(
        path, "UPDATE messages SET offset = -5, length = -1; UPDATE nodes SET offset = -5"
    ),
    "names that are none": lambda path: run(path, "UPDATE files SET name = char(0) || name"),
    "other names": lambda path: run(path, "UPDATE files SET name = '../' || name"),
    "names out of bytes": lambda path: run(path, "UPDATE files SET name = x'ff00'"),
    "parts of numbers": lambda path: run(path, "UPDATE messages SET offset = offset + 0.5"),
    "endless lengths": lambda path: run(
        path, "UPDATE messages SET length = 4611686018427387904; UPDATE nodes SET length = 1 << 61"
    ),
}


def run(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(sql)


@pytest.mark.parametrize("name", WRONG)
def test_an_index_that_is_wrong_in_any_way_is_made_anew(opened, root, name):
    memory = opened()
    memory.record(said(30, session="s"))
    memory.settle(30)
    view = memory.view()
    memory.close()
    WRONG[name](root / "index.sqlite")
    memory = opened()
    assert memory.message(7).text == "message 7"
    assert texts(memory) == [f"message {k}" for k in range(30)]
    assert "message 3" in memory.zoom("0+4") + memory.zoom("2+2")
    assert memory.record(said(1, 30)) == [30]
    assert [m.id for m in memory.session_entries("s")] == list(range(30))
    assert memory.settle(30)
    assert memory.view().startswith(view[:-10])
    assert_sound(memory)


@pytest.mark.parametrize(
    "name",
    [
        "a table is missing",
        "texts for numbers",
        "files that are none",
        "another log's",
        "ahead of the log",
    ],
)
def test_an_index_that_goes_wrong_under_an_open_memory_is_made_anew(opened, root, name):
    memory = opened()
    memory.record(said(30))
    memory.settle(30)
    WRONG[name](root / "index.sqlite")
    assert memory.record(said(1, 30)) == [30]
    assert texts(memory) == [f"message {k}" for k in range(31)]
    assert memory.settle(30)
    assert_sound(memory)


def test_flipped_bytes_of_the_index_lose_and_double_nothing(opened, root):
    """Bytes changed at random.

    What nothing can tell at once (a size, a count) may stay as a disagreement, which check finds.
    """
    memory = opened()
    memory.record(said(60, session="s"))
    memory.settle(30)
    memory.close()
    pick, count = random.Random(11), 60
    for round_ in range(share(80)):
        spoiled = bytearray((root / "index.sqlite").read_bytes())
        for _ in range(pick.choice((1, 3, 40))):
            spoiled[pick.randrange(len(spoiled))] = pick.choice((0, 255, pick.randrange(256)))
        (root / "index.sqlite").write_bytes(spoiled)
        memory = opened()
        uses = [
            memory.view,
            partial(memory.zoom, 20),
            partial(memory.zoom, "32+8"),
            memory.status,
            lambda m=memory: list(m.session_entries("s")),
        ]
        for use in uses if round_ % 2 else []:
            with contextlib.suppress(OptchatError):
                use()
        assert memory.record(said(1, count)) == [count]
        count += 1
        memory.check()
        memory.close()
    (root / "index.sqlite").unlink()
    memory = opened()
    assert texts(memory) == [f"message {k}" for k in range(count)]
    assert memory.settle(30)
    assert memory.check()["disagreements"] == []


NEWEST_WRONG = [
    "UPDATE messages SET id = 1000 WHERE id = 29",
    "UPDATE messages SET id = -5 WHERE id = 29",
    "DELETE FROM messages WHERE id > 20",
    "DELETE FROM messages",
    "DELETE FROM messages WHERE id > 20; INSERT INTO messages (id, bytes) VALUES (2000, 64)",
]


@pytest.mark.parametrize("change", NEWEST_WRONG)
def test_an_index_that_is_wrong_about_the_newest_message_gives_no_number_away(opened, root, change):
    memory, other = opened(), opened()
    memory.record(said(30))
    other.close()
    run(root / "index.sqlite", change)
    assert memory.record(said(1, 30)) == [30]
    memory.close()
    run(root / "index.sqlite", change.replace("29", "30"))
    assert opened().record(said(1, 31)) == [31]
    assert texts(opened()) == [f"message {k}" for k in range(32)]


def test_an_index_file_that_is_a_directory_is_a_plain_error(opened, root):
    (root / "index.sqlite").mkdir(parents=True)
    with pytest.raises(OptchatError, match=r"index\.sqlite"):
        opened()


def test_an_index_of_nothing_is_usable_only_after_it_was_made(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    assert not index.ok
    with index.transaction():
        index.wipe()
    assert index.usable()
    assert index.total() == 0
    assert (
        index.generation()
        == index.state(("2026-05-01.jsonl", "2026-05-02.jsonl", "2026-05-03.jsonl")).generation
        != 0
    )
    index.close()


def test_a_transaction_that_is_left_by_an_error_leaves_nothing(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    with index.transaction():
        index.wipe()
    for error in (RuntimeError, KeyboardInterrupt, DamagedError):
        with contextlib.suppress(error), index.transaction():
            index.add_messages(message_rows(0, 5), "main")
            raise error("x")
    assert index.total() == 0
    with index.transaction():
        index.add_messages(message_rows(0, 5), "main")
    assert index.total() == 5
    assert index.message_spots(4, 9) == [(4, Spot("2026-05-01.jsonl", 40, 9))]
    index.close()


def test_the_first_line_of_a_message_counts_unless_it_was_lost(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    with index.transaction():
        index.wipe()
        index.add_messages([MessageRow(0, None, 64, ""), *message_rows(1, 1)], "main")
        index.add_messages(
            [
                MessageRow(0, Spot("2026-05-02.jsonl", 1, 1), 900, "", ("u",)),
                MessageRow(1, Spot("2026-05-02.jsonl", 2, 2), 900, ""),
            ],
            "main",
        )
    assert index.message_spots(0, 2) == [
        (0, Spot("2026-05-02.jsonl", 1, 1)),
        (1, Spot("2026-05-01.jsonl", 10, 9)),
    ]
    assert [ready.source_bytes for ready in index.ready(9)] == [900, 40]
    assert index.id_of("u") == 0
    assert index.id_of("\ud83d") is None
    index.close()


# -- several at once


def test_a_process_that_leaves_does_not_take_the_index_from_under_the_others(opened, root):
    memory = opened()
    memory.record(said(1))
    opened().close()  # a second one in this process, gone again
    beside = root / "index.sqlite-wal"
    before = beside.stat().st_ino
    with children() as start:
        start("Memory.open(sys.argv[1], compact=False).close()", root).rest()
    assert beside.stat().st_ino == before


def test_an_index_that_wants_lines_of_messages_that_were_never_logged_is_made_anew(opened, root):
    memory = opened()
    memory.record(said(4))
    memory.settle(30)
    run(root / "index.sqlite", "INSERT INTO ready VALUES (4711, 0, 30, 0, 0), (1023, 5, 30, 2, 0)")
    assert memory.settle(5)
    assert_sound(memory)
