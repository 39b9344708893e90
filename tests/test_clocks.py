"""Clocks and places.

Whatever a clock says and wherever a process stands, the order is that of saying, and nothing is
lost.
"""

import contextlib
import json
import time
from datetime import UTC, datetime, timedelta, timezone
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
from children import children
from clock import Clock
from freezegun import freeze_time
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness import assert_sound, index_says

from optchat.base.errors import StoreError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.base.terms import terms
from optchat.imports.merge import import_source
from optchat.imports.sources import open_source
from optchat.log import store
from optchat.memory import Memory


def said(count, start=0, **fields):
    return [Entry(kind="user", text=f"message {k}", **fields) for k in range(start, start + count)]


def words(count):
    return [f"message {k}" for k in range(count)]


def days(root, room="main"):
    return sorted(path.name for path in (root / room).glob("*.jsonl"))


def assert_whole(memory, expected):
    """Read straight from the files and through the memory.

    Every text once, in the order it was said, under its number.
    """
    found = {}
    for path in sorted((memory.root / "main").glob("*.jsonl")):
        data = path.read_bytes()
        assert data.endswith(b"\n")
        for line in map(json.loads, data.splitlines()):
            assert line["i"] not in found, "a number was given twice"
            found[line["i"]] = line["text"]
    assert [found.get(k) for k in range(len(found))] == expected
    assert memory.settle(30)
    assert [
        message and message.text for message in memory.store.messages(0, memory.store.total())
    ] == expected
    with memory.notes.caught_up():
        live = index_says(memory.root)
    memory.store.rebuild_index()
    with memory.notes.caught_up():
        assert index_says(memory.root) == live
    assert_sound(memory)


class Stepping:
    """A clock that goes on a little whenever somebody looks."""

    def __init__(self, start, **step):
        self.now, self.step = start, timedelta(**step)

    def __call__(self):
        self.now += self.step
        return self.now


# -- midnight, summer time, zones


def test_midnight_passes_between_two_turns_and_inside_a_batch(opened, root):
    """A batch is one moment.

    No part of it lies in another day's file than the rest, however long it takes.
    """
    memory = opened(clock=Stepping(datetime(2026, 5, 1, 23, 59, 50, tzinfo=UTC), seconds=1))
    for k in range(20):
        memory.record(said(3, 3 * k))
    assert days(root) == ["2026-05-01.jsonl", "2026-05-02.jsonl"]
    for start in range(0, 60, 3):
        assert len({memory.message(id_).date for id_ in range(start, start + 3)}) == 1
    assert_whole(memory, words(60))


def test_midnight_passes_by_the_clock_of_the_machine(root, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    with (
        freeze_time("2026-12-31 23:58:00", auto_tick_seconds=2),
        Memory.open(root, Settings(), compact=False) as memory,
    ):
        for k in range(40):
            memory.record(said(2, 2 * k))
    monkeypatch.undo()
    time.tzset()
    assert days(root) == ["2026-12-31.jsonl", "2027-01-01.jsonl"]
    with Memory.open(root, Settings(), compact=False) as memory:
        dates = [memory.message(id_).date for id_ in range(80)]
        assert dates == sorted(dates)
        assert_whole(memory, words(80))


@pytest.mark.parametrize(
    ("change", "offsets"),
    [((2026, 3, 29, 1, 0), ["+01:00", "+02:00"]), ((2026, 10, 25, 1, 0), ["+02:00", "+01:00"])],
)
def test_summer_time_begins_and_ends(opened, root, change, offsets):
    """In autumn the same hour comes twice.

    Then only the offset tells which was later, and the ids do anyway.
    """
    zone = ZoneInfo("Europe/Berlin")
    moment = datetime(*change, tzinfo=UTC) - timedelta(hours=2)
    clock = Stepping(moment, minutes=7)
    memory = opened(clock=lambda: clock().astimezone(zone))
    for k in range(40):
        memory.record(said(1, k))
    dates = [memory.message(id_).date for id_ in range(40)]
    assert list(dict.fromkeys(date[-6:] for date in dates)) == offsets
    moments = [datetime.fromisoformat(date) for date in dates]
    assert moments == sorted(moments)
    assert (dates == sorted(dates)) == (offsets[0] == "+01:00")
    assert_whole(memory, words(40))


FAR_APART = ("Pacific/Kiritimati", "Etc/GMT+12")
"""Fourteen hours ahead and twelve behind: at no moment is it the same day in both."""


def in_zone(zone):
    return f"os.environ['TZ'] = {zone!r}; time.tzset()\n"


WRITER = """
memory = Memory.open(sys.argv[1], Settings(), compact=False)
say("open")
for line in sys.stdin:
    number = int(line)
    say(memory.record([Entry(kind="user", text=f"message {number}")]), memory.message(number).date[:10])
memory.close()
"""


def test_two_processes_in_zones_a_day_apart_write_in_turn(opened, root):
    with children() as start:
        writers = [start(in_zone(zone) + WRITER, root) for zone in FAR_APART]
        for writer in writers:
            assert writer.hear() == "open"
        local = set()
        for number in range(12):
            writers[number // 2 % 2].tell(number)
            ids, day = writers[number // 2 % 2].hear().split("] ")
            assert ids == f"[{number}"
            local.add(day)
        for writer in writers:
            writer.process.stdin.close()
            writer.rest()
    assert len(local) >= 2
    assert days(root) == sorted(f"{day}.jsonl" for day in local)
    assert_whole(opened(), words(12))


DIES = """
from optchat.log.index import Index
memory = Memory.open(sys.argv[1], Settings(), compact=False)
Index.add_messages = lambda *_, **__: os._exit(9)
memory.record([Entry(kind="user", text="message 1")])
"""


@pytest.mark.parametrize("zone", FAR_APART)
def test_a_process_in_another_zone_dies_before_it_can_tell_and_its_message_is_found(
    opened, root, zone
):
    """Found by a process that stays open and looks at few files.

    Its number would be given to another message else.
    """
    memory = opened(clock=lambda: datetime.now(UTC))
    memory.record(said(1))
    with children() as start:
        assert start(in_zone(zone) + DIES, root).process.wait(30) == 9
    assert memory.record(said(1, 2)) == [2]
    assert_whole(memory, words(3))


# -- clocks that are wrong


@pytest.mark.parametrize("away", [-366, -30, -2, -1, 1, 2, 30, 400])
def test_what_one_wrote_by_a_wrong_clock_and_could_not_index_is_taken_in_by_another(
    opened, clock, away, monkeypatch
):
    memory, other = opened(), opened(clock=lambda: clock() + timedelta(days=away))
    memory.record(said(1))
    with monkeypatch.context() as patch:
        patch.setattr(
            store, "_describe_messages", mock.Mock(side_effect=StoreError("the disk is full"))
        )
        assert other.record(said(1, 1)) == [1]
    assert memory.record(said(1, 2)) == [2]
    with monkeypatch.context() as patch:
        patch.setattr(
            store, "_describe_messages", mock.Mock(side_effect=StoreError("the disk is full"))
        )
        assert other.record(said(1, 3)) == [3]
    assert memory.record(said(1, 4)) == [4]
    assert other.record(said(1, 5)) == [5]
    assert_whole(memory, words(6))


@pytest.mark.parametrize("back", [1, 366, 366 * 30])
def test_a_clock_put_back_appends_to_an_older_day_and_loses_nothing(opened, root, clock, back):
    """The file of that day is there already.

    What it held stays, and what comes after it is found behind it.
    """
    clock.now += timedelta(days=back)
    older = clock.now - timedelta(days=back)
    memory = opened(clock=lambda: older)
    memory.record(said(3))
    memory.settle(30)
    memory.close()
    memory = opened()
    memory.record(said(3, 3))
    memory.settle(30)
    clock.now -= timedelta(days=back)
    memory.record(said(3, 6))
    assert len(days(root)) == 2
    clock.now += timedelta(days=back, hours=1)
    memory.record(said(3, 9))
    assert_whole(memory, words(12))
    assert_whole(opened(), words(12))


def test_a_clock_put_back_leaves_the_last_note_of_a_session_last(opened, root, clock):
    memory = opened()
    for turn, back in enumerate((0, 1, 366, 0)):
        clock.forward(days=-back)
        memory.notes.append_pending({"type": "shown", "session": "s", "up_to": turn, "undone": 0})
        memory.notes.commit("s", said(1, turn, session="s"), [])
    assert [note["up_to"] for note in memory.notes.notes("shown", session="s")] == [3]
    assert_whole(memory, words(4))
    memory.close()
    for path in root.glob("index.sqlite*"):
        path.unlink()
    assert [note["up_to"] for note in opened().notes.notes("shown", session="s")] == [3]


STEPS = st.tuples(
    st.sampled_from(
        [-366 * 86_400, -86_400, -3_600, 0, 1, 3_600, 86_400, 400 * 86_400]
    ),  # seconds the clock goes on or back
    st.sampled_from([-12, 0, 1, 14]),  # hours from Greenwich
    st.sampled_from(["first", "second", "reopen", "dies"]),
)


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=12))
def test_any_walk_of_clocks_and_zones_leaves_the_log_in_the_order_of_saying(
    tmp_path_factory, steps
):
    root = tmp_path_factory.mktemp("walk") / "memory"
    clock = Clock()
    memories = [Memory.open(root, Settings(), compact=False, clock=clock) for _ in range(2)]
    for number, (seconds, hours, who) in enumerate(steps):
        clock.now = (clock.now + timedelta(seconds=seconds)).astimezone(
            timezone(timedelta(hours=hours))
        )
        memory = memories[who == "second"]
        if who == "reopen":
            memory.close()
            memory = memories[0] = Memory.open(root, Settings(), compact=False, clock=clock)
        with contextlib.ExitStack() as stack:
            if who == "dies":
                stack.enter_context(
                    mock.patch.object(
                        store, "_describe_messages", side_effect=StoreError("killed here")
                    )
                )
            assert memory.record(said(1, number, session="s", uid=f"u{number}")) == [number]
    memories[0].record(said(1, len(steps)))
    assert_whole(memories[0], words(len(steps) + 1))
    for memory in memories:
        memory.close()


# -- dates that were given


ENDS = [
    "0001-01-01T00:00:00+00:00",
    "0001-01-01T00:00:00",
    "0001-01-01",
    "0001-01-01 00:00:00+14:00",
    "9999-12-31T23:59:59",
    "9999-12-31",
    "9999-12-31 23:59:59-12:00",
    "9999-12-31T23:59:59.999999+00:00",
    -62_135_596_800,
    -62_135_596_800_000,
    253_402_300_799_000,
]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", *FAR_APART])
def test_imported_dates_at_either_end_of_the_calendar_stay_there(
    opened, tmp_path, monkeypatch, zone
):
    """Dropped, they would be said to be of the day of the import."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    rows = [
        {"role": "user", "content": f"message {k}", "date": date, "session": "s"}
        for k, date in enumerate(ENDS)
    ]
    path = tmp_path / "messages.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    memory = opened()
    report = import_source(memory, open_source(path), lambda *_: None)
    monkeypatch.undo()
    time.tzset()
    assert (report.added, report.unreadable) == (len(ENDS), 0)
    for id_, given_ in enumerate(ENDS):
        year = "0001" if str(given_).startswith(("0001", "-")) else "9999"
        assert memory.date(id_).startswith((f"{id_}: {year}-", f"{id_}: 9999-12-31"))
        assert memory.message(id_).date[:4] == year
        assert f"@{memory.message(id_).date[:10]}" in terms("", memory.message(id_).date)
    assert import_source(memory, open_source(path), lambda *_: None).added == 0
    assert_whole(memory, words(len(ENDS)))
    assert "message 0" in memory.view()
    assert {hit.id for hit in memory.search("message", limit=50)} == set(range(len(ENDS)))
    assert [hit.id for hit in memory.search("message", 50, newest=True)] == list(
        reversed(range(len(ENDS)))
    )


def test_newest_is_what_was_said_last_and_not_what_has_the_latest_date(opened):
    memory = opened()
    for when, date in (
        ("in the end", "9999-12-31T00:00:00+00:00"),
        ("now", "2026-05-01T09:00:00+00:00"),
        ("once", "0001-01-01T00:00:00+00:00"),
    ):
        memory.record([Entry(kind="user", text=f"the ferry sails {when}", date=date)])
    assert memory.settle(30)
    assert [hit.id for hit in memory.search("ferry", 3, newest=True)] == [2, 1, 0]
    assert memory.status()["last_append"].startswith("0001")


def test_a_day_that_is_asked_for_finds_what_was_written_on_it_by_the_writers_clock(opened):
    """Half past eleven in the evening there is another day here.

    The day is that of whoever wrote.
    """
    memory = opened()
    memory.record(
        [
            Entry(kind="user", text="lanterns", date="2026-03-28T23:30:00-07:00"),
            Entry(kind="user", text="windows", date="2026-03-29T08:30:00+02:00"),
        ]
    )
    assert memory.settle(30)
    assert memory.search("28 March 2026")[0].text == "lanterns"
    assert memory.search("29.3.2026")[0].text == "windows"
