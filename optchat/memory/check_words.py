"""Compares the full text with the words of the messages.

What is found by a term must be what holds it. Changes nothing.

Both sides are summed up as prints of (term, message), which may come in any order, so that nothing
is held in memory whatever the log's size. Called by ``check.py``, which reads the messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from ..base import terms
from ..log.sqlite import connect, database_errors

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

_MASK: Final = (1 << 64) - 1


class WordsCheck:
    """One look at the full text as it was at one moment; a context manager.

    Messages [0, ``indexed``) must be in it.
    """

    def __init__(self, path: Path, indexed: int) -> None:
        self.path = path
        self.indexed = indexed
        self._expected = 0
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        if self.indexed:
            self._connection = connect(self.path)
            with database_errors(self.path):
                self._connection.execute(
                    "CREATE VIRTUAL TABLE temp.held USING fts5vocab(main, words, instance)"
                )
                self._connection.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def holds(self, id_: int, text: str, date: str) -> None:
        """The log has this message."""
        if id_ < self.indexed:
            self._expected = (
                self._expected + sum(hash((term, id_)) for term in terms.terms(text, date))
            ) & _MASK

    def agrees(self, is_there: Callable[[int], bool]) -> bool:
        """Whether the full text says what the messages do, as far as it had come.

        ``is_there``: whether a message is not lost.

        Raises:
            StoreError: it cannot be read.
        """
        if self._connection is None:
            return True
        found = 0
        with database_errors(self.path):
            for term, id_ in self._connection.execute(
                "SELECT term, doc FROM temp.held WHERE doc < ?", (self.indexed,)
            ):
                if is_there(id_):  # of one that is lost nobody knows what it said
                    found += hash((term, id_))
        return found & _MASK == self._expected
