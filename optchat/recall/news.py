"""Lines for what a session has not been shown: said by others since, or summed up by the host meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..core.render import arrange, shown_lines, weigh
from ..core.spans import holds
from ..core.view import Line, tile
from ..storage.lines import Lines, just_said, leaf_lines, with_said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..core.spans import Span
    from ..core.tree import Place
    from ..storage.store import Store

_LEAVES_MAX: Final = 512
"""A longer stretch is shown in lines that are coarse from the start: one by one there would be no room for them."""


def news(store: Store, spans: Iterable[Span], max_chars: int, node_bytes: int, named: Sequence[Span] = ()) -> list[str]:
    """Lines ``id+n|text`` that tile these spans, oldest first, in at most ``max_chars`` characters.

    Where even the coarsest lines are too long together, the oldest are addresses alone; where these
    are too many, the oldest are left out. What has no text yet is left out if it is ``named`` already.
    """
    said = just_said(store, node_bytes)
    tiles = [line for first, end in spans for line in _lines(store, first, end, max_chars, said)]
    tiles = [line for line in tiles if line.chars is not None or not holds(named, line.place.first, line.place.end)]
    tiles, bare = arrange(tiles, store.total(), max_chars, Lines(store).at)
    lines = shown_lines(tiles, bare, lambda places: said | store.texts(places))
    chars = sum(map(len, lines)) + len(lines)
    oldest = 0
    while chars > max_chars:
        chars -= len(lines[oldest]) + 1
        oldest += 1
    return lines[oldest:]


def _lines(store: Store, first: int, end: int, target: int, said: Mapping[Place, str]) -> Iterator[Line]:
    """One stretch: line by line if that is not too many, else coarse from the start."""
    if end - first <= _LEAVES_MAX:
        built = [line for line in leaf_lines(store, first, end) if line.chars is not None]
    else:
        built, _ = Lines(store).unfold(first, end, store.total(), target, weigh=weigh)
    inside = {place: text for place, text in said.items() if first <= place.first < end}
    return tile(with_said(built, inside), end, first)
