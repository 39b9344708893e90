"""Messages that are out of sight: copies, whose words the log keeps and no line says again. Pure.

What is out of sight is noted in ``capture/``, in notes of the type ``hidden``: either ``pieces``,
as ``copies.Piece``, or ``shown``, the first message and the end of what is in sight again. All of
them in their order say what is so now. Called by whoever makes lines (``compaction/work.py``) and
whoever looks for messages (``log/fulltext.py``).
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..base.address import Place

NOTE: Final = "hidden"
_SPANS_MOST: Final = 3
"""Stretches that a line names one by one."""
_APART: Final = 64
"""Messages between two copied stretches from which on a line names them as two."""


class Piece(NamedTuple):
    """Messages [first, first + length) repeat messages [of, of + length), one by one."""

    first: int
    of: int
    length: int


class Span(NamedTuple):
    """Messages [first, end)."""

    first: int
    end: int


class Hidden:
    """What is out of sight, as pieces in the order of the log that do not overlap."""

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self.pieces = sorted(piece for piece in pieces if piece.length > 0)
        self._firsts = [piece.first for piece in self.pieces]
        # how many messages are out of sight before each piece
        self._before = [0, *accumulate(piece.length for piece in self.pieces)]

    @classmethod
    def of_notes(cls, notes: Iterable[dict[str, Any]]) -> Hidden:
        """What the notes say, oldest first."""
        hidden = cls()
        for note in notes:
            hidden = hidden.and_(map(Piece._make, note.get("pieces", ())))
            hidden = hidden.without(Span(*note.get("shown", (0, 0))))
        return hidden

    def __bool__(self) -> bool:
        """Whether anything is out of sight."""
        return bool(self.pieces)

    def __len__(self) -> int:
        """How many messages are."""
        return self._before[-1]

    def original(self, id_: int) -> int | None:
        """What a message repeats that is out of sight; None for one in sight."""
        at = bisect_right(self._firsts, id_) - 1
        if at < 0 or id_ >= self.pieces[at].first + self.pieces[at].length:
            return None
        return self.pieces[at].of + id_ - self.pieces[at].first

    def count(self, first: int, end: int) -> int:
        """How many of messages [first, end) are out of sight."""
        return self._count_before(end) - self._count_before(first)

    def touches(self, place: Place) -> bool:
        """Whether any message of a node is out of sight."""
        return self.count(place.first, place.end) > 0

    def covers(self, place: Place) -> bool:
        """Whether all messages of a node are."""
        return self.count(place.first, place.end) == place.n

    def within(self, first: int, end: int) -> list[Piece]:
        """The pieces, or parts of them, among messages [first, end)."""
        found = []
        for at in range(max(0, bisect_right(self._firsts, first) - 1), len(self.pieces)):
            piece = self.pieces[at]
            if piece.first >= end:
                break
            start, stop = max(first, piece.first), min(end, piece.first + piece.length)
            if start < stop:
                found.append(Piece(start, piece.of + start - piece.first, stop - start))
        return found

    def in_sight(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of these messages that are not out of sight."""
        return [id_ for id_ in ids if self.original(id_) is None] if self.pieces else ids

    def line(self, place: Place) -> str:
        """The line of a node all of whose messages are out of sight."""
        if place.level == 0:
            return f"({copy_of(self.original(place.index) or 0)})"
        spans: list[list[int]] = []
        for piece in sorted(self.within(place.first, place.end), key=lambda piece: piece.of):
            if spans and piece.of - spans[-1][1] <= _APART:
                spans[-1][1] = max(spans[-1][1], piece.of + piece.length - 1)
            else:
                spans.append([piece.of, piece.of + piece.length - 1])
        if len(spans) > _SPANS_MOST:
            spans = [[spans[0][0], max(last for _, last in spans)]]
        named = (f"{first}-{last}" if first < last else str(first) for first, last in spans)
        return f"(a copy of messages {', '.join(named)})"

    def and_(self, pieces: Iterable[Piece]) -> Hidden:
        """With these as well."""
        return Hidden([*self.pieces, *self.less(pieces)])

    def less(self, pieces: Iterable[Piece]) -> list[Piece]:
        """What of these pieces is not out of sight yet."""
        left = []
        for piece in pieces:
            start, end = piece.first, piece.first + piece.length
            for there in [*self.within(start, end), Piece(end, 0, 1)]:
                if there.first > start:
                    left.append(Piece(start, piece.of + start - piece.first, there.first - start))
                start = there.first + there.length
        return left

    def without(self, span: Span) -> Hidden:
        """With these messages in sight again."""
        if not self.pieces:
            return self
        end = max(span.end, self.pieces[-1].first + self.pieces[-1].length)
        return Hidden([*self.within(0, span.first), *self.within(span.end, end)])

    def _count_before(self, id_: int) -> int:
        at = bisect_right(self._firsts, id_) - 1
        if at < 0:
            return 0
        return self._before[at] + min(self.pieces[at].length, id_ - self.pieces[at].first)


def copy_of(original: int) -> str:
    """How a copy is named wherever it is shown."""
    return f"copy of {original}+1"


NOTHING: Final = Hidden()
