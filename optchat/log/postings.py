"""The table of terms in ``search.sqlite``: which term stands in which message, and nothing else.

Terms come ready from ``base/terms.py``; SQLite only keeps and finds them, so that a stem, a path or
a pair of signs is one term to it whatever its signs. Neither positions nor lengths are kept, which
makes the table a third as large and a term's messages a plain list. Called by ``search.py``, which
holds the connection; knows nothing of texts or ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .sqlite import Database

LISTED: Final = 20_000
"""A term in more messages than this is common.

Listing them would take longer than a turn may be held up.
"""

_LISTED_ANYWAY: Final = 2_000
_LISTED_ONE_IN: Final = 10
"""So is a term that more than one message in ten holds, unless there are few of them.

It tells next to nothing by itself.
"""

SAMPLE: Final = 4_000
"""How often a common term occurs is judged by this many of the newest messages."""

_JOINED: Final = 2_000
"""Of the messages that hold a common term beside another, the newest so many are listed."""

_COMMON_ASKED: Final = 4
"""Of several common terms, the rarest so many are looked at."""

_KEPT: Final = 4_096

_MAKE: Final = (
    "CREATE VIRTUAL TABLE words USING fts5 "
    "(terms, content = '', detail = none, columnsize = 0, tokenize = \"ascii tokenchars '-_./:@'\")"
)


@dataclass(frozen=True, slots=True)
class Posting:
    """Where a term stands.

    ``count``: in how many messages. ``ids``: in which; of a common term only those that matter.
    """

    count: int
    ids: Sequence[int]


def make(database: Database) -> None:
    """Create the table, empty."""
    database.execute("DROP TABLE IF EXISTS words")
    database.execute(_MAKE)


def insert(database: Database, rows: Iterable[tuple[int, Iterable[str]]]) -> None:
    """Add messages with their terms."""
    database.executemany(
        "INSERT INTO words (rowid, terms) VALUES (?, ?)",
        ((id_, " ".join(terms)) for id_, terms in rows),
    )


def remove(database: Database, id_: int, terms: Iterable[str]) -> None:
    """Take a message out; ``terms``: all it was added with. The table does not know them itself."""
    database.execute(
        "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)", (id_, " ".join(terms))
    )


def merge(database: Database) -> None:
    """Drop what was taken out for good.

    Until its parts are merged the table only notes beside it that it is gone.
    """
    database.execute("INSERT INTO words (words) VALUES ('optimize')")


class Reader:
    """Looks terms up, and remembers how common they are."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}

    def forget(self) -> None:
        """The table is another one."""
        self._counts.clear()

    def look_up(self, database: Database, terms: Iterable[str], total: int) -> dict[str, Posting]:
        """Where each of the terms stands, for those that stand anywhere.

        ``total``: how many messages the table holds.

        The rare ones are listed in full. Of a common one, only messages that hold a rare one as
        well; where none is rare, the newest that hold two common ones.
        """
        counts = {term: self._count(database, term, total) for term in terms}
        rising = sorted((term for term, count in counts.items() if count), key=counts.__getitem__)
        found: dict[str, Posting] = {}
        most = min(LISTED, max(_LISTED_ANYWAY, total // _LISTED_ONE_IN))
        left = 2 * most
        for term in rising:
            if counts[term] <= min(left, most):
                left -= counts[term]
                found[term] = Posting(counts[term], _listed(database, _quoted(term), most))
        either = " OR ".join(map(_quoted, found))
        common = [term for term in rising if term not in found]
        asked = common[:_COMMON_ASKED]
        for term in common:
            beside = either or " OR ".join(_quoted(other) for other in asked if other != term)
            ids = (
                _listed(database, f"{_quoted(term)} AND ({beside})", _JOINED)
                if beside and term in asked
                else ()
            )
            found[term] = Posting(counts[term], ids)
        return found

    def newest(self, database: Database, terms: Iterable[str], limit: int) -> Sequence[int]:
        """The newest messages that hold all of the terms."""
        return _listed(database, " AND ".join(map(_quoted, terms)), limit)

    def _count(self, database: Database, term: str, total: int) -> int:
        """In how many messages a term stands.

        Of a common one an estimate, which is kept for as long as the table lives.
        """
        count, then = self._counts.get(term, (0, -1))
        if then == total or count > LISTED:
            return count
        quoted = _quoted(term)
        sampled = (
            _counted(database, quoted, SAMPLE, max(0, total - SAMPLE))
            if total > SAMPLE + LISTED
            else 0
        )
        estimate = sampled * total // SAMPLE
        # The sample alone would take a term for rare that was common long ago, so that only a clear
        # answer is believed.
        count = estimate if estimate > 2 * LISTED else _counted(database, quoted, LISTED + 1)
        if len(self._counts) >= _KEPT:
            self._counts.clear()
        self._counts[term] = max(count, estimate) if count > LISTED else count, total
        return self._counts[term][0]


def _quoted(term: str) -> str:
    """The term as a string of the query language: nothing in it is read as an operator."""
    return '"' + term.replace('"', '""') + '"'


def _counted(database: Database, query: str, most: int, first: int = 0) -> int:
    sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? AND rowid >= ? LIMIT ?)"
    return int(database.execute(sql, (query, first, most)).fetchone()[0])


def _listed(database: Database, query: str, most: int) -> Sequence[int]:
    """The newest messages a query matches, newest first.

    One long text comes out of SQLite in a third of the time of as many rows.
    """
    sql = (
        "SELECT group_concat(rowid) FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY "
        "rowid DESC LIMIT ?)"
    )
    ids = database.execute(sql, (query, most)).fetchone()[0]
    return [*map(int, ids.split(","))] if ids else []
