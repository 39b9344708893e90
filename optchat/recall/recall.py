"""What is put in front of the model for a question.

The view with the messages the question points to, or only those.

Asks nobody and waits for nobody: where searching fails, the view is shown as it is. What a session
has in front of it already is for ``shown.py`` to know. Called by ``memory/``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..base.errors import OptchatError
from ..base.host_phrases import HOST_FRAME_CHARS
from ..tree.lines import Lines
from ..tree.render import arrange, framed, shown_lines
from ..tree.spans import gaps, runs, union
from ..tree.view import outside, tile
from .excerpt import excerpt
from .focus import Matches, find, line_of
from .focus_lines import FRAME_CHARS, FocusLine, fitting, focus_framed, weave
from .rank import singles_out
from .shown import FRAME_CHARS as MORE_FRAME_CHARS
from .shown import Standing, leaves_in, more_framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..log.fulltext import Search
    from ..log.store import Store
    from ..tree.live_view import LiveView
    from .focus import Match

SHARE: Final = 0.6
"""How much of the room the messages may take from the view.

Measured (scripts/bench_recall.py): half finds 1 % less, 70 % 0.5 % more.
"""

POINTED: Final = {"most": 150, "one_in": 20}
"""A question that points at more messages than could be shown three times over, or at more than one
in twenty, points at none.
"""

WEAKEST: Final = 0.3
"""Messages worth less than this share of the best are left out.

It costs no answer, and the view keeps the room.
"""

LATER_TURN_THRESHOLD: Final = {"most": 20, "one_in": 100}
LATER_TURN_WEAKEST: Final = 0.5
"""The same for the later turns of a context, where whatever is added is sent again with every
request to come.
"""

_SHORT_CHARS: Final = 1_000
_LINES_IN_ROOM: Final = 12
_PASSAGE_LEAST: Final = 160
"""A message longer than a twelfth of the room (160 to 1,000 characters) is shown by the part that
matters.
"""

_MORE_LEAST: Final = 300
"""Where less room is left, nothing is added: a frame with next to nothing in it."""

MOST: Final = 1.3
"""Most that all blocks of a context may be together, in full views, with what the host wraps around
each of them.
"""

NOTHING: Final = Standing()
NO_MATCHES: Final = Matches([], 0, {})

logger = logging.getLogger(__name__)


class Recall:
    """One memory as it is recalled. Safe to use from several threads."""

    def __init__(
        self, store: Store, search: Search, view: LiveView, *, budget: int, focus_chars: int
    ) -> None:
        """``budget``: characters of one full view.

        ``focus_chars``: most that one later turn adds; 0: questions are not searched for.
        """
        self._store = store
        self._search = search
        self._view = view
        self._budget = budget
        self._focus_chars = focus_chars

    def view(self, query: str, beside: Standing = NOTHING) -> str:
        """The whole view, with the messages ``query`` points to under its lines.

        Without any, the view as it is.

        What other blocks show that stand in front of the session is left out, and takes room.
        """
        matches = self._matches(query)
        pointed = _points(matches.best, matches.total, **POINTED)
        if beside == NOTHING and not pointed:
            return self._view.text()
        lines, total, texts = self._view.now()
        built = Lines(self._store).at
        tiles = [*outside(tile(lines, total), beside.covered, built)]
        room = min(self._budget, self._room(beside)) - FRAME_CHARS
        if not tiles or room < _MORE_LEAST:
            return ""
        unseen = [match for match in matches.best if match.message.id not in beside.ids]
        found = (
            [*self._lines(matches, unseen, WEAKEST, int(room * SHARE), total)] if pointed else []
        )
        woven = weave(tiles, total, room, found, SHARE, parent=built, text=texts)
        if woven is not None:
            return focus_framed(woven)
        return (
            framed(shown_lines(*arrange(tiles, total, room, built), texts))
            if beside != NOTHING
            else self._view.text()
        )

    def more(self, query: str, own: Sequence[int], own_from: int, beside: Standing) -> str:
        """What a session is shown besides the view that stands in front of it; mostly nothing.

        That is: what others have said since, what the host has summed up of its own messages, and
        messages the question points to sharply. ``own``: messages it has in its own list. Its first
        block after a compression takes two thirds of the room that is left; any other, news and
        question together, at most ``focus_chars``.
        """
        left = self._room(beside) - MORE_FRAME_CHARS
        known = union((*beside.covered, *runs(own)))
        missing = [*gaps(known, 0, self._store.total())]
        behind = any(gaps(union((*known, *beside.named)), 0, own_from))
        turn = min(self._focus_chars, left)
        share = left * 2 // 3 if behind else turn // 2
        if max(turn, share) < _MORE_LEAST:
            return ""
        fresh = excerpt(self._store, missing, share, self._view.node_bytes, beside.named)
        turn -= sum(map(len, fresh)) + len(fresh)
        found = self._sharp(query, {*own, *beside.ids, *leaves_in(fresh)}, turn)
        return more_framed(found, fresh) if found or fresh else ""

    # -- inside

    def _room(self, beside: Standing) -> int:
        """Characters that one more block may have."""
        return int(self._budget * MOST) - beside.chars - HOST_FRAME_CHARS

    def _sharp(self, query: str, seen: set[int], room: int) -> list[str]:
        """Lines, oldest first, for what the question points to sharply and the session has not in
        front of it.
        """
        matches = self._matches(query) if room >= _PASSAGE_LEAST else NO_MATCHES
        unseen = [match for match in matches.best if match.message.id not in seen]
        if not _points(unseen, matches.total, **LATER_TURN_THRESHOLD):
            return []
        lines = self._lines(matches, unseen, LATER_TURN_WEAKEST, room, self._store.total())
        return [line.shown for line in sorted(fitting(lines, room))]

    def _matches(self, query: str) -> Matches:
        if not self._focus_chars or not query.strip():
            return NO_MATCHES
        try:
            return find(self._store, self._search, query)
        except OptchatError as error:
            # A turn is never lost for the sake of what a search would add to it.
            logger.warning("optchat: what was asked for is not looked up: %s", error)
            return NO_MATCHES

    def _lines(
        self, matches: Matches, best: list[Match], weakest: float, room: int, total: int
    ) -> Iterator[FocusLine]:
        """Matches among messages [0, ``total``) as lines, best first, until there are more than
        enough for ``room`` characters.
        """
        limit = max(_PASSAGE_LEAST, min(_SHORT_CHARS, room // _LINES_IN_ROOM))
        room *= 2  # some will stand in the view word for word already
        for match in best:
            if match.score < weakest * matches.best[0].score or room < 0:
                return
            message = match.message
            if message.id < total:
                line = line_of(message, matches.term_weights, limit)
                room -= line.chars
                yield line


def _points(best: Iterable[Match], total: int, *, most: int, one_in: int) -> bool:
    """Whether the question points at any of these."""
    return singles_out(
        max((match.strength for match in best), default=0.0), total, most=most, one_in=one_in
    )
