"""Takes copies out of sight and brings them back: which may go, and the order of the steps.

It can be cut anywhere and done again. First it is noted, from where on no line is made from their
words any more; then the lines above them are dropped, those of single messages last, by which the
next attempt knows whether anything is left to do. Called by ``Memory``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..base.errors import AddressError
from ..capture.copies import is_same
from ..capture.prints import words_of
from ..log import files
from ..log.hidden import NOTHING, Hidden, Piece
from .hiding import Dropping, add_lines, find_copies, saying_none, saying_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from ..capture.copies import Stretch
    from ..log.store import Store
    from .hiding import HiddenNotes
    from .reports import CopyReport, HideReport, ShowReport

    Progress = Callable[[str, int, int], None]


def _untold(_what: str, _done: int, _total: int) -> None:
    """Nobody asks how far it is."""


class Copies:
    """The copies in one memory: messages that were logged twice. The log keeps them in any case."""

    def __init__(
        self,
        store: Store,
        hidden: HiddenNotes,
        views: Collection[Path],
        *,
        changed: Callable[[], None],
    ) -> None:
        """``views``: files of saved views. ``changed`` is told that there are lines to build."""
        self._store, self._hidden, self._views, self._changed = store, hidden, views, changed

    def find(self, progress: Progress = _untold) -> list[CopyReport]:
        """The stretches that repeat others, whether in sight or not."""
        return self.facts(find_copies(self._store, progress))

    def facts(self, stretches: Iterable[Stretch]) -> list[CopyReport]:
        """Stretches as a report names them."""
        facts: list[CopyReport] = []
        for stretch in stretches:
            hidden = self._hidden()  # asked for none where nothing is to be told
            there = Hidden(hidden.within(stretch.first, stretch.end))
            in_sight = stretch.end - stretch.first - len(there) + saying_words(self._store, there)
            of, of_last = stretch.of
            facts.append(
                {
                    "first": stretch.first,
                    "last": stretch.end - 1,
                    "of": of,
                    "of_last": of_last,
                    "session": stretch.session,
                    "of_session": stretch.of_session,
                    "in_sight": in_sight,
                }
            )
        return facts

    def hide(
        self,
        first: int | None = None,
        last: int | None = None,
        *,
        progress: Progress = _untold,
        force: bool = False,
    ) -> HideReport:
        """Take all copies out of sight, or messages ``first`` to ``last``; facts on what was done.

        Done again, it does nothing. No line says their words from then on, and no search or
        question finds them: it finds what they repeat. ``force``: also what cannot be told to be a
        copy, as long as its words are said earlier.

        Raises:
            AddressError: some of the messages are no copies, or are not there; nothing was done.
            LockTimeoutError: another process kept the lock; nothing was done.
            StoreError: the disk refused; the same call may be made again.

        """
        wanted = None if first is None else self._span(first, last)
        if wanted is not None and force:
            pieces = self._repeats(*wanted)
        else:
            found = find_copies(self._store, progress)
            pieces = [piece for stretch in found for piece in stretch.pieces]
            if wanted is not None:
                pieces = self._within(pieces, *wanted)
        pieces = [part for piece in pieces for part in self._verified(piece)]
        fresh, total = len(Hidden(self._hidden().less(pieces))), len(Hidden(pieces))
        return {"hidden": fresh, "already": total - fresh, "lines": self._hide(pieces)}

    def show(self, first: int, last: int | None = None) -> ShowReport:
        """Bring messages ``first`` to ``last`` back into sight; what was done, as facts.

        Raises:
            AddressError: there are no such messages.
            LockTimeoutError: another process kept the lock; nothing was done.
            StoreError: the disk refused; the same call may be made again.

        """
        first, end = self._span(first, last)
        with self._store.locked(everything=True):
            area = Hidden(self._hidden().within(first, end))
            if area:
                self._hidden.note(shown=(first, end))
            # Also what an earlier attempt, cut by a crash, has noted and not brought back.
            area = saying_none(self._store, first, end).and_(area.pieces)
            dropping = Dropping(self._store, area)
            lines = self._drop(dropping) if area else 0
        return {"shown": len(area), "lines": lines}

    # -- inside

    def _hide(self, pieces: list[Piece]) -> int:
        area = Hidden(pieces)
        if not self._hidden().less(pieces) and not saying_words(self._store, area):
            return 0
        dropping = Dropping(self._store, area)
        dropping.scan(locked=False)
        with self._store.locked(everything=True):
            if left := self._hidden().less(pieces):
                self._hidden.note(pieces=left)
            return self._drop(dropping, self._hidden())

    def _drop(self, dropping: Dropping, hidden: Hidden = NOTHING) -> int:
        """Under the lock: drop lines, and add those of nodes that are copies alone."""
        dropping.scan(locked=True)
        lines = dropping.drop()
        add_lines(self._store, hidden, dropping.area)
        # Folded anew: lines never part, and what the copies took of the budget would stay empty.
        files.remove_files(*self._views)
        self._changed()
        return lines

    def _span(self, first: int, last: int | None) -> tuple[int, int]:
        """Messages ``first`` to ``last`` as [first, end)."""
        last, total = first if last is None else last, self._store.total()
        if not 0 <= first <= last < total:
            hint = f"The log holds 0 to {total - 1}" if total else "It is empty"
            raise AddressError(f"there are no messages {first}-{last}", hint=hint)
        return first, last + 1

    def _within(self, pieces: Iterable[Piece], first: int, end: int) -> list[Piece]:
        """What of these copies lies in [first, end), where all of that are copies."""
        copies = Hidden(pieces)
        if (number := copies.count(first, end)) < end - first:
            which = f"only {number} of them are copies" if number else "none of them is a copy"
            hint = "optchat copies names those there are. What only repeats words needs --force"
            raise AddressError(f"messages {first}-{end - 1} stay in sight: {which}", hint=hint)
        return copies.within(first, end)

    def _repeats(self, first: int, end: int) -> list[Piece]:
        """What each of messages [first, end) repeats of those before, in order where possible."""
        asked, hidden = list(self._store.messages(first, end)), self._hidden()
        keys = {(message.kind, words_of(message)) for message in asked if message is not None}
        said: dict[tuple[str, str], list[int]] = defaultdict(list)
        for message in self._store.messages(0, first):
            if message is None or hidden.original(message.id) is not None:
                continue
            if (key := (message.kind, words_of(message))) in keys:
                said[key].append(message.id)
        pieces, last = [], -1
        for id_, message in enumerate(asked, first):
            found = said.get((message.kind, words_of(message)), []) if message is not None else []
            if not found:
                hint = "Only what is there twice can be hidden"
                raise AddressError(f"message {id_} repeats none before {first}", hint=hint)
            last = next((original for original in found if original > last), found[0])
            pieces.append(Piece(id_, last, 1))
        return pieces

    def _verified(self, piece: Piece) -> list[Piece]:
        """The parts of a piece whose words are the same, read once more: prints can be wrong."""
        hidden: list[Piece] = []
        copies = self._store.messages(piece.first, piece.first + piece.length)
        originals = self._store.messages(piece.of, piece.of + piece.length)
        for copy, original in zip(copies, originals, strict=True):
            if copy is None or original is None or not is_same(copy, original):
                continue
            if hidden and copy.id == hidden[-1].first + hidden[-1].length:
                hidden[-1] = hidden[-1]._replace(length=hidden[-1].length + 1)
            else:
                hidden.append(Piece(copy.id, original.id, 1))
        return hidden
