"""What tells one message log from another, so that the full text of a restored or swapped log is
not taken for that of this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from ..log.store import Store


class LogMark:
    """The checksum of a log's first message, 0 while it is empty.

    Read once for each making of the index: a first message stays.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = 0, 0

    def __call__(self) -> int:
        """The mark as it is now; it is another one only after the first message was redacted."""
        generation = self._store.read(lambda index: index.generation())
        if self._known[0] == generation and self._known[1]:
            return self._known[1]
        if not self._store.total():
            return 0
        first = self._store.message(0)
        mark = crc32(f"{first.date}|{first.text}".encode()) or 1 if first else 1
        self._known = generation, mark
        return mark
