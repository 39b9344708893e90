"""Lines for parts of the log.

What a session has not been shown, said by others since or summed up by its host, and what a host is
about to drop from a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..tree.lines import Lines, leaf_lines, with_said
from ..tree.render import arrange, shown_lines, weigh
from ..tree.spans import holds
from ..tree.view import tile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..base.address import Place
    from ..log.store import Store
    from ..tree.spans import Span
    from ..tree.view import Line

_LEAVES_MAX: Final = 512
"""A longer stretch is shown in lines that are coarse from the start.

One by one there would be no room for them.
"""


def excerpt(
    store: Store, spans: Iterable[Span], max_chars: int, node_bytes: int, named: Sequence[Span] = ()
) -> list[str]:
    """Lines ``id+n|text`` that tile these spans, oldest first, in at most ``max_chars`` characters.

    Where even the coarsest lines are too long together, the oldest are addresses alone; where these
    are too many, the oldest are left out. What has no text yet is left out if it is ``named``
    already.
    """
    tiles: list[Line] = []
    said: dict[Place, str] = {}
    for first, end in spans:
        lines, texts = with_said(
            store, _built(store, first, end, max_chars), first, end, node_bytes
        )
        tiles += (
            line
            for line in tile(lines, end, first)
            if line.chars is not None or not _is_in(named, line)
        )
        said |= texts
    tiles, bare = arrange(tiles, store.total(), max_chars, Lines(store).at)
    shown = shown_lines(tiles, bare, lambda places: said | store.texts(places))
    chars = sum(map(len, shown)) + len(shown)
    oldest = 0
    while chars > max_chars:
        chars -= len(shown[oldest]) + 1
        oldest += 1
    return shown[oldest:]


def spans_of(store: Store, session: str, first: int, end: int) -> list[Span]:
    """Stretches [start, stop) of messages [first, end) that are one session's; without a session
    all of it.
    """
    end = min(end, store.total())
    if not session:
        return [(first, end)] if first < end else []
    runs: list[Span] = []
    for id_, _ in store.read(lambda index: index.session_spots(session, first)):
        if id_ >= end:
            break
        if runs and runs[-1][1] == id_:
            runs[-1] = (runs[-1][0], id_ + 1)
        else:
            runs.append((id_, id_ + 1))
    return runs


def _built(store: Store, first: int, end: int, target: int) -> list[Line]:
    """One stretch: line by line if that is not too many, else coarse from the start."""
    if end - first <= _LEAVES_MAX:
        return [line for line in leaf_lines(store, first, end) if line.chars is not None]
    return Lines(store).unfold(first, end, store.total(), target, weigh=weigh)[0]


def _is_in(spans: Sequence[Span], line: Line) -> bool:
    return holds(spans, line.place.first, line.place.end)
