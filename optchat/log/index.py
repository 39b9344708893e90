"""``index.sqlite``: where every message and node lies, and which nodes can be built now.

Derived: it can always be rebuilt.

Written only under ``write.lock``, in the same step as the append it describes; read at any time, by
any process. Positions of torn or lost records are kept too, so that ids never shift. Holds no
texts. The questions it answers stand in ``lookup.py``.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from typing import TYPE_CHECKING, Any, Final

from ..base.cost import Costs
from ..base.record import BUILDERS
from . import forks, reads, ready
from .lookup import FALLBACK, Lookup, whole
from .sqlite import DamagedError, Database, database_errors, transaction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from ..base.address import Place
    from .day_files import Spot
    from .rows import MessageRow, NodeRow

VERSION: Final = 4

_MODEL: Final = BUILDERS.index("model")
_DEFAULT_COSTS: Final = Costs()

TURN: Final = "turn:"
"""Before a turn's token in the table of host ids.

The turn is in the log, or settled without a message.
"""

SAID: Final = "said:"
"""Before a print of the user's words and the message's number in that table.

Hosts show a list again under another session's name, and its words lead to the messages it repeats.
"""

_SCHEMA: Final = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (id INTEGER PRIMARY KEY, room TEXT NOT NULL, name TEXT NOT NULL, known INTEGER
NOT NULL, UNIQUE (room, name));
CREATE TABLE sessions (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
-- file is NULL for a message that existed and is lost
CREATE TABLE messages (id INTEGER PRIMARY KEY, file INTEGER, offset INTEGER, length INTEGER, bytes
INTEGER NOT NULL, session INTEGER,
                       kind INTEGER);
CREATE INDEX messages_of_session ON messages (session, id) WHERE session IS NOT NULL;
CREATE TABLE uids (uid TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE nodes (level INTEGER, idx INTEGER, file INTEGER, offset INTEGER, length INTEGER, bytes
INTEGER, chars INTEGER, by INTEGER,
                    spare INTEGER, PRIMARY KEY (level, idx)) WITHOUT ROWID;
{ready.SCHEMA}
-- what is noted about sessions besides their messages. No number is given twice, so that readers
-- can ask for what came since
CREATE TABLE notes (seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, type TEXT NOT
NULL, key TEXT NOT NULL,
                    body BLOB NOT NULL);
CREATE INDEX notes_of_session ON notes (session, type);
CREATE INDEX notes_of_type ON notes (type, key);
CREATE TABLE damage (id INTEGER PRIMARY KEY, room TEXT, name TEXT, offset INTEGER, reason TEXT);
"""


class Index(Lookup):
    """The open index.

    Reading methods may be called from any thread; writing ones by the holder of the write lock.
    """

    def __init__(self, path: Path, costs: Costs = _DEFAULT_COSTS) -> None:
        self.path = path
        self._ready = ready.ReadySql(costs)
        self._read_mutex = threading.Lock()
        self._frozen = False
        self._file_ids: dict[tuple[str, str], int] = {}
        self._file_names: dict[int, str] = {}
        self._session_ids: dict[str, int] = {}
        self._log_path = path.with_name(f"{path.name}-wal")
        self._writer, self._reader = Database(path), Database(path)
        try:
            self.ok = self.usable()
            self.identity = reads.identity_of(path)
            self._log_file = reads.identity_of(self._log_path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close both connections."""
        with self._read_mutex:
            self._reader.close()
        self._writer.close()

    def before_fork(self) -> None:
        """Close both connections and keep everybody from opening them again.

        What SQLite knows of its locks must not be inherited.
        """
        self._frozen = self._read_mutex.acquire(timeout=forks.WAIT_S)
        self._reader.let_go()
        self._writer.let_go()
        # The last to close takes the file along, and makes another when it is used again.
        self._log_file = None

    def after_fork(self, *, child: bool) -> None:
        """Go on; the connections are made again when they are used."""
        if child:
            self._read_mutex = threading.Lock()
        elif self._frozen:
            self._read_mutex.release()

    def has_its_log(self) -> bool:
        """Whether the write-ahead log on disk is the one our connections use.

        Deleted, each process would go on with one of its own.
        """
        found = reads.identity_of(self._log_path)
        if self._log_file is None:
            self._log_file = found
        return found == self._log_file

    def forget(self) -> None:
        """Drop what was remembered of file and session numbers.

        Another process has rebuilt the index.
        """
        self._file_ids.clear()
        self._file_names.clear()
        self._session_ids.clear()

    # -- writing, under write.lock

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing for a block of writes."""
        try:
            with database_errors(self.path), transaction(self._writer):
                yield
        except BaseException:
            self.forget()
            raise

    def write(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write notes; inside a transaction."""
        self._writer.executemany(sql, rows)

    def wipe(self) -> None:
        """Empty all tables (creating what is missing) and start a new generation.

        Inside a transaction.
        """
        for (name,) in self._writer.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall():
            self._writer.execute(f'DROP TABLE "{name}"')
        for statement in _SCHEMA.split(";"):
            if statement.strip():
                self._writer.execute(statement)
        self._writer.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [("version", VERSION), ("generation", secrets.randbits(62))],
        )
        self.forget()
        self.ok = True

    def add_messages(
        self, rows: list[MessageRow], room: str, *, ready_too: bool = True, new: bool = False
    ) -> None:
        """Add messages; an id already there keeps its first line, unless that one was lost.

        ``new``: no id has been given before, and so no line built; it need not be looked for.
        """
        values = [
            (
                r.id,
                *self._columns(room, r.spot),
                r.bytes,
                self._session_id(r.session) if r.session else None,
                ready.number_of(r.kind) if r.spot else None,
            )
            for r in rows
        ]
        self._writer.executemany(
            "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
            "SET file = excluded.file, "
            "offset = excluded.offset, length = excluded.length, bytes = excluded.bytes, "
            "session = excluded.session, kind = excluded.kind "
            "WHERE messages.file IS NULL AND excluded.file IS NOT NULL",
            values,
        )
        if uids := [(name, r.id) for r in rows for name in r.names]:
            self._writer.executemany("INSERT OR IGNORE INTO uids VALUES (?, ?)", uids)
        if new:
            self._writer.executemany(
                ready.ADD_NEW, [self._ready.leaf(r.id, r.kind, r.bytes) for r in rows]
            )
        elif ready_too:
            self._writer.executemany(ready.DROP, [(r.id, 0) for r in rows])
            self._writer.executemany(self._ready.add_leaf, [(r.id,) for r in rows])

    def add_nodes(self, rows: list[NodeRow], room: str, *, ready_too: bool = True) -> None:
        """Add nodes.

        One already there keeps its first line, unless that was a fallback and a model has written
        it since.
        """
        values = [
            (*r.place, *self._columns(room, r.spot), r.bytes, r.chars, _builder(r.by), r.spare)
            for r in rows
        ]
        is_fallback = f"SELECT 1 FROM nodes WHERE level = ? AND idx = ? AND by = {FALLBACK}"
        # Of an index that is being made anew nobody remembers a text.
        if ready_too and any(
            self._writer.execute(is_fallback, r.place).fetchone() for r in rows if r.by == "model"
        ):
            self.note_rewritten()
        self._writer.executemany(
            "INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (level, idx) "
            "DO UPDATE SET file = excluded.file, "
            "offset = excluded.offset, length = excluded.length, bytes = excluded.bytes, "
            "chars = excluded.chars, by = excluded.by, "
            f"spare = excluded.spare WHERE nodes.by = {FALLBACK} AND excluded.by = {_MODEL}",
            values,
        )
        if not ready_too:
            return
        parents = {r.place.parent for r in rows}
        self.drop_ready([*(r.place for r in rows), *parents])
        self._writer.executemany(
            self._ready.add_merge, [(place.level, place.index, place.end - 1) for place in parents]
        )

    def unbuild(self, places: Collection[Place]) -> None:
        """These nodes are not built any more, and can be built again; every process is told."""
        self._writer.executemany("DELETE FROM nodes WHERE level = ? AND idx = ?", places)
        self.drop_ready(places)
        leaves = [(place.index,) for place in places if not place.level]
        merges = [(place.level, place.index, place.end - 1) for place in places if place.level]
        self._writer.executemany(self._ready.add_leaf, leaves)
        self._writer.executemany(self._ready.add_merge, merges)
        self.note_rewritten()
        generation = (secrets.randbits(62),)
        self._writer.execute("UPDATE meta SET value = ? WHERE key = 'generation'", generation)

    def drop_ready(self, places: Iterable[Place]) -> None:
        """These nodes are built: nobody need build them."""
        self._writer.executemany(ready.DROP, [(place.end - 1, place.level) for place in places])

    def rebuild_ready(self) -> None:
        """Fill the ready table from messages and nodes in one pass.

        For bulk loading, and where the settings have changed.
        """
        for statement in self._ready.rebuild:
            self._writer.execute(statement)
        self._writer.execute(
            "INSERT OR REPLACE INTO meta VALUES ('costs', ?)", (self._ready.settings,)
        )

    def note_rewritten(self) -> None:
        """A line that was built got another text: tell every process that remembers some."""
        self._writer.execute(
            "INSERT INTO meta VALUES ('rewritten', 1) ON CONFLICT (key) DO UPDATE SET value "
            "= value + 1"
        )

    def has_our_costs(self) -> bool:
        """Whether what is ready was given its cost by our settings.

        New rows apart, which each process writes by its own.
        """
        row = self._one("SELECT value FROM meta WHERE key = 'costs'")
        return row is not None and row[0] == self._ready.settings

    def lost_ids(self, first: int, end: int) -> Iterator[int]:
        """Ids in [first, end) that have no row, in order; seen by the writing connection."""
        within = "FROM messages WHERE id >= ? AND id < ?"
        if (
            self._writer.execute(f"SELECT count(*) {within}", (first, end)).fetchone()[0]
            == end - first
        ):
            return
        at = first
        for (here,) in self._writer.execute(
            f"SELECT id {within} ORDER BY id", (first, end)
        ).fetchall():
            yield from range(at, here)
            at = here + 1
        yield from range(at, end)

    def tops(self) -> tuple[int, int]:
        """One past the highest message id, and one past the highest leaf, as the writing connection
        sees them.
        """
        message, leaf = self._writer.execute(
            "SELECT (SELECT max(id) FROM messages), (SELECT max(idx) FROM nodes WHERE level = 0)"
        ).fetchone()
        return (0 if message is None else message + 1), (0 if leaf is None else leaf + 1)

    def set_known(self, room: str, name: str, known: int) -> None:
        """Say how many bytes of a day file are in the index."""
        changed = self._writer.execute(
            "UPDATE files SET known = ? WHERE id = ?", (known, self._file_id(room, name))
        )
        if changed.rowcount != 1:
            raise DamagedError(
                f"{self.path} is damaged: it has forgotten {room}/{name}", path=self.path
            )

    def set_last(self, name: str) -> None:
        """Say which day file messages are about to be written to.

        In a transaction of its own, before they are.
        """
        self._writer.execute(
            (
                "INSERT INTO meta VALUES ('last', ?) ON CONFLICT (key) DO UPDATE SET value = "
                "excluded.value"
            ),
            (name,),
        )

    def note_damage(self, room: str, name: str, offset: int, reason: str) -> None:
        """Remember a line that was stepped over."""
        self._writer.execute(
            "INSERT INTO damage (room, name, offset, reason) VALUES (?, ?, ?, ?)",
            (room, name, offset, reason),
        )

    # -- inside

    def usable(self) -> bool:
        """Whether the file is an index of our version; anything else is rebuilt."""
        if self._one("SELECT 1 FROM sqlite_master WHERE name = 'meta'") is None:
            return False
        row = self._one("SELECT value FROM meta WHERE key = 'version'")
        return row is not None and row[0] == VERSION

    def _columns(self, room: str, spot: Spot | None) -> tuple[int | None, int, int]:
        return (
            (None, 0, 0)
            if spot is None
            else (self._file_id(room, spot.name), spot.offset, spot.length)
        )

    def _file_id(self, room: str, name: str) -> int:
        found = self._file_ids.get((room, name))
        if found is None:
            self._writer.execute(
                "INSERT OR IGNORE INTO files (room, name, known) VALUES (?, ?, 0)", (room, name)
            )
            found = self._writer.execute(
                "SELECT id FROM files WHERE room = ? AND name = ?", (room, name)
            ).fetchone()[0]
            self._file_ids[room, name] = whole((found,))[0]
        return int(found)

    def _session_id(self, name: str) -> int:
        found = self._session_ids.get(name)
        if found is None:
            self._writer.execute("INSERT OR IGNORE INTO sessions (name) VALUES (?)", (name,))
            found = self._writer.execute(
                "SELECT id FROM sessions WHERE name = ?", (name,)
            ).fetchone()[0]
            self._session_ids[name] = whole((found,))[0]
        return int(found)


def _builder(by: str) -> int:
    """Who built a line, as the index holds it.

    A log of another kind names nobody we know, and had a model.
    """
    return BUILDERS.index(by if by in BUILDERS else "model")
