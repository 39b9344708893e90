"""The whole index as it was at one moment, row by row, however much is logged and built while it is read. Used by ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from .database import connect, told

if TYPE_CHECKING:
    from collections.abc import Iterator
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
        return {(room, name): known for room, name, known in self._rows("SELECT room, name, known FROM files")}

    def messages(self) -> Iterator[tuple[int, int]]:
        """(id, offset or -1 where it is lost) of every message, in order."""
        return self._rows("SELECT id, CASE WHEN file IS NULL THEN -1 ELSE offset END FROM messages ORDER BY id")

    def nodes(self) -> Iterator[tuple[int, int, int]]:
        """(level, index, characters) of every node, in order."""
        return self._rows("SELECT level, idx, chars FROM nodes ORDER BY level, idx")

    def ready(self) -> Iterator[tuple[int, int]]:
        """(last message covered, level) of every node that can be built."""
        return self._rows("SELECT last, level FROM ready")

    def _rows(self, sql: str) -> Iterator[Any]:
        with told(self.path):
            yield from self._connection.execute(sql)
