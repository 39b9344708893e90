"""The tree of a store as lines to choose from: what is built where, weighed, and opened from the coarsest down.

Holds nothing but the store. Used by all of ``recall/`` that shows lines, and by the compactor's context view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.tree import Place, cover
from ..core.view import Line, open_up, tile
from .index import Index

if TYPE_CHECKING:
    from collections.abc import Callable

    from .store import Store

LINES_MAX: Final = 4_096
"""More lines than this are never held: no step may cost more in a longer log."""


class Lines:
    """Built nodes as lines. ``measure``: what of a node counts as its size, its characters or its bytes."""

    def __init__(self, store: Store, measure: Callable[[Index, Place], int | None] = Index.chars) -> None:
        self._store = store
        self._measure = measure

    def at(self, place: Place) -> Line | None:
        """The line of a place, or None where it is not built."""
        size = self._store.read(lambda index: self._measure(index, place))
        return None if size is None else Line(place, size)

    def halves(self, place: Place) -> tuple[Line, Line] | None:
        """Both halves of a place, if both are built."""
        older, younger = (self.at(child) for child in place.children)
        return None if older is None or younger is None else (older, younger)

    def unfold(self, first: int, end: int, total: int, target: int, *, weigh: Callable[[Line], int]) -> tuple[list[Line], int]:
        """Messages [first, end) as lines that weigh at most ``target``, from the coarsest built nodes down, and from where on they count.

        O(lines), whatever the log's size. The second is 0, or the first message of the newest lines where there were too many.
        """
        roots, floor = self._roots(first, end)
        weight = sum(map(weigh, tile(roots, end, first)))
        return open_up(roots, total, target, weigh=weigh, children=self.halves, weight=weight), floor

    def _roots(self, first: int, end: int) -> tuple[list[Line], int]:
        """The coarsest built nodes in [first, end), oldest first; the newest of them where they are too many."""
        roots: list[Line] = []
        todo = cover(first, end)
        while todo and len(roots) <= LINES_MAX:
            place = todo.pop()
            line = self.at(place)
            if line is not None:
                roots.append(line)
            elif place.level and self._store.read(lambda index, p=place: index.any_leaf(p.first, p.end)):  # type: ignore[misc]
                todo.extend(place.children)
        return roots[::-1], roots[-1].place.first if todo else 0


def leaf_lines(store: Store, first: int, end: int) -> list[Line]:
    """Messages [first, end) as a tiling of one line a message, weighed in characters; what is not built yet stands in blocks."""
    leaves = store.read(lambda index: index.leaves(first, end, end - first))
    return list(tile([Line(Place(0, id_), chars) for id_, chars in leaves], end, first))
