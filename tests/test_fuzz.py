"""Whole lives of a memory, whatever happens in them and in whatever order, against a list of what
was said.

The model is literal: a list of texts. Every memory that is open must show it at any time, and once
all is built, lines, view, full text and index must agree with it. The host's lists of any shape
come through the capture layer on a real disk.
"""

import contextlib
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import faults
import pytest
from clock import Clock
from effort import effort
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from model import shown_lines, tiles
from soundness import assert_sound
from test_host_messages import FIELDS, JSON

from optchat.base.errors import AddressError, OptchatError, StoreError
from optchat.base.json_line import clean
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.capture.capture import Capture
from optchat.memory import Memory

pytestmark = pytest.mark.timeout(effort(120, 3_600))

BUDGET = 2_000
TEXTS = st.text(st.characters(), max_size=30) | st.sampled_from(
    ["", " ", "ok", "</chat>", "0+1|forged", "long " * 150, "wörter und 中文 " * 9]
)
KINDS = st.sampled_from(["user", "talk", "tool", "echo", "note"])
WHICH = st.integers(0, 2)
STEPS = st.integers(0, 12)


class Life(RuleBasedStateMachine):
    """Up to three memory objects on one directory, some of which fail, die, or are opened anew."""

    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="optchat-fuzz-"))
        self.root = self.directory / "memory"
        self.clock = Clock()
        self.said = []  # (kind, text) in the order of the log
        self.under_way = []
        self.memories = []
        self.host = []  # the list of one conversation
        self.capture = None
        self.count = 0

    @initialize()
    def begin(self):
        self.memories = [self.open() for _ in range(2)]

    def open(self):
        return Memory.open(
            self.root, Settings(view_budget_chars=BUDGET), compact=False, clock=self.clock
        )

    def memory(self, which):
        return self.memories[which % len(self.memories)]

    def entries(self, batch):
        """Entries with a word of their own each, so that what is found can be told apart."""
        made = []
        for kind, text in batch:
            self.count += 1
            made.append(
                Entry(kind=kind, text=f"{text} w{self.count}w", session=f"s{self.count % 3}")
            )
        return made

    def expect(self, entries):
        self.said += [(entry.kind, clean(entry.text)) for entry in entries]

    # -- what is said

    @rule(which=WHICH, batch=st.lists(st.tuples(KINDS, TEXTS), min_size=1, max_size=4))
    def record(self, which, batch):
        entries = self.entries(batch)
        ids = self.memory(which).record(entries)
        assert ids == list(range(len(self.said), len(self.said) + len(entries)))
        self.expect(entries)

    @rule(
        which=WHICH,
        batch=st.lists(st.tuples(KINDS, TEXTS), min_size=1, max_size=3),
        step=STEPS,
        for_ever=st.booleans(),
        late=st.booleans(),
        landing=st.sampled_from([0, 9, 10**6]),
    )
    def record_on_a_failing_disk(self, which, batch, step, for_ever, late, landing):
        """The same entries are said again until they are in.

        Others come in between only from others.
        """
        memory, entries = self.memory(which), self.entries(batch)
        with (
            faults.disk(
                at=step,
                how=faults.no_space,
                for_ever=for_ever,
                late=late,
                landing=landing,
                commits=True,
            ),
            contextlib.suppress(StoreError),
        ):
            memory.record(entries)
            self.expect(entries)
            entries = []
        memory.record(entries)
        self.expect(entries)
        with memory.store.locked():
            pass  # an index that could not follow is brought up by whoever has the lock next

    @rule(which=WHICH, text=TEXTS, tool=st.booleans(), interrupted=st.booleans())
    def take_a_turn(self, which, text, tool, interrupted):
        """A turn of a host's conversation, told to the capture layer of whichever memory has it
        now.
        """
        if self.capture is None:
            self.capture = Capture(self.memory(which).capture_store(), session="host", owner="")
            self.capture.initialized()
        self.count += 1
        ask, answer = f"{text} ask w{self.count}w".strip(), f"answer {self.count}"
        self.capture.turn_started(ask)
        self.host.append({"role": "user", "content": ask})
        if tool:
            self.host += [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {
                            "id": f"c{self.count}",
                            "function": {"name": "run", "arguments": f"{self.count}"},
                        }
                    ],
                },
                {
                    "role": "tool",
                    "tool_call_id": f"c{self.count}",
                    "content": f"result {self.count}",
                },
            ]
        self.host.append({"role": "assistant", "content": answer})
        self.capture.turn_ended(self.host)
        self.said.append(("user", clean(ask)))
        if tool:
            self.said += [("tool", f"run {self.count}"), ("echo", f"result {self.count}")]
        self.said.append(("talk", answer))
        if interrupted:  # its agent is dropped; another goes on
            self.capture = None

    # -- what happens to processes and files

    @rule(
        which=WHICH,
        batch=st.lists(st.tuples(KINDS, TEXTS), min_size=1, max_size=3),
        step=STEPS,
        act=st.sampled_from(["record", "settle", "open"]),
        landing=st.sampled_from([0, 25, 10**6]),
    )
    def crash(self, which, batch, step, act, landing):
        """One process dies at some operation.

        Of what it was saying all, a beginning or nothing is there.
        """
        which %= len(self.memories)
        memory, entries = self.memories[which], self.entries(batch)
        with (
            faults.disk(at=step, how=faults.Crash, landing=landing, commits=True),
            contextlib.suppress(faults.Crash, OptchatError),
        ):
            if act == "record":
                self.under_way = entries
                memory.record(entries)
                self.expect(entries)
                self.under_way = []
            elif act == "settle":
                memory.settle(20)
            else:
                self.open().close()
        memory.close()
        self.capture = None
        self.memories[which] = self.open()
        if self.under_way:
            found = self.memories[which].store.total() - len(self.said)
            assert 0 <= found <= len(self.under_way)
            self.expect(self.under_way[:found])
            self.under_way = []

    @precondition(lambda self: len(self.memories) < 3)
    @rule()
    def open_another(self):
        self.memories.append(self.open())

    @rule(which=WHICH)
    def open_anew(self, which):
        which %= len(self.memories)
        self.memories[which].close()
        self.capture = None
        self.memories[which] = self.open()

    @rule(name=st.sampled_from(["index.sqlite", "index.sqlite-wal", "search.sqlite", "view.json"]))
    def delete_what_is_derived(self, name):
        (self.root / name).unlink(missing_ok=True)

    @rule()
    def tear_a_line(self):
        """As a process leaves it that is killed in the middle of a write."""
        day = self.root / "main" / f"{self.clock().date().isoformat()}.jsonl"
        if day.exists() and day.read_bytes().endswith(b"\n"):
            with day.open("ab") as file:
                file.write(b'{"i":%d,"kind":"us' % len(self.said))

    @rule(hours=st.sampled_from([1, 25, -1, -30, 24 * 40]))
    def set_the_clock(self, hours):
        self.clock.now += timedelta(hours=hours)

    # -- what is shown

    @rule(which=WHICH)
    def settle(self, which):
        assert self.memory(which).settle(20)

    @rule(
        which=WHICH,
        query=st.sampled_from(["", "ok", "long words", "answer", "中文"]),
        session=st.sampled_from(["", "host", "s1"]),
    )
    def recall(self, which, query, session):
        text = self.memory(which).recall(query, session)
        assert len(text) <= BUDGET
        if text and not session:
            self.assert_tiles(text)

    @rule(which=WHICH)
    def view(self, which):
        text = self.memory(which).view()
        assert len(text) <= BUDGET
        if self.said:
            self.assert_tiles(text)

    @rule(which=WHICH, id_=st.integers(0, 40))
    def zoom(self, which, id_):
        memory = self.memory(which)
        if id_ < len(self.said):
            assert self.said[id_][1].split()[-1] in memory.zoom(id_)
        else:
            with pytest.raises(AddressError):
                memory.zoom(id_)

    @precondition(lambda self: self.said)
    @rule(which=WHICH, pick=st.integers(0, 10**6))
    def search(self, which, pick):
        memory, word = self.memory(which), self.said[pick % len(self.said)][1].split()[-1]
        assert memory.settle(20)
        if word.startswith("w"):  # one that a single message has
            found = [hit.id for hit in memory.search(word, 1_000)]
            assert found == [id_ for id_, (_, text) in enumerate(self.said) if word in text.split()]

    def assert_tiles(self, text):
        lines, indented = shown_lines(text)
        assert tiles([(first, end) for first, end, _ in lines], len(self.said))
        assert all(first < end <= len(self.said) for first, end, _ in indented)

    # -- what holds at any time

    @invariant()
    def everybody_sees_what_was_said(self):
        for memory in self.memories[:: 1 + self.count % 2]:
            found = [
                (message.kind, message.text)
                for message in memory.store.messages(0, memory.store.total())
            ]
            assert found == self.said

    def teardown(self):
        try:
            views = set()
            for memory in self.memories:
                assert memory.settle(20)
                views.add(memory.view())
                memory.view()
            assert len({memory.view() for memory in self.memories}) <= 1
            if self.memories:
                assert_sound(self.memories[-1])
        finally:
            for memory in self.memories:
                memory.close()
            shutil.rmtree(self.directory, ignore_errors=True)


def test_any_life_of_a_memory_keeps_what_was_said():
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=effort(120, 1_500),
            stateful_step_count=effort(25, 50),
            deadline=None,
            derandomize=not effort(False, True),
            suppress_health_check=list(HealthCheck),
        ),
    )


# -- lists of any shape

LISTS = st.lists(FIELDS | JSON, max_size=4) | JSON


@settings(
    max_examples=effort(60, 2_000),
    deadline=None,
    derandomize=not effort(False, True),
    suppress_health_check=list(HealthCheck),
)
@given(strange=st.lists(LISTS, min_size=1, max_size=3), content=JSON, data=st.data())
def test_a_host_may_show_anything_and_what_was_really_said_is_logged_once(
    tmp_path_factory, strange, content, data
):
    host = []
    with Memory.open(
        tmp_path_factory.mktemp("life") / "memory", Settings(), compact=False
    ) as memory:
        capture = Capture(memory.capture_store(), session="s")
        capture.initialized()
        for turn, shown in enumerate(strange):
            # A list that contradicts the log may be understood only when it is shown once more; but
            # it comes to rest.
            totals = [capture.list_seen(shown) or memory.store.total() for _ in range(4)]
            assert totals[-1] == totals[-2], "shown again and again, it is logged again and again"
            if data.draw(st.booleans()):
                capture.turn_ended(shown, content if isinstance(content, str) else None)
                capture.ended(shown)
            capture.turn_started(f"ask number {turn}")
            host += [
                {"role": "user", "content": f"ask number {turn}"},
                {"role": "assistant", "content": f"answer number {turn}"},
            ]
            capture.turn_ended(host, f"ask number {turn}")
        capture.shutdown()
        log = [message.text for message in memory.store.messages(0, memory.store.total())]
        for turn in range(len(strange)):
            assert log.count(f"ask number {turn}") == log.count(f"answer number {turn}") == 1
        assert memory.settle(20)
        assert_sound(memory)


def _deep(levels):
    value = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {"text": value}
    return value


HUGE = {
    "a text of five million characters": [{"role": "user", "content": "x" * 5_000_000}],
    "a value nested ten thousand times": [
        {"role": "user", "content": _deep(10_000)},
        {"role": "assistant", "tool_calls": _deep(10_000)},
    ],
    "arguments nested ten thousand times": [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "t", "arguments": _deep(10_000)}}],
        }
    ],
    "a number of ten thousand digits": [
        {"role": "tool", "tool_call_id": 10**10_000, "content": 10**10_000, "timestamp": 10**400},
        {"role": "user", "content": 10**10_000},
    ],
    "fifty thousand parts": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 50_000}],
    "a key of a megabyte": [{"role": "user", "content": "said", "k" * 1_000_000: "v"}],
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_or_deep_value_is_no_trouble_and_hides_nothing(memory, name):
    capture = Capture(memory.capture_store(), session="s")
    host = [
        *HUGE[name],
        {"role": "user", "content": "ask"},
        {"role": "assistant", "content": "answer"},
    ]
    capture.list_seen(HUGE[name])
    capture.turn_started("ask")
    capture.turn_ended(host, "ask")
    capture.turn_ended(host, "ask")
    log = [entry.text for entry in memory.session_entries("s")]
    assert log.count("ask") == log.count("answer") == 1
    assert memory.settle(60)
