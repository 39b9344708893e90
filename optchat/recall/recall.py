"""What is put in front of the model for a question: the view with the messages the question points to, or only those.

Asks nobody and waits for nobody: where searching fails, the view is shown as it is. What a session has in front of it already is
for ``ledger.py`` and ``added.py`` to know. Called by ``memory/``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..core.errors import OptchatError
from ..core.focus import FRAME_CHARS, FocusLine, fitting, focus_framed, weave
from ..core.host_phrases import HOST_FRAME_CHARS
from ..core.rank import singles_out
from ..core.view import tile
from ..storage.lines import Lines
from .added import FRAME_CHARS as MORE_FRAME_CHARS
from .added import more_framed
from .focus import Matches, find, line_of
from .news import news

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..storage.search import Search
    from ..storage.store import Store
    from .added import Standing
    from .focus import Match
    from .live import LiveView

SHARE: Final = 0.6
"""How much of the room the messages may take from the view. Measured (scripts/bench_recall.py): half finds 1 % less, 70 % 0.5 % more."""

POINTED: Final = {"most": 150, "one_in": 20}
"""A question that points at more messages than could be shown three times over, or at more than one in twenty, points at none."""

WEAKEST: Final = 0.3
"""Messages worth less than this share of the best are left out: it costs no answer, and the view keeps the room."""

SHARP: Final = {"most": 20, "one_in": 100}
SHARP_WEAKEST: Final = 0.5
"""The same for the later turns of a context, where whatever is added is sent again with every request to come."""

_SHORT_CHARS: Final = 1_000
_LINES_IN_ROOM: Final = 12
_PASSAGE_LEAST: Final = 160
"""A message longer than a twelfth of the room (160 to 1,000 characters) is shown by the part that matters."""

_MORE_LEAST: Final = 300
"""Where less room is left, nothing is added: a frame with next to nothing in it."""

logger = logging.getLogger(__name__)


class Recall:
    """One memory as it is recalled. Safe to use from several threads."""

    def __init__(self, store: Store, search: Search, view: LiveView, *, budget: int, focus_chars: int) -> None:
        """``budget``: characters of one full view. ``focus_chars``: most that one later turn adds; 0: questions are not searched for."""
        self._store = store
        self._search = search
        self._view = view
        self._budget = budget
        self._focus_chars = focus_chars

    def view(self, query: str) -> str:
        """The whole view, with the messages ``query`` points to under its lines; without any, the view as it is."""
        matches = self._matches(query)
        if not _points(matches.best, matches.total, **POINTED):
            return self._view.text()
        lines, total = self._view.lines()
        room = self._budget - FRAME_CHARS
        found = [*self._lines(matches, matches.best, WEAKEST, int(room * SHARE), total)]
        woven = weave([*tile(lines, total)], total, room, found, SHARE, parent=Lines(self._store).at, text=self._store.texts)
        return self._view.text() if woven is None else focus_framed(woven)

    def more(self, query: str, session: str, up_to: int, standing: Standing) -> str:
        """What a session is shown besides the view of messages [0, ``up_to``) that stands in front of it; mostly nothing.

        That is: what others have said since, and messages the question points to sharply that it has not in front of it yet. At most
        ``focus_chars`` a turn, and a quarter of the budget in all, counting what the host wraps around each block.
        """
        left = self._budget // 4 - standing.spent - HOST_FRAME_CHARS
        room = min(self._focus_chars, left) - MORE_FRAME_CHARS
        if room < _MORE_LEAST:
            return ""
        since, total = max(up_to, standing.news_to), self._store.total()
        fresh = news(self._store, since, total, session, room // 2)
        room -= sum(map(len, fresh)) + len(fresh)
        matches = self._matches(query)
        unseen = [m for m in matches.best if m.message.id < since and m.message.id not in standing.ids and not _is_own(m, session, up_to)]
        found: list[FocusLine] = []
        if _points(unseen, matches.total, **SHARP):
            found = fitting(self._lines(matches, unseen, SHARP_WEAKEST, room, since), room)
        return more_framed([*(line.shown for line in sorted(found)), *fresh]) if found or fresh else ""

    # -- inside

    def _matches(self, query: str) -> Matches:
        if not self._focus_chars or not query.strip():
            return Matches([], 0, {})
        try:
            return find(self._store, self._search, query)
        except OptchatError as error:
            # A turn is never lost for the sake of what a search would add to it.
            logger.warning("optchat: what was asked for is not looked up: %s", error)
            return Matches([], 0, {})

    def _lines(self, matches: Matches, best: list[Match], weakest: float, room: int, total: int) -> Iterator[FocusLine]:
        """Matches among messages [0, ``total``) as lines, best first, until there are more than enough for ``room`` characters."""
        limit = max(_PASSAGE_LEAST, min(_SHORT_CHARS, room // _LINES_IN_ROOM))
        room *= 2  # some will stand in the view word for word already
        for match in best:
            if match.score < weakest * matches.best[0].score or room < 0:
                return
            message = match.message
            if message.id < total:
                line = line_of(message, matches.worths, limit)
                room -= line.chars
                yield line


def _points(best: Iterable[Match], total: int, *, most: int, one_in: int) -> bool:
    """Whether the question points at any of these."""
    return singles_out(max((match.strength for match in best), default=0.0), total, most=most, one_in=one_in)


def _is_own(match: Match, session: str, up_to: int) -> bool:
    """Whether the session has the message in front of it in its own list: it was said there since the view was rendered."""
    return match.message.session == session and match.message.id >= up_to
