"""The append-only day files of one room.

``main/`` for messages, ``tree/`` for nodes, ``capture/`` for notes.

A day file is chosen by the local day of writing; order is by id alone, because clocks step back.
Holds no state: where a record lies is the index's to know, and taking the write lock is the
caller's.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from . import files, reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path


class Spot(NamedTuple):
    """Where a line lies: day file, offset and length in bytes, newline excluded."""

    name: str
    offset: int
    length: int


def day_name(now: datetime) -> str:
    """The day file that is written to at this local time."""
    return f"{now.date().isoformat()}.jsonl"


def names_near(now: datetime) -> tuple[str, str, str]:
    """The day files that may be written to at this moment, in some time zone or by a clock that is
    a little off.
    """
    today = now.date().toordinal()
    days = (
        date.fromordinal(min(max(day, 1), date.max.toordinal()))
        for day in (today - 1, today, today + 1)
    )
    before, here, after = (f"{day.isoformat()}.jsonl" for day in days)
    return before, here, after


class DayLog:
    """One room of day files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.room = directory.name

    def append(self, lines: list[bytes], now: datetime, *, not_before: str = "") -> list[Spot]:
        """Append lines (each with its newline) to today's file as one write and one fsync.

        Where each came to lie.

        ``not_before``: the earliest day file to use, for lines whose order is that of the files.

        Raises:
            StoreError: none of them was added.
        """
        name = max(day_name(now), not_before)
        offset = files.append(self.directory / name, b"".join(lines))
        spots = []
        for line in lines:
            spots.append(Spot(name, offset, len(line) - 1))
            offset += len(line)
        return spots

    def path(self, name: str) -> Path:
        """The day file of this name."""
        return self.directory / name

    def sizes(self) -> dict[str, int]:
        """Name and bytes of every day file, by name."""
        return reads.day_files(self.directory)

    def size(self, name: str) -> int:
        """Bytes of one day file, 0 where there is none."""
        return reads.size_of(self.directory / name)

    def scan(self, name: str, offset: int = 0) -> Iterator[reads.Piece]:
        """The lines of one day file from an offset on."""
        return reads.scan(self.directory / name, offset)

    def read(self, spot: Spot) -> bytes:
        """The bytes at a spot; short or empty where the file has changed."""
        return reads.read_at(self.directory / spot.name, spot.offset, spot.length)

    def read_many(self, spots: Iterable[Spot]) -> list[bytes]:
        """The bytes at many spots, in their order, each file opened once for a run of spots
        in it.
        """
        wanted = list(spots)
        found: list[bytes] = [b""] * len(wanted)
        by_file: dict[str, list[int]] = {}
        for at, spot in enumerate(wanted):
            by_file.setdefault(spot.name, []).append(at)
        for name, places in by_file.items():
            pieces = reads.read_many(
                self.directory / name, [(wanted[at].offset, wanted[at].length) for at in places]
            )
            for at, piece in zip(places, pieces, strict=True):
                found[at] = piece
        return found
