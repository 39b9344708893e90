"""Lines of a room that are looked for to be written over: most of them before the lock is held.

Knows no records: what is looked for, and what takes its place, it is told. Called by
``redaction.py`` and ``hiding.py``.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from . import files
from .day_files import Spot
from .redacted import is_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .day_files import DayLog

_AT_ONCE: Final = 2_000


class Sought:
    """What has been found so far in one room; where it was looked it is not looked again."""

    def __init__(self, log: DayLog, is_one: Callable[[bytes], bool]) -> None:
        self.log = log
        self.spots: list[Spot] = []
        self._is_one = is_one
        self._looked: dict[str, int] = {}

    def scan(self, *, locked: bool) -> None:
        """Look through what the day files have beyond the last look."""
        for name in self.log.sizes():
            for piece in self.log.scan(name, self._looked.get(name, 0)):
                if not piece.ended and not locked:
                    break  # perhaps just being written
                if piece.line and not is_blank(piece.line) and self._is_one(piece.line):
                    self.spots.append(Spot(name, piece.offset, len(piece.line)))
                self._looked[name] = piece.offset + len(piece.line) + piece.ended

    def write_over(self, new: Callable[[Spot, bytes], bytes]) -> None:
        """Put in place of each line another of its length, or the same; under the lock."""
        for name, spots in groupby(sorted(self.spots), key=lambda spot: spot.name):
            while some := list(islice(spots, _AT_ONCE)):
                edits = _edits(zip(some, self.log.read_many(some), strict=True), new)
                files.write_over(self.log.path(name), edits)


def _edits(
    lines: Iterable[tuple[Spot, bytes]], new: Callable[[Spot, bytes], bytes]
) -> list[tuple[int, bytes, bytes]]:
    return [(spot.offset, old, after) for spot, old in lines if (after := new(spot, old)) != old]
