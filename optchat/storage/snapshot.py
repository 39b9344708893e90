"""The whole index as it was at one moment, row by row, however much is logged and built while it is read. Used by ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..core.records import MAX_LEVEL
from .database import DamagedError, connect, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Snapshot:
    """A context manager; on a connection of its own, because a long walk must not keep readers waiting."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = connect(path)

    def __enter__(self) -> Self:
        with told(self.path):
            self._connection.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def known(self) -> dict[tuple[str, str], int]:
        """Bytes of each day file (room, name) that are in the index. Read first: it is what all the rest is compared with."""
        rows = self._rows("SELECT known, room, name FROM files", lambda known, *_: _are_counts(known))
        return {(room, name): known for known, room, name in rows}

    def messages(self) -> Iterator[tuple[int, int]]:
        """(id, offset or -1 where it is lost) of every message, in order."""
        return self._rows("SELECT id, CASE WHEN file IS NULL THEN -1 ELSE offset END FROM messages ORDER BY id", _is_message)

    def nodes(self) -> Iterator[tuple[int, int, int]]:
        """(level, index, characters) of every node, in order."""
        return self._rows("SELECT level, idx, chars FROM nodes ORDER BY level, idx", _is_node)

    def ready(self) -> Iterator[tuple[int, int]]:
        """(last message covered, level) of every node that can be built."""
        return self._rows("SELECT last, level FROM ready", lambda last, level: _is_place(level, last))

    def _rows(self, sql: str, sane: Callable[..., bool]) -> Iterator[Any]:
        with told(self.path):
            for row in self._connection.execute(sql):
                if not sane(*row):
                    raise DamagedError(f"{self.path} is damaged: it holds {row!r}", path=self.path)
                yield row


def _is_message(id_: object, offset: object) -> bool:
    return _are_counts(id_) and (offset == -1 or _are_counts(offset))


def _is_node(level: object, index: object, chars: object) -> bool:
    return _is_place(level, index) and _are_counts(chars)


def _is_place(level: object, index: object) -> bool:
    return _are_counts(level, index) and level <= MAX_LEVEL  # type: ignore[operator]


def _are_counts(*values: object) -> bool:
    """Whether a damaged page could not have put these there, as far as that shows."""
    return all(type(value) is int and 0 <= value < 1 << MAX_LEVEL for value in values)
