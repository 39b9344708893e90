"""A memory directory as a source: one of an older format, of another program of this design, or a
backup.

Into an empty memory all of it comes over as it is (``Memory.take_over``); beside what is there
already its messages are imported as any others.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from ..base.errors import SourceError
from ..base.json_line import BadLineError
from ..base.record import Entry, decode_message
from ..log.day_files import DayLog, Spot
from ..log.format import UPGRADE, why_only_read
from ..log.redacted import NOTE, is_redacted
from .rows import Item

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_AT_ONCE: Final = 256
_TELLS_OF_IT: Final = re.compile(re.escape(NOTE).replace(r"\{\}", r"\d+"))
"""The note on a redaction. It names a number that is another's here."""
_ENTRY_FIELDS: Final = tuple(field.name for field in fields(Entry))


def directory_of(path: Path) -> Path | None:
    """The memory directory that is meant: this one, or the one in this Hermes home."""
    return next(
        (found for found in (path, path / "optchat") if DayLog(found / "main").sizes()), None
    )


class MemoryDirectory:
    """The messages of a memory directory, in the order in which they were said."""

    form = "memory directory"

    def __init__(self, path: Path) -> None:
        """``path`` holds ``main/``.

        Raises:
            SourceError: a later version has written it.
        """
        self.path = path
        self.log = DayLog(path / "main")
        self.total = sum(self.log.sizes().values())
        if why := why_only_read(path):
            raise SourceError(f"cannot import: {why}", path=path, hint=UPGRADE)

    def items(self) -> Iterator[Item]:
        """Its messages, each once, and what cannot be read."""
        spots: list[Spot] = []
        numbers = array("Q")
        for name in self.log.sizes():
            for piece in self.log.scan(name):
                if not piece.line.strip():
                    continue
                try:
                    numbers.append(decode_message(piece.line).id)
                    spots.append(Spot(name, piece.offset, len(piece.line)))
                except BadLineError as error:
                    if piece.ended:
                        place = f"main/{name}, byte {piece.offset}"
                        yield Item(place=place, position=0, fault=str(error))
        order = sorted(range(len(spots)), key=numbers.__getitem__)
        position, last = 0, -1
        for start in range(0, len(order), _AT_ONCE):
            portion = [spots[at] for at in order[start : start + _AT_ONCE]]
            for line in self.log.read_many(portion):
                position += len(line) + 1
                message = decode_message(line)
                place = f"message {message.id}"
                if message.id == last:
                    yield Item(place=place, position=position, left_out="second lines of a message")
                elif is_redacted(message.text) or _TELLS_OF_IT.fullmatch(message.text):
                    yield Item(place=place, position=position, left_out="redacted messages")
                else:
                    entry = Entry(**{name: getattr(message, name) for name in _ENTRY_FIELDS})
                    yield Item(place=place, position=position, entry=entry)
                last = message.id
