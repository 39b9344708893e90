"""Lines for a part of the log, such as the messages of one session that a host is about to drop
from its context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tree.lines import Lines, leaf_lines
from ..tree.render import arrange, shown_lines

if TYPE_CHECKING:
    from ..log.store import Store


def excerpt(store: Store, first: int, end: int, max_chars: int, session: str = "") -> str:
    """Lines ``id+n|text`` that tile messages [first, end), or those of one session among them, in
    at most ``max_chars`` characters.

    Neighbouring messages share a line where there is no room for a line each; where even that is
    too long, the oldest are left out, because they are the ones the view still shows.
    """
    end = min(end, store.total())
    ids = range(first, end)
    if session:
        ids = [
            id_
            for id_, _ in store.read(lambda index: index.session_spots(session, first))
            if id_ < end
        ]  # type: ignore[assignment]
    tiles = [line for start, stop in _runs(ids) for line in leaf_lines(store, start, stop)]
    tiles, bare = arrange(tiles, end, max_chars, Lines(store).at)
    lines = shown_lines(tiles, bare, store.texts)
    while lines and sum(map(len, lines)) + len(lines) > max_chars:
        lines.pop(0)
    return "\n".join(lines)


def _runs(ids: range | list[int]) -> list[tuple[int, int]]:
    """Stretches [start, stop) of consecutive ids."""
    runs: list[tuple[int, int]] = []
    for id_ in ids:
        if runs and runs[-1][1] == id_:
            runs[-1] = (runs[-1][0], id_ + 1)
        else:
            runs.append((id_, id_ + 1))
    return runs
