"""``search.sqlite``: full text of every message, for finding the ones that hold given words. Derived: it can always be rebuilt.

Written a moment after the append, by the holder of ``compactor.lock`` alone, so that no turn waits for it. Holds no texts, only
which words stand in which message. Runs of Chinese, Japanese and Korean signs have no spaces to cut at; they are indexed as
overlapping pairs and asked for as phrases, so that any run of two or more signs is found.
"""

from __future__ import annotations

import contextlib
import re
import threading
from typing import TYPE_CHECKING, Any, Final

from . import files, forks
from .database import DamagedError, Database, told, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VERSION: Final = 1
_WORDS_ASKED: Final = 32
_INDEXED_CHARS: Final = 1 << 20
"""Of a longer message (a dump of megabytes) the head and tail are searchable, this many characters in all."""

_CJK: Final = re.compile("[\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003134f]+")
_WORD: Final = re.compile(r"\w+")


class Search:
    """The full-text index. Opened when first used: trouble with it must not keep anybody from saying something."""

    def __init__(self, path: Path, log_mark: Callable[[], int]) -> None:
        """``log_mark`` tells one log from another (0: still empty), so that a restored or swapped log is not searched as the old one."""
        self.path = path
        self._log_mark = log_mark
        self._mutex = threading.Lock()
        self._frozen = False
        self._database = Database(path)
        self._identity: tuple[int, int] | None = None

    def close(self) -> None:
        """Close the connection."""
        with self._mutex:
            self._database.close()

    def before_fork(self) -> None:
        """Close the connection and keep everybody from opening it again, as ``Index.before_fork`` does."""
        self._frozen = self._mutex.acquire(timeout=forks.WAIT_S)
        self._database.let_go()

    def after_fork(self, *, child: bool) -> None:
        """Go on; the connection is made again when it is used."""
        if child:
            self._mutex = threading.Lock()
        elif self._frozen:
            self._mutex.release()

    def indexed(self) -> int:
        """Messages [0, n) are searchable; 0 where the index has yet to be made."""
        mark = self._log_mark()
        with self._healed() as connection:
            row = _meta(connection)
        return row[1] if row and row[0] == mark else 0

    def add(self, first: int, texts: list[str]) -> None:
        """Make messages from ``first`` on searchable; by the holder of the compactor's lock only."""
        mark = self._log_mark()
        with self._healed() as connection, transaction(connection):
            row = _meta(connection)
            if row is None or row[0] != mark or first == 0:
                self._wipe(connection, mark)
            elif row[1] != first:
                return  # another process was faster
            connection.executemany(
                "INSERT INTO words (rowid, text) VALUES (?, ?)", [(first + k, spaced(text)) for k, text in enumerate(texts)]
            )
            connection.execute("UPDATE meta SET indexed = ?", (first + len(texts),))

    def find(self, query: str, limit: int) -> list[int]:
        """Ids of the messages that hold the query's words, best match first; those with all of them before those with some."""
        words = _asked(query)
        if not words or not self.indexed():
            return []
        with self._healed() as connection:
            found: list[int] = []
            for joint in (" AND ", " OR ") if len(words) > 1 else (" AND ",):
                asked = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
                for (id_,) in connection.execute(asked, (joint.join(words), limit)):
                    if id_ not in found:
                        found.append(id_)
                if len(found) >= limit:
                    break
        return found[:limit]

    # -- inside

    @contextlib.contextmanager
    def _healed(self) -> Iterator[Database]:
        """The database, opened anew where the file was deleted; a damaged file is removed, to be made anew by the compactor."""
        with self._mutex:
            if files.identity_of(self.path) != self._identity:
                self._database.let_go()
            try:
                with told(self.path):
                    self._database.execute("SELECT 1")
                    self._identity = files.identity_of(self.path)
                    yield self._database
            except DamagedError:
                self._database.let_go()
                files.remove_files(self.path, *(self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")))
                raise

    def _wipe(self, connection: Database, mark: int) -> None:
        for table in ("words", "meta"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content = '', detail = full)")
        connection.execute("CREATE TABLE meta (version INTEGER, log_mark INTEGER, indexed INTEGER)")
        connection.execute("INSERT INTO meta VALUES (?, ?, 0)", (VERSION, mark))


def spaced(text: str) -> str:
    """The text as the tokenizer should see it: every run of signs without spaces cut into overlapping pairs."""
    if len(text) > _INDEXED_CHARS:
        text = f"{text[: _INDEXED_CHARS // 2]} {text[-_INDEXED_CHARS // 2 :]}"
    return text if text.isascii() else _CJK.sub(lambda run: f" {_pairs(run[0])} ", text)


def _pairs(run: str) -> str:
    return run if len(run) == 1 else " ".join(run[k : k + 2] for k in range(len(run) - 1))


def _asked(query: str) -> list[str]:
    """The query's words as quoted terms, each once: nothing a user types is read as an operator."""
    terms: dict[str, None] = {}
    for word in _WORD.findall(query[:10_000]):
        plain, at = [], 0
        for run in _CJK.finditer(word):
            plain.append(word[at : run.start()])
            terms[f'"{_pairs(run[0])}"'] = None
            at = run.end()
        for part in (*plain, word[at:]):
            if part:
                terms[f'"{part}"'] = None
    return list(terms)[:_WORDS_ASKED]


def _meta(connection: Database) -> tuple[int, int] | None:
    """(log mark, messages indexed), or None where nothing of our version is there."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        return None
    row: Any = connection.execute("SELECT log_mark, indexed FROM meta WHERE version = ?", (VERSION,)).fetchone()
    if row is None or not all(type(value) is int for value in row):
        return None
    return row[0], row[1]
