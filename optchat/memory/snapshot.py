"""The whole index as it was at one moment, row by row, however much is logged and built while it is
read. Used by ``check``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..base.record import MAX_LEVEL
from ..log.sqlite import DamagedError, connect, database_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Snapshot:
    """A context manager.

    On a connection of its own, because a long walk must not keep readers waiting.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = connect(path)

    def __enter__(self) -> Self:
        with database_errors(self.path):
            self._connection.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def known(self) -> dict[tuple[str, str], int]:
        """Bytes of each day file (room, name) that are in the index.

        Read first: it is what all the rest is compared with.
        """
        rows = self._rows(
            "SELECT known, room, name FROM files", lambda known, *_: _are_counts(known)
        )
        return {(room, name): known for known, room, name in rows}

    def messages(self) -> Iterator[tuple[int, bool, tuple[Any, ...]]]:
        """Every message in order.

        Its id, whether it is lost, and all that is said of it: file, offset, length, bytes,
        session, kind.
        """
        sql = (
            "SELECT m.id, m.file IS NULL, f.name, m.offset, m.length, m.bytes, s.name, "
            "m.kind FROM messages m "
            "LEFT JOIN files f ON f.id = m.file AND f.room = 'main' LEFT JOIN sessions s ON "
            "s.id = m.session ORDER BY m.id"
        )
        return (
            (id_, bool(lost), tuple(said))
            for id_, lost, *said in self._rows(sql, lambda id_, *_: _are_counts(id_))
        )

    def nodes(self) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        """Level, index and all that is said of every node, in order.

        File, offset, length, bytes, characters, builder, spare.
        """
        sql = (
            "SELECT n.level, n.idx, f.name, n.offset, n.length, n.bytes, n.chars, n.by, "
            "n.spare FROM nodes n "
            "LEFT JOIN files f ON f.id = n.file AND f.room = 'tree' ORDER BY n.level, n.idx"
        )
        return (
            (level, index, tuple(said))
            for level, index, *said in self._rows(
                sql, lambda level, index, *_: _is_place(level, index)
            )
        )

    def ready(self) -> Iterator[tuple[int, int]]:
        """(last message covered, level) of every node that can be built."""
        return self._rows(
            "SELECT last, level FROM ready", lambda last, level: _is_place(level, last)
        )

    def wrongly_ready(self) -> Iterator[tuple[int, int]]:
        """(last message covered, level) of those whose source has another size than the messages
        and nodes of the index say.
        """
        sql = (
            "SELECT r.last, r.level FROM ready r LEFT JOIN messages m ON m.id = r.last "
            "LEFT JOIN nodes a ON r.level > 0 AND a.level = r.level - 1 AND a.idx = "
            "(((r.last + 1) >> r.level) - 1) * 2 "
            "LEFT JOIN nodes b ON r.level > 0 AND b.level = r.level - 1 AND b.idx = "
            "(((r.last + 1) >> r.level) - 1) * 2 + 1 "
            "WHERE r.bytes IS NOT CASE WHEN r.level = 0 THEN m.bytes ELSE a.bytes + b.bytes + 1 END"
        )
        return self._rows(sql, lambda last, level: _is_place(level, last))

    def notes(self) -> Iterator[tuple[str, str, str, bytes]]:
        """(session, type, key, body) of every note about a session."""
        return self._rows(
            "SELECT session, type, key, body FROM notes",
            lambda *row: all(isinstance(part, (str, bytes)) for part in row),
        )

    def damage(self) -> list[str]:
        """What ``Index.damage`` would say."""
        rows = self._rows(
            "SELECT room, name, offset, reason FROM damage ORDER BY id", lambda *_: True
        )
        return [f"{room}/{name}, byte {offset}: {reason}" for room, name, offset, reason in rows]

    def id_of(self, uid: str) -> int | None:
        """What ``Index.id_of`` would say."""
        return next(
            (
                id_
                for (id_,) in self._rows(
                    "SELECT id FROM uids WHERE uid = ?", lambda _: True, (uid,)
                )
            ),
            None,
        )

    def count_uids(self) -> int:
        """How many ids of the host, and turns, are known."""
        ((count,),) = self._rows("SELECT count(*) FROM uids", _are_counts)
        return int(count)

    def faults(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        rows = [str(line) for (line,) in self._rows("PRAGMA integrity_check(5)", lambda _: True)]
        return [] if rows == ["ok"] else rows

    def _rows(
        self, sql: str, sane: Callable[..., bool], values: tuple[Any, ...] = ()
    ) -> Iterator[Any]:
        with database_errors(self.path):
            for row in self._connection.execute(sql, values):
                if not sane(*row):
                    raise DamagedError(f"{self.path} is damaged: it holds {row!r}", path=self.path)
                yield row


def _is_place(level: object, index: object) -> bool:
    return _are_counts(level, index) and level <= MAX_LEVEL  # type: ignore[operator]


def _are_counts(*values: object) -> bool:
    """Whether a damaged page could not have put these there, as far as that shows."""
    return all(type(value) is int and 0 <= value < 1 << MAX_LEVEL for value in values)
