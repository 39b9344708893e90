"""``search.sqlite``: full text of every message, for finding the ones that hold given words.

Derived: it can always be rebuilt.

Written a moment after the append, by the holder of ``compactor.lock`` alone, so that no turn waits
for it; read over a connection of its own, so that no turn waits for the writing either. Only a
redacted message is replaced at once, whoever holds that lock. Holds no texts, only which terms
stand in which message; what a term is, ``base/terms.py`` says.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from ..base import terms
from . import files, forks, postings, reads
from .hidden import NOTHING, Hidden
from .sqlite import BUSY_WAIT_S, DamagedError, Database, database_errors, transaction, vacuum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

VERSION: Final = 3

READ_WAIT_S: Final = 0.1
"""Longest a reader waits where the disk has no write-ahead log and somebody writes.

A turn goes on without what it would find.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """Where terms stand: in ``total`` searchable messages, of ``mean_chars`` characters on average.

    ``hidden``: messages that are out of sight, and not among them.
    """

    total: int = 0
    mean_chars: float = 1.0
    postings: Mapping[str, postings.Posting] = field(default_factory=dict)
    hidden: Hidden = NOTHING


class Search:
    """The full-text index.

    Opened when first used: trouble with it must not keep anybody from saying something.
    """

    def __init__(
        self,
        path: Path,
        log_mark: Callable[[], int],
        hidden: Callable[[], Hidden] = lambda: NOTHING,
    ) -> None:
        """``log_mark`` tells one log from another (0: still empty).

        Without it a restored or swapped log would be searched as the old one. ``hidden``: which
        messages are out of sight just now; they are in the index as all others, and are not found.
        """
        self.path = path
        self._hidden = hidden
        self._log_mark = log_mark
        self._writer, self._reader = _Link(path, BUSY_WAIT_S), _Link(path, READ_WAIT_S)
        self._terms = postings.Reader()
        self._known: tuple[object, ...] = ()

    def close(self) -> None:
        """Close both connections."""
        self._writer.close()
        self._reader.close()

    def before_fork(self) -> None:
        """Close both connections and keep everybody from opening them again, as
        ``Index.before_fork`` does.
        """
        self._writer.before_fork()
        self._reader.before_fork()

    def after_fork(self, *, child: bool) -> None:
        """Go on; the connections are made again when they are used."""
        self._writer.after_fork(child=child)
        self._reader.after_fork(child=child)

    def indexed(self) -> int:
        """Messages [0, n) are searchable; 0 where the index has yet to be made."""
        mark = self._log_mark()
        with self._reader.healed() as database:
            meta = _meta(database)
        return meta.indexed if meta and meta.log_mark == mark else 0

    def made(self) -> int:
        """Changes when the index is made anew and whenever a text in it was replaced.

        0 where there is none.
        """
        with self._reader.healed() as database:
            meta = _meta(database)
        return meta.made if meta else 0

    def add(
        self,
        first: int,
        texts: Sequence[str],
        dates: Sequence[str] = (),
        *,
        since: int | None = None,
    ) -> None:
        """Make messages from ``first`` on searchable, also by their dates.

        By the holder of the compactor's lock only.

        ``since``: what ``made`` said before the texts were read. If it says something else now, one
        of them may have been replaced in between, and nothing is added.
        """
        mark = self._log_mark()
        rows = [
            (first + k, terms.terms(text, date))
            for k, (text, date) in enumerate(zip_longest(texts, dates, fillvalue=""))
        ]
        with self._writer.healed() as database, transaction(database):
            meta = _meta(database)
            if since is not None and since != (meta.made if meta else 0):
                return
            if first == 0:
                _wipe(database, mark)
            elif meta is None or meta.log_mark != mark or meta.indexed != first:
                return  # another process was faster, or the file was deleted meanwhile
            postings.insert(database, rows)
            database.execute(
                "UPDATE meta SET indexed = ?, chars = chars + ?",
                (first + len(texts), sum(map(len, texts))),
            )

    def replace(self, id_: int, old: str | None, new: str, date: str = "") -> None:
        """Message ``id_`` says ``new`` instead of ``old`` from now on.

        Nothing of what is gone is found any more.

        ``old`` must be what was added; where it is None, and not replaced already, the index is
        emptied, to be made anew. Whoever is about to add what it read before this will not.
        """
        mark = self._log_mark()
        with self._writer.healed() as database, transaction(database):
            meta = _meta(database)
            if meta is None or meta.log_mark != mark:
                _wipe(database, mark)
                return
            database.execute("UPDATE meta SET made = random()")
            database.execute("CREATE TABLE IF NOT EXISTS replaced (id INTEGER PRIMARY KEY)")
            if (
                id_ >= meta.indexed
                or database.execute("SELECT 1 FROM replaced WHERE id = ?", (id_,)).fetchone()
            ):
                return  # a second removal would take terms away that others hold
            if old is None:
                _wipe(database, mark)
                return
            postings.remove(database, id_, terms.terms(old, date))
            postings.insert(database, [(id_, terms.terms(new, date))])
            database.execute("INSERT INTO replaced VALUES (?)", (id_,))
            database.execute("UPDATE meta SET chars = max(0, chars + ?)", (len(new) - len(old),))

    def follow_log(self, old_mark: int) -> None:
        """The log that had this mark has another one now, and is the same log."""
        mark = self._log_mark()
        with self._writer.healed() as database, transaction(database):
            if _meta(database) is not None:
                database.execute(
                    "UPDATE meta SET log_mark = ? WHERE log_mark = ?", (mark, old_mark)
                )

    def clean(self) -> bool:
        """Leave no byte of what was replaced in the file.

        False where somebody was reading and some may be left beside it.
        """
        with self._writer.healed() as database:
            if _meta(database) is not None:
                postings.merge(database)
            return vacuum(database)

    def look_up(self, terms: Iterable[str]) -> Found:
        """Where the terms stand."""
        mark, hidden = self._log_mark(), self._hidden()
        with self._reader.healed() as database:
            meta = self._checked(_meta(database), mark)
            if meta is None:
                return Found()
            found = self._terms.look_up(database, terms, meta.indexed)
        if hidden:
            found = {
                term: postings.Posting(posting.count, hidden.in_sight(posting.ids))
                for term, posting in found.items()
            }
        return Found(meta.indexed, max(1.0, meta.chars / meta.indexed), found, hidden)

    def newest(self, terms: Iterable[str], limit: int) -> Sequence[int]:
        """The newest messages that hold all of these terms, however common they are.

        Newest first.
        """
        hidden = self._hidden()
        with self._reader.healed() as database:
            return hidden.in_sight(self._terms.newest(database, terms, limit + len(hidden)))[:limit]

    # -- inside

    def _checked(self, meta: _Meta | None, mark: int) -> _Meta | None:
        """What the file says of itself, if it is about this log.

        What was learned from another file is forgotten.
        """
        if meta is None or meta.log_mark != mark or not meta.indexed:
            return None
        known = (self._reader.identity, meta.log_mark, meta.made)
        if known != self._known:
            self._terms.forget()
            self._known = known
        return meta


class _Link:
    """One connection to the file, with the mutex that guards it."""

    def __init__(self, path: Path, wait_s: float) -> None:
        self.path = path
        self.identity: tuple[int, int] | None = None
        self._wait = f"PRAGMA busy_timeout = {int(wait_s * 1000)}"
        self._database = Database(path)
        self._mutex = threading.Lock()
        self._frozen = False

    def close(self) -> None:
        with self._mutex:
            self._database.close()

    def before_fork(self) -> None:
        self._frozen = self._mutex.acquire(timeout=forks.WAIT_S)
        self._database.let_go()

    def after_fork(self, *, child: bool) -> None:
        if child:
            self._mutex = threading.Lock()
        elif self._frozen:
            self._mutex.release()

    @contextlib.contextmanager
    def healed(self) -> Iterator[Database]:
        """The database, opened anew where the file was deleted.

        A damaged file is removed, to be made anew by the compactor.
        """
        with self._mutex:
            if reads.identity_of(self.path) != self.identity:
                self._database.let_go()
            try:
                with database_errors(self.path):
                    self._database.execute(self._wait)
                    self.identity = reads.identity_of(self.path)
                    yield self._database
            except DamagedError:
                self._database.let_go()
                files.remove_files(
                    self.path,
                    *(self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")),
                )
                raise


@dataclass(frozen=True, slots=True)
class _Meta:
    """What the file says of itself. ``made`` tells one making of it from the next."""

    log_mark: int
    made: int
    indexed: int
    chars: int


def _meta(database: Database) -> _Meta | None:
    """None where nothing of our version is there."""
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        return None
    if database.execute("SELECT version FROM meta").fetchone() != (VERSION,):
        return None
    row: Any = database.execute("SELECT log_mark, made, indexed, chars FROM meta").fetchone()
    return _Meta(*row) if all(type(value) is int for value in row) else None


def _wipe(database: Database, mark: int) -> None:
    database.execute("DROP TABLE IF EXISTS meta")
    database.execute("DROP TABLE IF EXISTS replaced")
    postings.make(database)
    database.execute(
        "CREATE TABLE meta (version INTEGER, log_mark INTEGER, made INTEGER, indexed "
        "INTEGER, chars INTEGER)"
    )
    database.execute("INSERT INTO meta VALUES (?, ?, random(), 0, 0)", (VERSION, mark))
