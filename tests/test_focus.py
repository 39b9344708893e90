"""Laws 1, 3 and 12 with messages shown under the lines of the view that cover them."""

from __future__ import annotations

import model
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.base.address import Place
from optchat.base.json_line import clean
from optchat.recall.focus_lines import FRAME_CHARS, FocusLine, fitting, focus_framed, weave
from optchat.tree.render import UNBUILT, one_line
from optchat.tree.view import Line, tile

PATIENT = settings(deadline=None)
SEEDS = st.integers(0, 2**32)
SHARES = st.sampled_from([0.0, 0.3, 0.7, 0.9, 1.0])
BUDGETS = st.sampled_from([2_000, 2_345, 4_000, 16_000, 50_000])
PIECES = {"plain": ("user: something was said ", "talk: and answered "), "hostile": model.HOSTILE}


class Log:
    """Messages, the nodes built over them, and a view some earlier fold has left."""

    def __init__(
        self, total, seed, *, leaves=1.0, nodes=1.0, merges=0.5, longest=300, pieces="plain"
    ):
        dice = model.random.Random(seed)
        self.total = total
        self.built = model.some_tree(seed, total, leaves, nodes)

        def text():
            length, words = dice.randint(0, longest), ""
            while len(words) < length:
                words += dice.choice(PIECES[pieces])
            return clean(words[:length])

        self.messages = [text() for _ in range(total)]
        self.nodes = {
            node: text() if node[0] else self.messages[node[1]] for node in sorted(self.built)
        }
        self.view = model.some_view(seed, self.built, merges)

    def parent(self, place):
        text = self.nodes.get(tuple(place))
        return None if text is None else Line(place, len(text))

    def text(self, places):
        return {place: self.nodes[tuple(place)] for place in places if tuple(place) in self.nodes}

    def lines(self, ids):
        return [FocusLine(id_, one_line(self.messages[id_])) for id_ in ids]

    def show(self, ids, budget, share):
        tiles = list(
            tile([Line(Place(*node), len(self.nodes[node])) for node in self.view], self.total)
        )
        return weave(
            tiles,
            self.total,
            budget - FRAME_CHARS,
            self.lines(ids),
            share,
            parent=self.parent,
            text=self.text,
        )


def checked(log, woven, budget):
    """The two sorts of lines, after checking all that holds for whatever is shown."""
    text = focus_framed(woven)
    assert len(text) <= budget
    assert text.split("\n") == text.splitlines(), "no other sign ends a line"
    assert model.host_keeps(text) == text, "the host has nothing to strip"
    plain, indented = model.shown_lines(text)
    assert model.tiles([(first, end) for first, end, _ in plain], log.total)
    under, last = None, -1
    for row in woven:
        first, end = span(row)
        if row.startswith("  "):
            assert under[0] <= first < end <= under[1], (
                "an indented line lies inside the one it stands under"
            )
            assert first > last, "oldest first, each once"
            last = first
        else:
            under = (first, end)
    return plain, indented


def span(row):
    first, count = row.split("|", 1)[0].split("+")
    return int(first), int(first) + int(count)


@given(
    st.integers(0, 200),
    SEEDS,
    SHARES,
    SHARES,
    SHARES,
    BUDGETS,
    st.floats(0.0, 1.0),
    st.sampled_from(sorted(PIECES)),
    st.data(),
)
@settings(PATIENT, max_examples=200)
def test_what_is_pointed_to_stands_inside_the_line_that_covers_it(
    total, seed, leaves, nodes, merges, budget, share, pieces, data
):
    log = Log(total, seed, leaves=leaves, nodes=nodes, merges=merges, pieces=pieces)
    ids = data.draw(st.lists(st.integers(0, total - 1), max_size=60, unique=True)) if total else []
    woven = log.show(ids, budget, share)
    if woven is None:
        return
    _, indented = checked(log, woven, budget)
    assert indented
    for first, end, words in indented:
        assert end == first + 1
        assert first in ids
        assert words == one_line(log.messages[first]), "word for word"


@given(st.integers(1, 200), SEEDS, SHARES, BUDGETS, st.data())
@settings(PATIENT, max_examples=60)
def test_a_line_that_can_be_read_is_never_given_up_for_one_that_cannot(
    total, seed, merges, budget, data
):
    log = Log(total, seed, nodes=0.6, merges=merges)
    ids = data.draw(st.lists(st.integers(0, total - 1), max_size=60, unique=True))
    woven = log.show(ids, budget, 0.6)
    fits = (
        sum(len(f"{model.name(node)}|{log.nodes[node]}\n") for node in log.view)
        <= budget - FRAME_CHARS
    )
    if woven is not None and fits:
        plain, _ = checked(log, woven, budget)
        assert all(words != UNBUILT for _, _, words in plain)


def test_the_best_come_first_where_not_all_fit():
    log = Log(400, 1, longest=400)
    woven = log.show(range(0, 400, 7), 4_000, 0.5)
    shown = [span(row)[0] for row in woven if row.startswith("  ")]
    assert shown
    assert max(shown) < 200, "those that came first, in the order of the log"
    checked(log, woven, 4_000)


def test_what_a_line_says_word_for_word_is_not_said_again():
    log = Log(8, 1, merges=0.0)
    assert log.show(range(8), 16_000, 0.6) is None


def test_the_view_takes_back_the_room_the_messages_leave():
    log = Log(600, 3)
    alone = log.show([17], 16_000, 0.6)
    many = log.show(range(0, 600, 3), 16_000, 0.6)
    assert sum(not row.startswith("  ") for row in alone) > sum(
        not row.startswith("  ") for row in many
    )


def test_with_nothing_to_point_to_the_view_is_left_alone():
    assert Log(100, 1).show([], 16_000, 0.6) is None


def test_where_the_view_itself_shows_bare_addresses_nothing_is_added():
    log = Log(0, 1)
    log.total, log.messages = 2**48 - 1, {5: "user: five"}
    assert log.show([5], 2_000, 0.6) is None


@pytest.mark.parametrize("room", [0, 79, 100, 250])
def test_lines_are_chosen_best_first_as_long_as_they_fit(room):
    found = [FocusLine(9, "x" * 60), FocusLine(3, "y" * 400), FocusLine(5, "z" * 60)]
    chosen = fitting(found, room)
    assert [line.id for line in chosen] == {0: [], 79: [], 100: [9], 250: [9, 5]}[room]
