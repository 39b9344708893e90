"""SQLite as the derived files use it: connections, transactions, and what its errors mean.

Knows no tables.

Called by whoever opens ``index.sqlite`` or ``search.sqlite``. Both can be made anew at any time, so
an error has two meanings only: the file is damaged and has to be made anew, or the disk refuses and
the user has to be told.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING, Any, Final

from ..base.errors import StoreError
from . import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

BUSY_WAIT_S: Final = 5.0
"""Longest a statement waits for a transaction of another process."""

_REFUSALS: Final = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_TOOBIG,
    }
)
_ANEW: Final = "It is made anew by itself: try again"
_BROKEN: Final = (522, 1802)
"""SQLITE_IOERR_SHORT_READ.

The file ends where a page should be; SQLITE_IOERR_FSTAT: it was deleted while we opened it.
"""


class DamagedError(StoreError):
    """A derived file cannot be trusted and has to be made anew; handled inside the storage room."""


class Database:
    """One connection to a file, made when it is first used, and again after it was let go of."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return (self._connection or self._connect()).execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> sqlite3.Cursor:
        """Run one statement for many rows."""
        return (self._connection or self._connect()).executemany(sql, rows)

    def let_go(self) -> None:
        """Close the connection until it is used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection for good."""
        self._closed = True
        self.let_go()

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"cannot use {self.path}: it is closed", path=self.path)
        self._connection = connect(self.path)
        return self._connection


def connect(path: Path) -> sqlite3.Connection:
    """A connection that syncs as rarely as a file that can be made anew allows.

    Raises:
        DamagedError: the file is no database.
        StoreError: it cannot be opened or made.

    """
    files.make_private(path)
    with database_errors(path):
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=BUSY_WAIT_S
        )
        try:
            if _journal(connection) != "wal":  # network disks: no shared memory between processes
                connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -8000")
        except BaseException:
            connection.close()
            raise
    return connection


def _journal(connection: sqlite3.Connection) -> str:
    """Switch to a write-ahead log.

    SQLite does not wait by itself when several processes do this to a new file at once.
    """
    until = time.monotonic() + BUSY_WAIT_S
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(files.LOCK_POLL_S)


@contextlib.contextmanager
def transaction(connection: Database) -> Iterator[None]:
    """All or nothing for a block of writes."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Also after a COMMIT that failed: left open, the transaction would lock every process out
        # until this one ends.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def vacuum(connection: Database) -> bool:
    """Write the file anew, without the remains of what was deleted.

    False where a reader kept them in the write-ahead log beside it.
    """
    connection.execute("VACUUM")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _is_damage(path: Path, code: int) -> bool:
    """Whether what SQLite takes for a disk that refuses is in the file.

    It is cut or gone, or its head says it is not to be written.
    """
    return code in _BROKEN or (code == sqlite3.SQLITE_READONLY and os.access(path, os.W_OK))


@contextlib.contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """SQLite's errors in a block as ours.

    Raises:
        DamagedError: the file has to be made anew.
        StoreError: the disk refuses, or the connection is closed.

    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)):
            raise StoreError(f"cannot use {path}: it is closed", path=path) from error
        if code is not None and code & 0xFF in _REFUSALS and not _is_damage(path, code):
            raise StoreError(
                f"cannot use {path}: {error}",
                path=path,
                hint="Check that the disk has space and that you may write in its directory",
            ) from error
        raise DamagedError(f"{path} is damaged: {error}", path=path, hint=_ANEW) from error
    except (
        UnicodeDecodeError
    ) as error:  # out of SQLite's own message, where that quotes what is damaged
        raise DamagedError(f"{path} is damaged", path=path, hint=_ANEW) from error
