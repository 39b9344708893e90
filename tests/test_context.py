"""What a model is told of the past.

Built lines only, up to where it matters, growing at its end, never too long.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.base.record import Entry, Node
from optchat.base.settings import Settings
from optchat.compaction import context as module
from optchat.compaction.context import HIGH_BYTES, LOW_BYTES, Context
from optchat.compaction.model import CallError
from optchat.log import files
from optchat.tree import saved_view


def said(count, first=0, size=300):
    return [
        Entry(kind="user", text=f"message {first + k} " + "x" * (size - 20)) for k in range(count)
    ]


@pytest.fixture
def grown(opened):
    """A memory with so many messages and its whole tree."""

    def grow(count, size=300):
        memory = opened(compact=False)
        memory.record(said(count, size=size))
        assert memory.settle(60)
        return memory

    return grow


def told(memory, **changes):
    return Context(
        memory.store,
        memory.root / "context.json",
        changes.get("ready", lambda text: text.replace("\n", " ")),
    )


def test_it_holds_what_was_said_before_a_message_and_no_numbers(grown):
    context = told(grown(10))
    lines = context.text(4, 10).split("\n")
    assert [line.split(" x")[0] for line in lines] == [f"user: message {k}" for k in range(4)]
    assert context.text(0, 10) == ""


def test_it_ends_at_the_first_message_without_a_line(opened):
    memory = opened(compact=False)
    memory.record(said(10))
    memory.store.commit(
        [Node(level=0, index=k, text=f"line {k}", by="model") for k in (0, 1, 2, 5, 6)]
    )
    assert told(memory).text(9, 3).split("\n") == ["line 0", "line 1", "line 2"]


def test_it_grows_at_its_end_until_it_is_full_and_then_folds_to_half(grown):
    memory = grown(1_000)
    context = told(memory)
    before, kept, folds = "", 0, 0
    for first in range(1_001):
        text = context.text(first, 1_000)
        assert len(text.encode()) <= HIGH_BYTES
        if text.startswith(before):
            kept += 1
        else:
            folds += 1
            assert len(text.encode()) <= LOW_BYTES + 400
        before = text
    assert 5 <= folds <= 1_000 * 300 // (HIGH_BYTES - LOW_BYTES) + 2


def test_an_earlier_message_is_told_the_same_beginning_and_less_of_it(grown):
    context = told(grown(300))
    late = context.text(290, 300)
    early = context.text(256, 300)
    assert late.startswith(early)
    assert len(early) < len(late)


def test_a_log_with_a_tree_that_was_never_told_is_told_from_the_coarsest_down(grown, monkeypatch):
    memory = grown(3_000)
    asked = []
    real = memory.store.read
    monkeypatch.setattr(memory.store, "read", lambda question: (asked.append(1), real(question))[1])
    text = told(memory).text(3_000, 3_000)
    assert LOW_BYTES // 2 < len(text.encode()) <= HIGH_BYTES
    assert len(asked) < 1_000


def test_while_parents_are_missing_it_is_the_newest_that_fit(opened):
    memory = opened(compact=False)
    memory.record(said(500))
    memory.store.commit(
        [Node(level=0, index=k, text=f"line {k} " + "y" * 300, by="free") for k in range(500)]
    )
    context = told(memory)
    for first in range(0, 500, 50):
        text = context.text(first, 500)
        assert len(text.encode()) <= HIGH_BYTES
        assert not first or text.split("\n")[-1].startswith(f"line {first - 1} ")


def test_it_is_the_same_after_a_restart(grown):
    memory = grown(400)
    context = told(memory)
    for first in range(0, 300, 3):
        context.text(first, 400)
    assert saved_view.load(memory.root / "context.json")
    again = told(memory)
    assert again.text(299, 400) == context.text(299, 400)
    assert again.text(350, 400) == context.text(350, 400)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b'{"version":1,"generation":1,"budget":9,"lines":[[0,99999]]}', b"\x00" * 50],
)
def test_a_file_that_cannot_be_used_costs_nothing_but_a_cached_prefix(grown, content):
    memory = grown(200)
    (memory.root / "context.json").write_bytes(content)
    assert told(memory).text(150, 200).split("\n")[-1].startswith("user: message 149 ")


def test_a_disk_that_refuses_does_not_keep_lines_from_being_written(grown, monkeypatch, caplog):
    memory = grown(400)

    def refuse(*_):
        raise module.StoreError("cannot write: the disk is full")

    monkeypatch.setattr(files, "replace_file", refuse)
    context = told(memory)
    for first in range(0, 400, 5):
        assert len(context.text(first, 400).encode()) <= HIGH_BYTES
    assert len(caplog.records) == 1


def test_a_line_written_anew_is_told_anew(opened):
    memory = opened(compact=False)
    memory.record(said(4))
    memory.store.commit(
        [
            Node(level=0, index=k, text=f"line {k}", by="fallback" if k == 3 else "model")
            for k in range(4)
        ]
    )
    context = told(memory)
    assert context.text(4, 4).endswith("line 3")
    memory.store.commit([Node(level=0, index=3, text="better", by="model")])
    assert context.text(4, 4).endswith("better")


def test_what_is_sent_is_made_ready_once_a_line(grown):
    memory = grown(100)
    made = []
    context = told(memory, ready=lambda text: (made.append(text), text.replace("\n", " "))[1])
    for first in range(100):
        context.text(first, 100)
    assert len(made) <= 100


def test_a_line_that_cannot_be_masked_is_left_out_and_the_others_are_told(grown):
    def ready(text):
        if "message 3 " in text:
            raise CallError("cannot mask the secrets of a text")
        return text.replace("\n", " ")

    context = told(grown(10), ready=ready)
    assert [line.split(" x")[0] for line in context.text(6, 10).split("\n")] == [
        f"user: message {k}" for k in (0, 1, 2, 4, 5)
    ]
    assert context.text(4, 10).count("message") == 3


def test_where_no_line_can_be_masked_nothing_is_told(grown):
    def ready(text):
        raise CallError("cannot mask the secrets of a text")

    context = told(grown(10), ready=ready)
    assert context.text(1, 10) == ""
    with pytest.raises(CallError):
        context.text(8, 10)


@given(st.lists(st.integers(0, 80), min_size=1, max_size=30), st.data())
@settings(max_examples=30, deadline=None)
def test_whatever_is_asked_in_whatever_order_only_the_past_is_told(tmp_path_factory, firsts, data):
    from optchat import Memory

    with Memory.open(tmp_path_factory.mktemp("m"), Settings(), compact=False) as memory:
        memory.record(said(80, size=600))
        built = data.draw(st.integers(0, 80))
        memory.store.commit(
            [Node(level=0, index=k, text=f"line {k}.", by="model") for k in range(built)]
        )
        context = told(memory)
        for first in firsts:
            end = min(first, built)
            assert context.text(first, built).split("\n") == (
                [f"line {k}." for k in range(end)] or [""]
            )
