"""The tree of a store as lines to choose from.

What is built where, weighed, and opened from the coarsest down.

Holds nothing but the store. Used by all of ``recall/`` that shows lines, and by the compactor's
context view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base.address import Place, cover
from ..base.secrets import mask
from ..log.hidden import NOTHING, Hidden
from ..log.index import Index
from .spans import gaps, union
from .view import Line, open_up, tile

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..log.store import Store

LINES_MAX: Final = 4_096
"""More lines than this are never held: no step may cost more in a longer log."""

EXPECTED: Final = 512
"""Characters of a line that is not built yet, where nothing better is known.

The size the settings begin with.
"""


NEWEST: Final = 32
"""Messages at the end that are shown in their own words while their lines are not built yet."""


class Lines:
    """Built nodes as lines. ``measure``: what of a node counts as its size, characters or bytes.

    ``hidden``: which messages are out of sight just now. What is nothing but such is not opened:
    its lines would take the room of others and say nothing.
    """

    def __init__(
        self,
        store: Store,
        measure: Callable[[Index, Place], int | None] = Index.chars,
        hidden: Callable[[], Hidden] = lambda: NOTHING,
    ) -> None:
        self._store = store
        self._hidden = hidden
        self._measure = measure

    def at(self, place: Place) -> Line | None:
        """The line of a place, or None where it is not built."""
        size = self._store.read(lambda index: self._measure(index, place))
        return None if size is None else Line(place, size)

    def unfold(
        self,
        first: int,
        end: int,
        total: int,
        target: int,
        *,
        weigh: Callable[[Line], int],
        expected: int = EXPECTED,
    ) -> tuple[list[Line], int]:
        """Messages [first, end) as lines that weigh at most ``target``, from the coarsest nodes
        down, and from where on they count.

        Nodes that are not built yet count with ``expected`` characters; in their place stand the
        coarsest built ones inside them, so that what is there has the shape it will have, and
        weighs more. O(lines), whatever the log's size. The second is 0, or the first message of the
        newest lines where there were too many.
        """
        coarsest = [self._or_expected(place, expected) for place in cover(first, end)]
        weight, hidden = sum(map(weigh, coarsest)), self._hidden()

        def children(place: Place) -> tuple[Line, Line] | None:
            return None if hidden.covers(place) else self._halves(place, expected)

        wanted = open_up(coarsest, total, target, weigh=weigh, children=children, weight=weight)
        return self._built_in([line.place for line in wanted])

    def _or_expected(self, place: Place, expected: int) -> Line:
        """The line of a place.

        As it is, as it is expected to be, or without a text where not even a message of it has its
        line.
        """
        line = self.at(place)
        return line or Line(place, expected if self._any_leaf(place) else None)

    def _halves(self, place: Place, expected: int) -> tuple[Line, Line] | None:
        """Both halves of a place; None where a built line would give way to halves that are not."""
        older, younger = (self.at(child) for child in place.children)
        if older and younger:
            return older, younger
        if self.at(place) or not self._any_leaf(place):
            return None
        return older or self._or_expected(
            place.children[0], expected
        ), younger or self._or_expected(place.children[1], expected)

    def _any_leaf(self, place: Place) -> bool:
        return place.level > 0 and self._store.read(
            lambda index: index.any_leaf(place.first, place.end)
        )

    def _built_in(self, places: list[Place]) -> tuple[list[Line], int]:
        """The coarsest built nodes in these places, oldest first.

        Where they are too many the newest of them, and from where on.
        """
        found: list[Line] = []
        todo = list(places)
        while todo and len(found) <= LINES_MAX:
            place = todo.pop()
            line = self.at(place)
            if line is not None:
                found.append(line)
            elif self._any_leaf(place):
                todo.extend(place.children)
        return found[::-1], found[-1].place.first if todo else 0


def leaf_lines(store: Store, first: int, end: int) -> list[Line]:
    """Messages [first, end) as a tiling of one line a message, weighed in characters.

    What is not built yet stands in blocks.
    """
    leaves = store.read(lambda index: index.leaves(first, end, end - first))
    return list(tile([Line(Place(0, id_), chars) for id_, chars in leaves], end, first))


def with_said(
    store: Store, lines: list[Line], first: int, end: int, limit: int
) -> tuple[list[Line], dict[Place, str]]:
    """The built lines of [first, end) with those that its newest messages will have, as long as
    they wait for them; their texts.

    What is no longer than a line is its own line. A session that is asked of what another one was
    told a moment ago must not wait for a thread.
    """
    newest = max(first, end - NEWEST)
    told = union((line.place.first, line.place.end) for line in lines if line.place.end > newest)
    waiting = [id_ for start, stop in gaps(told, newest, end) for id_ in range(start, stop)]
    if not waiting:
        return lines, {}
    sizes = store.read(lambda index: index.sizes_of(waiting))
    short = [id_ for id_ in waiting if sizes.get(id_, limit + 1) <= limit]
    messages = store.messages_of(short) if short else ()
    said = {Place(0, message.id): mask(message.source) for message in messages}
    more = [Line(place, len(text)) for place, text in said.items()]
    return sorted([*lines, *more], key=lambda line: line.place.first), said
