"""What is in front of the model is not sent again, and what is lost is."""

from __future__ import annotations

import threading

import pytest

from optchat.core.render import framed
from optchat.recall.ledger import Ledger, Shown, views_in


class ShownInMemory:
    """Notes as a process that goes on finds them."""

    def __init__(self):
        self.noted = {}

    def shown(self, session):
        return self.noted.get(session)

    def note_shown(self, session, shown):
        self.noted[session] = shown


@pytest.fixture
def notes():
    return ShownInMemory()


@pytest.fixture
def ledger(notes):
    return Ledger(notes)


def block(total):
    return f"<memory-context>\n[note]\n\n{framed([f'0+{total - 1}|old', f'{total - 1}+1|user: new'])}\n</memory-context>"


def turn(text, total=None):
    said = {"role": "user", "content": text}
    if total:
        said["api_content"] = f"{text}\n\n{block(total)}"
    return [said, {"role": "assistant", "content": "yes"}]


def test_a_new_session_is_due_the_view(ledger):
    assert ledger.is_due("s1", kept=True)
    assert ledger.is_due("s1", kept=False)


def test_a_session_that_has_the_view_is_not_due(ledger, notes):
    ledger.offered("s1", 8)
    ledger.seen("s1", turn("hello", 8))

    assert not ledger.is_due("s1", kept=True)
    assert not ledger.is_due("s1", kept=False)
    assert notes.noted["s1"] == Shown(8)


def test_another_process_knows_it_too(notes):
    first = Ledger(notes)
    first.offered("s1", 8)
    first.seen("s1", turn("hello", 8))

    assert not Ledger(notes).is_due("s1", kept=False)


def test_a_block_the_host_dropped_is_due_again(ledger, notes):
    ledger.offered("s1", 8)
    ledger.seen("s1", turn("hello"))

    assert ledger.is_due("s1", kept=True)
    assert notes.noted.get("s1") is None


def test_without_proof_a_block_counts_as_lost_on_a_host_that_merges_broken_turns(ledger):
    ledger.offered("s1", 8)

    assert ledger.is_due("s1", kept=False)
    assert not ledger.is_due("s1", kept=True)


def test_a_proof_that_is_on_its_way_is_waited_for(ledger):
    ledger.offered("s1", 8)
    threading.Timer(0.05, ledger.seen, ("s1", turn("hello", 8))).start()

    assert not ledger.is_due("s1", kept=False)


def test_after_a_compression_the_view_is_due_and_remains_of_old_ones_do_not_count(ledger):
    ledger.offered("s1", 8)
    ledger.seen("s1", turn("hello", 8))
    ledger.compressed("s1", 20)

    assert ledger.is_due("s1", kept=True)
    ledger.seen("s1", [*turn("hello", 8), *turn("more")])
    assert ledger.is_due("s1", kept=True)
    ledger.offered("s1", 20)
    ledger.seen("s1", [*turn("hello", 8), *turn("more", 20)])
    assert not ledger.is_due("s1", kept=True)


def test_an_undo_of_a_later_turn_leaves_the_view_where_it_is(ledger):
    ledger.seen("s1", turn("hello", 8))

    ledger.undone("s1", turns_since=3)
    assert not ledger.is_due("s1", kept=True)
    ledger.undone("s1", turns_since=3)
    assert not ledger.is_due("s1", kept=True)
    ledger.undone("s1", turns_since=3)
    assert ledger.is_due("s1", kept=True)


def test_an_undo_of_the_turn_that_carried_the_view_makes_it_due(ledger):
    ledger.seen("s1", turn("hello", 8))

    ledger.undone("s1", turns_since=1)

    assert ledger.is_due("s1", kept=True)


def test_a_branch_has_what_its_parent_had(ledger):
    ledger.seen("s1", turn("hello", 8))

    ledger.branched("s1", "s2")

    assert not ledger.is_due("s2", kept=True)
    assert ledger.is_due("s3", kept=True)


def test_views_are_found_in_strings_and_in_parts():
    parts = [{"type": "text", "text": "look"}, {"type": "text", "text": block(40)}, {"type": "image_url"}]

    assert list(views_in([*turn("a", 8), {"role": "user", "content": parts}, *turn("b")])) == [8, 40]


@pytest.mark.parametrize(
    "odd", [None, 3, "text", {}, {"role": "user"}, {"role": "user", "content": {"a": 1}}, {"role": "user", "content": [None, 3]}]
)
def test_an_odd_list_holds_no_view(odd):
    assert list(views_in([odd])) == []


def test_what_a_tool_or_the_agent_quotes_is_no_view():
    quoted = {"role": "assistant", "content": block(8)}

    assert list(views_in([quoted, {"role": "tool", "content": block(8)}])) == []
