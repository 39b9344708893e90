"""Lines for what others have said since a session was shown the view: other sessions, perhaps of other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.render import arrange, shown_lines
from ..core.tree import cover
from ..core.view import Line
from ..storage.lines import Lines, leaf_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..storage.store import Store

_LEAVES_MAX: Final = 512
"""A longer stretch is shown in lines that are coarse from the start: one by one there would be no room for them."""


def news(store: Store, first: int, end: int, session: str, max_chars: int) -> list[str]:
    """Lines ``id+n|text`` that tile what others than ``session`` have said in [first, end), in at most ``max_chars`` characters.

    Where even the coarsest lines are too long together, the oldest are left out.
    """
    tiles = [line for start, stop in _stretches(store, first, end, session) for line in _lines(store, start, stop)]
    tiles, _ = arrange(tiles, end, max_chars, Lines(store).at)
    lines = shown_lines(tiles, 0, store.texts)
    chars = sum(map(len, lines)) + len(lines)
    oldest = 0
    while chars > max_chars:
        chars -= len(lines[oldest]) + 1
        oldest += 1
    return lines[oldest:]


def _stretches(store: Store, since: int, end: int, session: str) -> Iterator[tuple[int, int]]:
    """What lies between the session's own messages."""
    own_spots = store.read(lambda index: index.session_spots(session, since))
    first = since
    for own, _ in own_spots:
        if own >= end:
            break
        if own > first:
            yield first, own
        first = own + 1
    if first < end:
        yield first, end


def _lines(store: Store, start: int, stop: int) -> list[Line]:
    if stop - start > _LEAVES_MAX:
        built = Lines(store)
        return [built.at(place) or Line(place, None) for place in cover(start, stop)]
    return leaf_lines(store, start, stop)
