"""What model calls cost.

Sums that survive restarts, torn lines and clocks, and are read from the end of the file alone.
"""

import json
import os
import stat
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone

import faults
import pytest
from freezegun import freeze_time
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.base.errors import StoreError
from optchat.compaction import usage_sums
from optchat.compaction.model import CallError, ModelDownError, Reply, Said
from optchat.compaction.usage import NAME, Usage
from optchat.log import files, reads

ASKED = [Said("system", "Be brief."), Said("user", "é" * 10)]
"""29 bytes."""


@pytest.fixture
def usage(tmp_path, clock):
    return Usage(tmp_path, clock)


def call(usage, what="line", tokens_in=100, tokens_out=10, cached=40, seconds=2.0, **more):
    usage.note(
        what,
        model="small",
        sent=ASKED,
        reply=Reply("A line.", tokens_in, tokens_out, cached),
        seconds=seconds,
        **more,
    )


def failed(usage, error, what="line", seconds=1.0, **more):
    usage.note(what, model="small", sent=ASKED, error=error, seconds=seconds, **more)


def lines_of(directory):
    return [json.loads(line) for line in (directory / NAME).read_bytes().splitlines()]


def facts_of(directory, clock, **handed):
    return Usage(directory, clock).facts(**handed)


# ---- one line a call


def test_a_call_is_one_line_with_its_own_numbers_and_the_sums(usage, tmp_path):
    call(usage, place=(3, 7))
    call(usage, "retain", tokens_in=50, tokens_out=5, cached=None, seconds=0.25)
    usage.count(not_retained=1)
    call(usage)
    first, second, third = lines_of(tmp_path)
    own = {
        "date": "2026-05-01T09:00:00+00:00",
        "model": "small",
        "what": "line",
        "l": 3,
        "i": 7,
        "in": 100,
        "cached": 40,
        "out": 10,
        "seconds": 2.0,
    }
    assert own.items() <= first.items()
    assert not {"estimated", "error", "paused", "last_error"} & set(first)
    assert {"what": "retain", "in": 50, "cached": 0}.items() <= second.items()
    both = {"calls": 2, "in": 150, "cached": 40, "out": 15, "seconds": 2.25}
    assert second["all"] == both
    assert second["day"] == {"date": "2026-05-01", **both}
    assert third["all"]["not_retained"] == third["day"]["not_retained"] == 1


def test_the_file_is_only_for_its_owner(usage, tmp_path):
    call(usage)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_a_line_is_synced_when_note_returns(usage):
    with faults.disk() as disk:
        for _ in range(2):
            call(usage)
            mine = [step for step, name in disk.operations if name == NAME]
            assert mine[-2:] == ["write", "fsync"]


def test_nothing_is_written_by_looking(tmp_path, clock):
    usage = Usage(tmp_path, clock)
    assert usage.spent_today() == 0
    assert usage.allows(1)
    assert usage.facts(backlog=3)["calls"] == 0
    usage.resume()
    usage.close()
    assert list(tmp_path.iterdir()) == []


def test_what_the_endpoint_does_not_tell_is_estimated_from_bytes_and_says_so(usage, tmp_path):
    usage.note("line", model="small", sent=ASKED, reply=Reply("x" * 9), seconds=1)
    (line,) = lines_of(tmp_path)
    assert (line["in"], line["out"], line["cached"], line["estimated"]) == (8, 3, 0, True)


@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        (Reply("x" * 9, None, 7, 5), (8, 5, 7, True)),
        (Reply("x" * 9, 11, None), (11, 0, 3, True)),
        (Reply("x" * 9, 0, 0), (8, 0, 3, True)),
        (Reply("", 11, 0), (11, 0, 0, False)),
        (Reply("x" * 9, -4, True), (8, 0, 3, True)),
        (Reply("x" * 9, 11, 7, 5000), (11, 11, 7, False)),
        (Reply("\ud83d", 11, None), (11, 0, 1, True)),
        (Reply("x", 10**30, 7), (usage_sums.VALUE_MAX, 0, 7, False)),
    ],
)
def test_numbers_that_cannot_be_are_not_believed(usage, tmp_path, reply, tokens):
    usage.note("line", model="small", sent=ASKED, reply=reply, seconds=1)
    (line,) = lines_of(tmp_path)
    assert (line["in"], line["cached"], line["out"], line.get("estimated", False)) == tokens


def test_a_call_that_failed_is_a_line_and_may_have_been_paid_for(usage, tmp_path, clock):
    failed(usage, CallError("the model timed out"))
    (line,) = lines_of(tmp_path)
    assert (line["in"], line["out"], line["estimated"], line["error"]) == (
        8,
        0,
        True,
        "the model timed out",
    )
    assert usage.spent_today() == 8
    assert facts_of(tmp_path, clock)["last_error"] == "the model timed out (2026-05-01 09:00)"


def test_a_call_that_reached_no_model_costs_nothing(usage, tmp_path):
    failed(usage, ModelDownError("402: no credit"), paused="no credit")
    (line,) = lines_of(tmp_path)
    assert (line["in"], line["out"], line["error"], line["paused"]) == (
        0,
        0,
        "402: no credit",
        "no credit",
    )
    assert usage.facts()["calls"] == 1
    assert usage.spent_today() == 0


def test_an_error_without_words_is_told_by_its_name(usage):
    failed(usage, TimeoutError())
    assert usage.facts()["last_error"].startswith("TimeoutError (")


def test_errors_and_reasons_are_one_line_without_secrets(tmp_path, clock):
    usage = Usage(tmp_path, clock, redact=lambda text: text.replace("Ilse", "[name]"))
    failed(usage, CallError("401 for Ilse\nwith api_key=Zx81kQq7Tt29LmNo\ud83d" + "ü" * 5000))
    usage.pause("no credit for Ilse\x1b[1m\n: Bearer abcdef0123456789abcdef")
    data = (tmp_path / NAME).read_bytes()
    for secret in (b"Zx81", b"Ilse", b"abcdef0123456789", b"\\n", b"\\u001b"):
        assert secret not in data
    assert len(data.split(b"\n")) == 3
    assert max(map(len, data.split(b"\n"))) < 4096


def test_an_error_that_cannot_be_masked_is_counted_and_its_text_left_out(tmp_path, clock):
    usage = Usage(tmp_path, clock, redact=lambda _text: 1 / 0)
    failed(usage, CallError("401 for api_key_of_mine"))
    usage.pause("401 for api_key_of_mine")
    assert usage.facts()["calls"] == 1
    assert "ZeroDivisionError" in usage.facts()["last_error"]
    assert "ZeroDivisionError" in usage.paused
    assert b"of_mine" not in (tmp_path / NAME).read_bytes()
    usage.resume()
    assert usage.paused == ""


# ---- sums against a literal model

CALLS = st.fixed_dictionaries(
    {
        "what": st.sampled_from(["line", "retain"]),
        "tokens_in": st.integers(1, 10_000),
        "tokens_out": st.integers(1, 500),
        "cached": st.integers(0, 10_000),
        "ms": st.integers(0, 60_000),
        "fails": st.sampled_from([None, None, CallError("no"), ModelDownError("down")]),
    }
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), CALLS),
        st.tuples(
            st.just("count"), st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2))
        ),
        st.tuples(st.just("pause"), st.sampled_from(["no credit", "no connection", ""])),
        st.tuples(st.just("days"), st.integers(-2, 2)),
        st.tuples(st.just("hours"), st.integers(-30, 30)),
        st.tuples(st.just("restart"), st.just(None)),
        st.tuples(st.just("fails"), st.booleans()),
    ),
    max_size=30,
)


class Literal:
    """Everything that was ever counted, by day, in the plainest way."""

    def __init__(self):
        self.events = []
        self.paused = ""

    def add(self, day, **numbers):
        self.events.append((day, numbers))

    def sum(self, name, day=None):
        return sum(numbers.get(name, 0) for when, numbers in self.events if day in (None, when))


@pytest.mark.parametrize("disk", ["good", "bad"])
@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_the_sums_are_those_of_a_literal_model_wherever_it_is_restarted(
    tmp_path_factory, disk, steps
):
    directory = tmp_path_factory.mktemp("usage")
    now = [datetime(2026, 5, 10, 9, tzinfo=UTC)]
    usage, literal, last_days = Usage(directory, lambda: now[0]), Literal(), []
    whole = disk == "good"
    breaker = {"on": False}

    def append(path, data, real=files.append):
        if breaker["on"]:
            raise StoreError("the disk is full", path=path)
        return real(path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "append", append)
        for step, value in steps:
            day = now[0].date().isoformat()
            if step == "call":
                answered = value["fails"] is None
                reply = (
                    Reply("x", value["tokens_in"], value["tokens_out"], value["cached"])
                    if answered
                    else None
                )
                usage.note(
                    value["what"],
                    model="m",
                    sent=ASKED,
                    reply=reply,
                    seconds=value["ms"] / 1000,
                    error=value["fails"],
                )
                literal.add(
                    day,
                    calls=1,
                    tokens_in=value["tokens_in"]
                    if answered
                    else 8 * isinstance(value["fails"], CallError),
                    ms=value["ms"],
                    tokens_out=value["tokens_out"] * answered,
                    cached=min(value["cached"], value["tokens_in"]) * answered,
                )
            elif step == "count":
                usage.count(lines=value[0], retained=value[1], not_retained=value[2])
                literal.add(day, lines=value[0], retained=value[1], not_retained=value[2])
            elif step == "pause":
                usage.pause(value)
                literal.paused = value
            elif step in ("days", "hours"):
                now[0] += timedelta(**{step: value})
            elif step == "fails":
                breaker["on"] = value and not whole
            elif not breaker["on"]:  # what a disk refuses until the process ends is lost
                usage.close()
                usage = Usage(directory, lambda: now[0])
            if day not in last_days[-1:] and step in ("call", "count"):
                last_days = [each for each in last_days if each != day] + [day]

            today, facts = now[0].date().isoformat(), usage.facts()
            for key, name in (
                ("calls", "calls"),
                ("tokens_in", "tokens_in"),
                ("tokens_cached", "cached"),
                ("tokens_out", "tokens_out"),
            ):
                assert facts[key] == literal.sum(name)
            assert (facts["retained"], facts["not_retained"]) == (
                literal.sum("retained"),
                literal.sum("not_retained"),
            )
            assert facts["paused"] == literal.paused
            assert usage._now[1].total.lines == literal.sum("lines")
            assert usage._now[1].total.ms == literal.sum("ms")
            if len(set(last_days) | {today}) <= usage_sums.DAYS_KEPT + 1:
                assert facts["calls_today"] == literal.sum("calls", today)
                assert usage.spent_today() == literal.sum("tokens_in", today) + literal.sum(
                    "tokens_out", today
                )
        breaker["on"] = False
        usage.close()
        assert facts_of(directory, lambda: now[0]) == usage.facts()


# ---- damage


def test_a_last_line_torn_at_any_byte_is_the_line_before(usage, tmp_path, clock):
    call(usage)
    before = facts_of(tmp_path, clock)
    first = (tmp_path / NAME).read_bytes()
    failed(usage, CallError("timed out: é"))
    whole = (tmp_path / NAME).read_bytes()
    after = facts_of(tmp_path, clock)
    for cut in range(len(first), len(whole) + 1):
        (tmp_path / NAME).write_bytes(whole[:cut])
        # A complete line that lacks its newline is a line.
        there = after if cut >= len(whole) - 1 else before
        assert facts_of(tmp_path, clock) == there
        next_one = Usage(tmp_path, clock)
        call(next_one)
        assert next_one.facts()["calls"] == there["calls"] + 1
        assert facts_of(tmp_path, clock) == next_one.facts()
        assert (tmp_path / NAME).read_bytes().startswith(whole[:cut])
        assert (tmp_path / NAME).read_bytes()[cut : cut + 1] == (
            b"{" if cut in (len(first), len(whole)) else b"\n"
        )


def test_a_damaged_byte_never_gives_other_sums(usage, tmp_path, clock):
    call(usage)
    call(usage, tokens_in=7)
    whole = (tmp_path / NAME).read_bytes()
    start = whole.index(b"\n") + 1
    right = facts_of(tmp_path, clock)
    (tmp_path / NAME).write_bytes(whole[:start])
    before = facts_of(tmp_path, clock)
    for at in range(start, len(whole) - 1):
        (tmp_path / NAME).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = facts_of(tmp_path, clock)
        assert found in (before, right)
        assert (
            found == before or b"crc" in whole[at - 4 : at + 5]
        )  # only the checksum itself was hit


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\0" * 100_000,
        b"\xff\xfe" * 30,
        b'{"date":"2026-05-01"}',
        b"[]",
        b"3",
        b'{"day":3,"all":{}}',
        b'{"day":{"date":3},"all":{}}',
        b'{"day":{"date":"2026-05-01"},"all":[]}',
        b'{"day":{"date":"2026-05-01","in":-1},"all":{}}',
        b'{"day":{"date":"2026-05-01"},"all":{"in":true}}',
        b'{"day":{"date":"2026-05-01"},"all":{},"last_error":[1]}',
        b'{"a":' * 5000,
    ],
)
def test_rubbish_at_the_end_is_stepped_over(usage, tmp_path, clock, rubbish):
    call(usage)
    before = usage.facts()
    with (tmp_path / NAME).open("ab") as file:
        file.write(rubbish)
    assert facts_of(tmp_path, clock) == before
    call(usage)
    assert facts_of(tmp_path, clock)["calls"] == 2


def test_a_file_with_nothing_to_read_counts_as_nothing(tmp_path, clock):
    (tmp_path / NAME).write_bytes(b"what\nis\nthis\n" + b"\0" * 3_000_000)
    assert facts_of(tmp_path, clock)["calls"] == 0
    call(usage := Usage(tmp_path, clock))
    assert usage.facts()["calls"] == facts_of(tmp_path, clock)["calls"] == 1


def test_a_line_written_by_hand_needs_no_checksum(usage, tmp_path):
    (tmp_path / NAME).write_text(
        '{"day": {"date": "2026-05-01", "in": 5, "seconds": 3}, "all": {"in": 9}}\n'
    )
    assert usage.spent_today() == 5
    assert usage.facts()["tokens_in"] == 9


def test_a_file_that_is_deleted_gives_the_day_no_second_budget(usage, tmp_path):
    call(usage)
    (tmp_path / NAME).unlink()
    assert usage.spent_today() == 110
    call(usage)
    assert usage.spent_today() == 220
    assert lines_of(tmp_path)[0]["all"]["calls"] == 2


# ---- a disk that refuses


def test_a_disk_that_refuses_is_told_once_and_made_up_for_later(usage, tmp_path, clock, caplog):
    call(usage)
    with faults.disk(at=0, how=faults.no_space, only="write", for_ever=True):
        for _ in range(10):
            call(usage)
        assert "full" in usage.trouble
        assert usage.facts()["calls"] == 11
        assert usage.spent_today() == 1210
        assert facts_of(tmp_path, clock)["calls"] == 1
    call(usage)
    assert usage.trouble == ""
    assert facts_of(tmp_path, clock) == usage.facts()
    assert [line["all"]["calls"] for line in lines_of(tmp_path)] == list(range(1, 13))
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "No space" in caplog.text
    assert "again" in caplog.text


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("how", [faults.no_space, faults.disk_error])
def test_wherever_writing_fails_no_call_is_counted_twice(tmp_path, clock, step, how):
    usage = Usage(tmp_path, clock)
    with faults.disk(at=step, how=how, landing=100):
        call(usage)
    call(usage)
    assert facts_of(tmp_path, clock)["calls"] == usage.facts()["calls"] == 2


def test_a_file_that_can_never_be_written_costs_bounded_memory_and_loses_no_count(
    usage, tmp_path, clock
):
    (tmp_path / NAME).mkdir()
    for number in range(500):
        if number == 300:
            clock.forward(days=1)
        call(usage)
        usage.count(lines=1, retained=number % 2, not_retained=(number + 1) % 2)
    assert len(usage._pending) <= 65
    expected = usage.facts(backlog=10)
    assert expected["seconds_left"] == 20
    assert (
        expected["calls"],
        expected["calls_today"],
        expected["retained"],
        expected["not_retained"],
    ) == (500, 200, 250, 250)
    (tmp_path / NAME).rmdir()
    usage.close()
    assert facts_of(tmp_path, clock, backlog=10) == expected
    assert usage._base.total.lines == 500
    assert sum(line.get("calls", 1) for line in lines_of(tmp_path) if line["what"] == "line") == 500


def test_over_sums_that_could_not_be_read_none_are_written(
    usage, tmp_path, clock, monkeypatch, caplog
):
    call(usage)
    other = Usage(tmp_path, clock)

    def read_at(path, *_):
        raise StoreError(f"cannot read {path}: Input/output error", path=path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reads, "read_at", read_at)
        call(other)
        call(other)
        assert other.spent_today() == 220
    assert len(lines_of(tmp_path)) == 1
    call(other)
    assert facts_of(tmp_path, clock)["calls"] == other.facts()["calls"] == 4
    assert len(caplog.records) == 2


def test_a_link_in_place_of_the_file_is_not_followed(usage, tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"mine\n")
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    call(usage)
    assert (tmp_path / "elsewhere").read_bytes() == b"mine\n"
    assert usage.spent_today() == 110


# ---- days


def test_the_budget_ends_and_a_new_day_brings_another(usage, clock):
    assert usage.allows(0)
    call(usage)
    assert usage.allows(111)
    assert not usage.allows(110)
    assert usage.allows(0)
    clock.forward(hours=14, minutes=59, seconds=59)
    assert not usage.allows(110)
    clock.forward(seconds=1)
    assert usage.allows(110)
    assert usage.facts()["calls_today"] == 0
    assert usage.facts()["calls"] == 1


def test_a_day_is_that_of_the_clock_and_not_of_greenwich(tmp_path):
    here = timezone(timedelta(hours=-7))
    with freeze_time("2026-05-02 05:00:00"):
        usage = Usage(tmp_path, lambda: datetime.now(here))
        call(usage)
        (line,) = lines_of(tmp_path)
        assert line["day"]["date"] == "2026-05-01"
        assert line["date"] == "2026-05-01T22:00:00-07:00"
    with freeze_time("2026-05-02 06:59:59"):
        assert usage.spent_today() == 110
    with freeze_time("2026-05-02 07:00:00"):
        assert usage.spent_today() == 0


def test_a_call_belongs_to_the_day_on_which_it_came_back(usage, clock):
    clock.forward(hours=15)
    call(usage, seconds=60)
    assert usage.facts()["calls_today"] == 1


@pytest.mark.parametrize(
    "steps",
    [
        [1, -1],
        [-1, 1],
        [1, 1, -2],
        [3, -3],
        [200, -200],
        [1, -1, 1, -1],
        [1, 1, 1, -3],
        [-1, -1, -1, 3],
    ],
)
def test_a_clock_that_comes_back_to_a_day_brings_no_second_budget(usage, tmp_path, clock, steps):
    spent = {}
    for step in [0, *steps]:
        clock.forward(days=step)
        call(usage)
        spent[clock().date()] = spent.get(clock().date(), 0) + 110
    assert usage.spent_today() == Usage(tmp_path, clock).spent_today() == spent[clock().date()]
    assert not usage.allows(spent[clock().date()])


def test_a_clock_that_was_far_ahead_does_not_hold_up_the_days_until_then(usage, clock):
    clock.forward(days=4000)
    call(usage)
    clock.forward(days=-4000)
    assert usage.allows(110)


# ---- other processes and threads


def test_two_readers_see_each_line_as_soon_as_it_is_there(usage, tmp_path, clock):
    one, two = Usage(tmp_path, clock), Usage(tmp_path, clock)
    for _ in range(3):
        call(usage)
        assert one.facts() == two.facts() == usage.facts()
        usage.pause("no credit")
        assert one.paused == two.paused == "no credit"
        call(usage)
        assert one.paused == "no credit"
        usage.resume()
        assert one.paused == two.paused == ""


def test_who_takes_over_goes_on_from_what_the_other_wrote(usage, tmp_path, clock):
    call(usage)
    other = Usage(tmp_path, clock)
    assert other.spent_today() == 110
    call(usage)
    call(other)
    call(usage)
    assert usage.facts() == other.facts() == facts_of(tmp_path, clock)
    assert usage.facts()["calls"] == 4


def test_what_could_not_be_written_is_added_to_what_another_wrote_since(usage, tmp_path, clock):
    call(usage)
    with faults.disk(at=0, how=faults.no_space, only="write", for_ever=True):
        call(usage)
    call(Usage(tmp_path, clock))
    assert usage.facts()["calls"] == 3
    call(usage)
    assert facts_of(tmp_path, clock)["calls"] == 4


def test_a_pause_is_one_line_however_often_it_is_said(usage, tmp_path):
    for _ in range(5):
        usage.pause("402: no credit")
    usage.resume()
    usage.resume()
    assert [(line["what"], line.get("paused")) for line in lines_of(tmp_path)] == [
        ("pause", "402: no credit"),
        ("resume", None),
    ]


def test_calls_may_be_noted_at_once(usage, tmp_path, clock):
    stop = threading.Event()
    seen = []

    def look():
        reader = Usage(tmp_path, clock)
        while not stop.is_set():
            seen.append((reader.facts()["calls"], usage.facts()["calls"]))

    watcher = threading.Thread(target=look)
    threads = [threading.Thread(target=lambda: [call(usage) for _ in range(100)]) for _ in range(4)]
    pace = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        watcher.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        watcher.join()
        sys.setswitchinterval(pace)
    assert [line["all"]["calls"] for line in lines_of(tmp_path)] == list(range(1, 401))
    for side in zip(*seen, strict=True):
        assert list(side) == sorted(side)


def test_a_reader_does_not_wait_for_a_disk_that_hangs(usage, tmp_path, monkeypatch):
    call(usage)
    hanging, go_on = threading.Event(), threading.Event()

    def append(path, data, real=files.append):
        offset = real(path, data)
        hanging.set()
        assert go_on.wait(30)
        return offset

    monkeypatch.setattr(files, "append", append)
    thread = threading.Thread(target=call, args=(usage,))
    thread.start()
    try:
        assert hanging.wait(30)
        assert usage.facts()["calls"] == 2  # counted, though not known to be on the disk
        assert usage.spent_today() == 220
    finally:
        go_on.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_note_though_a_thread_of_its_parent_was_writing(usage, tmp_path, clock):
    call(usage)
    with usage._mutex:
        usage._pending.append(usage_sums.Event("2026-05-01", "line", calls=1))
        usage.after_fork()  # as the child calls it, with the mutex held for ever
        call(usage)
    assert usage.facts()["calls"] == facts_of(tmp_path, clock)["calls"] == 2


# ---- facts


def test_the_facts_are_the_promised_ones(usage):
    call(usage)
    facts = usage.facts(name="given", backlog=10, jobs=4, messages=50)
    assert facts == {
        "name": "given",
        "paused": "",
        "calls_today": 1,
        "tokens_in_today": 100,
        "tokens_cached_today": 40,
        "tokens_out_today": 10,
        "calls": 1,
        "tokens_in": 100,
        "tokens_cached": 40,
        "tokens_out": 10,
        "tokens_per_message": 2.2,
        "backlog": 10,
        "seconds_left": 5,
        "retained": 0,
        "not_retained": 0,
        "last_error": "",
    }
    assert usage.facts()["name"] == "small"
    json.dumps(facts)


def test_how_long_calls_take_is_unknown_until_one_tells(usage):
    assert usage.facts(backlog=5)["seconds_left"] is None
    assert usage.facts(backlog=0)["seconds_left"] == 0
    failed(usage, ModelDownError("down"), seconds=0.0)
    assert usage.facts(backlog=5)["seconds_left"] is None
    call(usage, seconds=4)
    assert usage.facts(backlog=5, jobs=2)["seconds_left"] == 10


def test_recent_calls_count_for_how_long_it_takes(usage, tmp_path, clock):
    for seconds in [1] * 30 + [9] * 40:
        call(usage, seconds=seconds)
    assert 850 <= usage.facts(backlog=100)["seconds_left"] <= 900
    assert facts_of(tmp_path, clock, backlog=100) == usage.facts(backlog=100)


def test_lines_that_take_several_calls_take_as_much_longer(usage):
    for _ in range(3):
        call(usage, seconds=2)
        call(usage, seconds=2)
        usage.count(lines=1)
    assert usage.facts(backlog=10, jobs=1)["seconds_left"] == 40


def test_a_failure_is_told_until_the_model_has_answered_for_a_while(usage, tmp_path, clock):
    failed(usage, CallError("timed out"))
    for number in range(usage_sums.FORGIVEN_AFTER):
        assert facts_of(tmp_path, clock)["last_error"], number
        call(usage)
    assert facts_of(tmp_path, clock)["last_error"] == ""


# ---- size


def test_a_hundred_thousand_lines_are_read_at_the_cost_of_one(tmp_path, clock, monkeypatch):
    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir()
    many.mkdir()
    state, lines = usage_sums.State(), []
    for number in range(100_000):
        event = usage_sums.Event(
            "2026-05-01T09:00:00+00:00", "line", "small", (0, number), 1, 1000, 500, 50, ms=1500
        )
        state = state.after(event)
        lines.append(usage_sums.encode(event, state))
    (few / NAME).write_bytes(b"".join(lines[:100]))
    (many / NAME).write_bytes(b"".join(lines))
    assert (many / NAME).stat().st_size > 20_000_000
    asked = []

    def read_at(path, offset, length, real=reads.read_at):
        asked.append((path.parent.name, length))
        return real(path, offset, length)

    monkeypatch.setattr(reads, "read_at", read_at)
    monkeypatch.setattr(reads, "scan", None)
    monkeypatch.setattr(reads, "read_file", None)
    assert facts_of(few, clock)["calls"] == 100
    facts = facts_of(many, clock)
    assert (facts["calls"], facts["tokens_in"], facts["tokens_out_today"]) == (
        100_000,
        100_000_000,
        5_000_000,
    )
    call(Usage(many, clock))
    assert asked == [("few", 16_384), ("many", 16_384), ("many", 16_384)]


def test_looking_again_reads_nothing_while_nobody_has_written(usage, tmp_path, monkeypatch):
    call(usage)
    usage.facts()
    monkeypatch.setattr(reads, "read_at", None)
    for _ in range(3):
        usage.facts()
        assert not usage.allows(10)
        call(usage)


def test_the_longest_line_fits_into_what_is_read_from_the_end(tmp_path, clock):
    usage = Usage(tmp_path, clock)
    for days in range(6):
        clock.forward(days=days)
        usage.note(
            "retain",
            model="\\" * 5000,
            sent=ASKED,
            seconds=1e9,
            error=CallError('"\\' * 3000),
            paused='"\\' * 3000,
            place=(48, 2**48),
        )
    assert max(map(len, (tmp_path / NAME).read_bytes().split(b"\n"))) < 8192
