"""A memory whose lines a model writes.

What it is asked, what is kept of its answers, and what becomes of the tree when it misbehaves.
"""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from soundness import assert_sound

from optchat import Memory
from optchat.base.address import Place
from optchat.base.errors import StoreError
from optchat.base.record import Entry
from optchat.base.settings import RetainPreFilter, Settings
from optchat.compaction import model_calls, scheduler
from optchat.compaction.context import HIGH_BYTES
from optchat.compaction.model import CallError, Model, ModelDownError, Reply
from optchat.compaction.prompts import FRAMES, SYSTEM

POISON = "xyzzy"
LONG = (
    "We agreed with Maria that the release moves to 12 June because three invoices of Tuesday "
    "are missing and the retry in migration_0042 failed"
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(model_calls, "RETRY_S", 0.02)
    monkeypatch.setattr(model_calls, "PAUSES_S", (0.05, 0.1))


def said(count, first=0, kind="user", text=LONG):
    return [Entry(kind=kind, text=f"{first + k}: {text}. " * 6, session="s") for k in range(count)]


class Writer:
    """A model that writes the beginning of each source.

    On messages that hold the poison it does as told.
    """

    def __init__(self, on_poison=None, always=None):
        self.on_poison, self.always = on_poison, always
        self.requests, self.mutex = [], threading.Lock()

    def __call__(self, said, model):
        with self.mutex:
            self.requests.append([*said, model])
        sources = [
            part.split(f"\n</{FRAMES[1]}>")[0]
            for part in said[1].content.split(f"<{FRAMES[1]}>\n")[1:]
        ]
        if self.always:
            return self.always(said, sources)
        if self.on_poison and any(POISON in source for source in sources):
            return self.on_poison(said, sources)
        return Reply(self.line(said[1].content, sources), 1000, 50, 800)

    @staticmethod
    def line(content, sources):
        kind = content.partition("of the kind ")[2].partition(":")[0]
        room = 400 // len(sources)
        return (f"{kind}: " if len(sources) == 1 else "") + " ".join(
            s[:room].rpartition(" ")[0] for s in sources
        )

    @property
    def texts(self):
        return ["\n".join(one.content for one in request[:-1]) for request in self.requests]


@pytest.fixture
def wrote(opened):
    """A memory whose lines this writer writes."""

    def open_(writer, **settings):
        return opened(
            settings=Settings(summarizer="model", **settings),
            model=Model("tiny-1", writer),
            compact=True,
        )

    return open_


def settle(memory):
    """Until the tree is whole, whatever pauses there are in between."""
    end = time.monotonic() + 60
    while not memory.settle(60):
        assert time.monotonic() < end
        time.sleep(0.02)


def builders(memory, total):
    """Who built each line, by address."""
    names = ("free", "local", "model", "fallback")
    rows = memory.store.read(lambda index: index.rows("SELECT level, idx, by FROM nodes"))
    assert len(rows) == sum(total >> level for level in range(total.bit_length()))
    return {Place(level, index).address: names[by] for level, index, by in rows}


# -- what it is asked


def test_a_models_lines_are_kept_and_the_tree_is_whole(wrote):
    writer = Writer()
    memory = wrote(writer)
    memory.record(said(16))
    assert memory.settle(60)
    by = builders(memory, 16)
    assert set(by.values()) == {"model"}
    assert len(writer.requests) == 31
    assert_sound(memory)
    assert "0+16|" not in memory.view()
    assert memory.status()["summarizer"] == "model tiny-1"


def test_every_request_begins_with_the_same_words_and_holds_its_source(wrote):
    writer = Writer()
    memory = wrote(writer)
    memory.record(said(16))
    memory.settle(60)
    assert {request[0].content for request in writer.requests} == {SYSTEM}
    assert (
        sum(
            "15: We agreed" in request[1].content.split(f"</{FRAMES[0]}>")[1]
            for request in writer.requests
        )
        >= 1
    )
    later = writer.requests[-1][1].content
    assert (
        "user: 0: We agreed" in later.split(f"</{FRAMES[0]}>")[0]
        or len(later.split(f"<{FRAMES[1]}>")) == 3
    )


def test_tool_calls_and_results_get_local_lines_and_so_does_what_only_merges_them(wrote):
    writer = Writer()
    memory = wrote(writer)
    memory.record([*said(4, kind="echo"), *said(3, 4, kind="tool"), *said(1, 7)])
    assert memory.settle(60)
    by = builders(memory, 8)
    assert {address for address, who in by.items() if who == "model"} == {
        "7+1",
        "6+2",
        "4+4",
        "0+8",
    }
    assert {by[address] for address in ("0+2", "2+2", "4+2", "0+4")} <= {"local", "free"}
    assert {by[f"{k}+1"] for k in range(7)} == {"local"}
    assert len(writer.requests) == 4


def test_short_messages_cost_no_call_however_many_wait_for_a_model(wrote):
    gate = threading.Event()
    writer = Writer(
        always=lambda said, sources: (gate.wait(20), Reply(Writer.line(said[1].content, sources)))[
            1
        ]
    )
    memory = wrote(writer)
    memory.record([*said(20), *[Entry(kind="user", text="short")] * 5])
    end = time.monotonic() + 10
    while "24+1|user: short" not in memory.view() and time.monotonic() < end:
        time.sleep(0.01)
    assert memory.view().count("|user: short") == 5
    assert len(writer.requests) <= 4
    gate.set()
    assert memory.settle(60)
    builders(memory, 25)


def test_no_secret_and_no_picture_is_sent(wrote):
    writer = Writer()
    memory = wrote(writer)
    key, token = "sk-proj-" + "a1B2" * 12, "x9" * 23
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 20_000
    memory.record(
        [
            Entry(kind="user", text=f"my key is {key}. " + LONG * 5),
            Entry(kind="user", text=f"short: api_key={token}"),
        ]
    )
    memory.record(
        [Entry(kind="talk", text=f'{{"api_key": "{token}"}} {picture} ' + LONG * 5), *said(3, 3)]
    )
    assert memory.settle(60)
    for text in writer.texts:
        assert key not in text
        assert token not in text
        assert "iVBORw0KGgo" * 10 not in text
        assert len(text.encode()) < 50_000
    assert memory.message(2).text.count("iVBORw0KGgo") == 20_000


def test_no_request_is_larger_than_context_source_and_prompt(wrote):
    writer = Writer()
    memory = wrote(writer)
    memory.record([*said(150), Entry(kind="user", text=LONG * 2_000), *said(20, 151)])
    assert memory.settle(120)
    assert HIGH_BYTES / 2 < max(len(text.encode()) for text in writer.texts) < 70_000


# -- a model that misbehaves


BAD = {
    "returns nothing": lambda said, sources: Reply(""),
    "returns None": lambda said, sources: Reply(None),
    "only thinks": lambda said, sources: Reply("<think>what shall I write</think>"),
    "returns 50 KB": lambda said, sources: Reply("user: " + "blah and so on, " * 3_200),
    "echoes its input": lambda said, sources: Reply(sources[0]),
    "answers the message": lambda said, sources: Reply(
        "Sure! I would be happy to help you with that. Could you tell me more about it?"
    ),
    "invents a commit hash": lambda said, sources: Reply(
        "user: we agreed with Maria to move the release, pushed as commit 3f9ac21be7"
    ),
    "fails": lambda said, sources: (_ for _ in ()).throw(CallError("500: internal error")),
    "has a bug": lambda said, sources: (_ for _ in ()).throw(ZeroDivisionError("ours")),
    "dies in the middle": lambda said, sources: (_ for _ in ()).throw(SystemExit),
}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(bad, id=name, marks=[pytest.mark.slow] * (name == "returns 50 KB"))
        for name, bad in BAD.items()
    ],
)
def test_a_model_that_misbehaves_does_not_stop_the_tree(wrote, bad):
    memory = wrote(Writer(on_poison=bad))
    memory.record([*said(3), *said(1, 3, text=f"{LONG} {POISON}"), *said(12, 4)])
    settle(memory)
    by = builders(memory, 16)
    assert by["3+1"] == "fallback"
    everything = "\n".join(memory.zoom(id_, 2) for id_ in range(0, 16, 2)) + memory.view()
    for false in ("3f9ac21be7", "happy to help", "blah and so on, blah"):
        assert false not in everything
    assert POISON in memory.zoom(2, 2)
    assert_sound(memory)


@pytest.mark.parametrize("bad", ["returns nothing", "answers the message", "invents a commit hash"])
def test_a_model_that_always_misbehaves_leaves_local_lines_that_say_so(wrote, bad):
    writer = Writer(always=BAD[bad])
    memory = wrote(writer)
    memory.record(said(4))
    assert memory.settle(60)
    assert "model" not in builders(memory, 4).values()
    assert len(writer.requests) <= 7 * 25
    assert memory.status()["last_error"]


def test_a_slow_model_makes_no_hook_wait(wrote):
    gate = threading.Event()
    memory = wrote(
        Writer(
            always=lambda said, sources: (
                gate.wait(30),
                Reply(Writer.line(said[1].content, sources)),
            )[1]
        )
    )
    memory.record(said(20))
    memory.settle(0.3)
    start = time.monotonic()
    for k in range(20, 30):
        memory.record(said(1, k))
        memory.recall("what about the release?", session=f"s{k}")
        memory.status()
    took = time.monotonic() - start
    gate.set()
    assert took < 5, "ten turns waited for a model that takes half a minute"
    assert "not summarized yet" in memory.view()


def test_closing_does_not_wait_for_a_call_in_flight(wrote):
    gate = threading.Event()
    memory = wrote(Writer(always=lambda said, sources: (gate.wait(30), Reply("x"))[1]))
    memory.record(said(4))
    memory.settle(0.2)
    start = time.monotonic()
    memory.close()
    took = time.monotonic() - start
    gate.set()
    assert took < 4


def test_a_text_that_the_host_cannot_mask_does_not_stop_the_tree_and_is_not_sent(opened):
    writer = Writer()

    def redact(text):
        if POISON in text:
            raise RecursionError("the host's own masking")
        return text

    memory = opened(
        settings=Settings(summarizer="model"),
        model=Model("tiny-1", writer, redact=redact),
        compact=True,
    )
    memory.record(
        [
            *said(2),
            *said(1, 2, text=f"{POISON} {LONG}"),
            Entry(kind="user", text=f"short and {POISON}"),
        ]
    )
    settle(memory)
    memory.record(said(12, 4))
    settle(memory)
    by = builders(memory, 16)
    assert by["2+1"] == "fallback"
    assert by["15+1"] == "model"
    assert not any(POISON in text for text in writer.texts)


# -- a model that cannot be had


def test_a_model_that_is_down_for_long_leaves_no_fallback(opened, root, wrote):
    down = threading.Event()
    down.set()

    def always(said, sources):
        if down.is_set():
            raise ModelDownError("402: no credit left")
        return Reply(Writer.line(said[1].content, sources))

    writer = Writer(always=always)
    memory = wrote(writer)
    memory.record(said(200))
    assert not memory.settle(30)
    asked = len(writer.requests)
    assert asked < 40
    for status in (memory.status(), opened(compact=False).status()):
        assert "402: no credit left" in status["model"]["paused"]
        assert status["lines_ready"] >= 200
    assert memory.status()["model"]["backlog"] == 397, (
        "also the merges above the messages: they are paid for as well"
    )
    down.clear()
    settle(memory)
    assert set(builders(memory, 200).values()) == {"model"}
    assert memory.status()["model"]["paused"] == ""
    assert memory.status()["model"]["backlog"] == 0
    assert_sound(memory)


def test_what_was_waited_for_in_vain_is_said_by_settle_and_not_waited_for(opened):
    memory = opened(settings=Settings(summarizer="model"), compact=False)
    memory.record([*said(3), Entry(kind="user", text="short")])
    start = time.monotonic()
    assert not memory.settle()
    assert time.monotonic() - start < 10
    assert "no model can be reached" in memory.status()["model"]["paused"]
    assert "|user: short" in memory.view()


class Down:
    """A model that is down until ``back`` is set."""

    def __init__(self, reason="402: no credit left"):
        self.back, self.reason, self.asked = threading.Event(), reason, 0

    def __call__(self, said, model):
        self.asked += 1
        if not self.back.is_set():
            raise ModelDownError(self.reason)
        return Writer()(said, model)


@pytest.mark.parametrize("summarizer", ["model", "auto"])
def test_nobody_waits_for_the_model_of_another_process_that_is_down(opened, wrote, summarizer):
    memory = wrote(Down())
    memory.record(said(4))
    assert not memory.settle(30)
    other = opened(
        settings=Settings(summarizer=summarizer),
        model=Model("tiny-1", Writer()) if summarizer == "model" else None,
    )
    start = time.monotonic()
    assert not other.settle()
    assert time.monotonic() - start < 10
    assert "402" in other.status()["model"]["paused"]


def test_what_a_process_left_behind_that_was_down_when_it_ended_is_tried_by_the_next(opened):
    first = opened(settings=Settings(summarizer="model"), model=Model("tiny-1", Down()))
    first.record(said(4))
    assert not first.settle(30)
    first.close()
    writer = Writer()
    second = opened(settings=Settings(summarizer="model"), model=Model("tiny-1", writer))
    assert second.settle()
    assert len(writer.requests) == 7


def test_who_takes_the_work_up_again_still_says_that_its_model_is_down(opened, monkeypatch):
    monkeypatch.setattr(model_calls, "PAUSES_S", (60.0,))
    memory = opened(settings=Settings(summarizer="model"), model=Model("tiny-1", Down()))
    memory.record(said(4))
    for k in range(3):
        memory.record([Entry(kind="user", text=f"short {k}")])
        assert not memory.settle(30)
        assert "402" in memory.status()["model"]["paused"]


def test_calls_that_are_out_when_it_goes_down_are_waited_for_and_kept(opened):
    first, gate = threading.Event(), threading.Event()

    def always(said, sources):
        if not first.is_set():
            first.set()
            raise ModelDownError("429: too many calls")
        gate.wait(20)
        return Reply(Writer.line(said[1].content, sources))

    memory = opened(
        settings=Settings(summarizer="model"), model=Model("tiny-1", Writer(always=always))
    )
    memory.record(said(4))
    threading.Timer(0.5, gate.set).start()
    memory.settle(30)
    assert memory.store.read(lambda index: index.count("nodes")) >= 3


def test_a_process_without_the_model_leaves_the_work_to_one_that_has_it(opened, wrote):
    release_when_idle = opened(settings=Settings(summarizer="model"), compact=True)
    release_when_idle.record([*said(4), Entry(kind="user", text="short")])
    end = time.monotonic() + 10
    while "|user: short" not in release_when_idle.view():
        assert time.monotonic() < end
        time.sleep(0.01)
    memory = wrote(Writer())
    assert memory.settle(10)
    assert list(builders(memory, 5).values()).count("model") == 7


def test_lines_that_the_disk_refuses_are_bought_once(wrote, monkeypatch):
    monkeypatch.setattr(scheduler, "RETRY_S", (0.02,))
    writer = Writer()
    memory = wrote(writer)
    real, full = memory.store.commit, threading.Event()
    full.set()

    def commit(nodes, **options):
        if full.is_set():
            raise StoreError("cannot write: the disk is full", path=memory.root)
        return real(nodes, **options)

    monkeypatch.setattr(memory.store, "commit", commit)
    memory.record(said(16))
    end = time.monotonic() + 20
    while memory.compactor.failures < 10:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert len(writer.requests) <= 4
    assert "disk is full" in memory.status()["last_error"]
    full.clear()
    assert memory.settle(60)
    assert len(writer.requests) == 31
    assert set(builders(memory, 16).values()) == {"model"}


# -- cost


def test_calls_and_tokens_are_counted_for_today_and_in_all(wrote, opened):
    memory = wrote(Writer())
    memory.record(said(8))
    memory.settle(60)
    for status in (memory.status()["model"], opened(compact=False).status()["model"]):
        assert (status["calls"], status["calls_today"]) == (15, 15)
        assert (status["tokens_in"], status["tokens_out"], status["tokens_cached"]) == (
            15_000,
            750,
            12_000,
        )
        assert status["tokens_per_message"] == pytest.approx(15_750 / 8, abs=0.1)


def test_a_days_budget_is_overrun_by_the_calls_in_flight_at_most(opened, root):
    today = [datetime(2026, 5, 1, 12, tzinfo=UTC)]
    writer = Writer()
    settings = Settings(summarizer="model", compact_tokens_per_day=5_000, compact_jobs=4)
    memory = Memory.open(root, settings, model=Model("tiny-1", writer), clock=lambda: today[0])
    with memory:
        memory.record(said(32))
        assert not memory.settle(30)
        spent = (
            memory.status()["model"]["tokens_in_today"]
            + memory.status()["model"]["tokens_out_today"]
        )
        assert 5_000 <= spent <= 5_000 + 4 * 1_050
        assert "5,000 tokens are spent" in memory.status()["model"]["paused"]
        asked = len(writer.requests)
        time.sleep(0.3)
        assert len(writer.requests) == asked
        today[0] += timedelta(days=1)
        end = time.monotonic() + 20
        while len(writer.requests) == asked and time.monotonic() < end:
            time.sleep(0.05)
        assert len(writer.requests) > asked


def test_a_model_that_is_switched_on_later_buys_no_line_again(opened, wrote):
    memory = opened()
    memory.record(said(8))
    assert memory.settle(60)
    memory.close()
    writer = Writer()
    memory = wrote(writer)
    assert memory.settle(60)
    assert writer.requests == []
    memory.record(said(8, 8))
    assert memory.settle(60)
    by = builders(memory, 16)
    assert {by[f"{k}+1"] for k in range(8)} == {"local"}
    assert {by[f"{k}+1"] for k in range(8, 16)} == {"model"}
    assert len(writer.requests) == 16


def test_with_compaction_off_or_local_lines_no_call_is_made(opened):
    for number, settings in enumerate(
        (Settings(compact_enabled=False, summarizer="model"), Settings(summarizer="local"))
    ):
        writer = Writer()
        memory = opened(settings=settings, model=Model("tiny-1", writer))
        memory.record(said(4, number * 4))
        memory.settle(30)
        assert writer.requests == []
        memory.close()


@pytest.mark.parametrize(
    ("changes", "by", "calls"),
    [
        ({"node_bytes": 4_096}, {"free"}, 1),
        ({"model_kinds": ("work",)}, {"local"}, 0),
        ({"model_kinds": ("user",)}, {"local", "model"}, 8),
        ({"summarizer": "local"}, {"local"}, 0),
        ({"model_kinds": ("user", "talk", "tool")}, {"model"}, 15),
    ],
)
def test_what_waits_costs_what_the_settings_say_now(opened, changes, by, calls):
    """A user who sees what a backlog will cost, and chooses otherwise, must not pay for it all the
    same.
    """
    memory = opened(settings=Settings(summarizer="model", compact_enabled=False))
    memory.record([*said(4), *said(2, 4, "talk"), *said(2, 6, "tool")])
    memory.settle(30)
    memory.close()
    writer = Writer()
    memory = opened(
        settings=Settings(**({"summarizer": "model"} | changes)), model=Model("tiny-1", writer)
    )
    assert memory.settle(60)
    leaves = {who for address, who in builders(memory, 8).items() if address.endswith("+1")}
    assert leaves == by
    assert len([text for text in writer.texts if f"</{FRAMES[1]}>" in text]) == calls
    assert_sound(memory)


# -- turns that are not worth it


def test_a_turn_that_holds_nothing_gets_local_lines_and_every_word_is_kept(wrote):
    asked = []

    def always(said, sources):
        if len(said) == 2 and FRAMES[0] not in said[1].content:
            asked.append(said)
            return Reply(
                '{"retain": false, "reason": "small talk"}'
                if "weather" in said[-1].content
                else '{"retain": true, "reason": "a date"}'
            )
        return Reply(Writer.line(said[1].content, sources)[:120])

    memory = wrote(
        Writer(always=always), retain_pre_filter=RetainPreFilter(enabled=True), node_bytes=128
    )
    memory.record(
        [
            Entry(
                kind="user",
                text=(
                    "how is the weather where you are, tell me, and is it warm enough to sit "
                    "outside in the evening?"
                ),
                session="s",
            ),
            *said(1, 1, "talk"),
        ]
    )
    memory.record(
        [
            Entry(
                kind="user",
                text=(
                    "when do we release the whole thing then, and who has to know of it before "
                    "that day comes, if anybody?"
                ),
                session="s",
            ),
            *said(1, 3, "talk"),
        ]
    )
    memory.record(
        [Entry(kind="user", text="ok", session="s"), *said(1, 5, "talk"), *said(2, 6, "talk")]
    )
    assert memory.settle(60)
    by = builders(memory, 8)
    assert (by["1+1"], by["3+1"], by["5+1"], by["7+1"]) == ("local", "model", "local", "local")
    assert (by["0+2"], by["2+2"]) == ("local", "model")
    assert len(asked) == 2
    status = memory.status()["model"]
    assert (status["retained"], status["not_retained"]) == (1, 2)
    assert memory.message(1).text.count(LONG) == 6


# -- one at a time


def test_a_second_process_writes_no_line_twice(opened, root, wrote):
    one, two = Writer(), Writer()
    first, second = wrote(one), wrote(two)
    for k in range(6):
        (first, second)[k % 2].record(said(4, k * 4))
    assert first.settle(60)
    assert second.settle(60)
    assert len(one.requests) + len(two.requests) == 24 + 12 + 6 + 3 + 1
    assert 0 in (len(one.requests), len(two.requests))
