"""``index.sqlite``: where every message and node lies, and which nodes can be built now. Derived: it can always be rebuilt.

Written only under ``write.lock``, in the same step as the append it describes; read at any time, by any process. Positions of
torn or lost records are kept too, so that ids never shift. Holds no texts.

Two connections: one writes, one reads. With a single one, a prefetch would wait for the compactor's commit.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from typing import TYPE_CHECKING, Any, Final

from ..core.cost import ALL, Cost, Costs
from ..core.records import BUILDERS, MAX_LEVEL, clean
from ..core.tree import Place
from . import files, forks, ready
from .database import DamagedError, Database, told, transaction
from .log import Spot
from .rows import MessageRow, NodeRow, Ready, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

VERSION: Final = 3

_FALLBACK: Final = BUILDERS.index("fallback")
_DEFAULT_COSTS: Final = Costs()

TURN: Final = "turn:"
"""Before a turn's token in the table of host ids: the turn is in the log, or settled without a message."""

_SCHEMA: Final = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (id INTEGER PRIMARY KEY, room TEXT NOT NULL, name TEXT NOT NULL, known INTEGER NOT NULL, UNIQUE (room, name));
CREATE TABLE sessions (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
-- file is NULL for a message that existed and is lost
CREATE TABLE messages (id INTEGER PRIMARY KEY, file INTEGER, offset INTEGER, length INTEGER, bytes INTEGER NOT NULL, session INTEGER,
                       kind INTEGER);
CREATE INDEX messages_of_session ON messages (session, id) WHERE session IS NOT NULL;
CREATE TABLE uids (uid TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE nodes (level INTEGER, idx INTEGER, file INTEGER, offset INTEGER, length INTEGER, bytes INTEGER, chars INTEGER, by INTEGER,
                    spare INTEGER, PRIMARY KEY (level, idx)) WITHOUT ROWID;
{ready.SCHEMA}-- what is noted about sessions besides their messages. No number is given twice, so that readers can ask for what came since
CREATE TABLE notes (seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, type TEXT NOT NULL, key TEXT NOT NULL,
                    body BLOB NOT NULL);
CREATE INDEX notes_of_session ON notes (session, type);
CREATE INDEX notes_of_type ON notes (type, key);
CREATE TABLE damage (id INTEGER PRIMARY KEY, room TEXT, name TEXT, offset INTEGER, reason TEXT);
"""


_STATE: Final = """
SELECT '', (SELECT value FROM meta WHERE key = 'generation'), (SELECT max(id) FROM messages)
UNION ALL SELECT room, name, known FROM files WHERE room = 'main' AND name IN (?1, ?2, ?3)
UNION ALL SELECT room, name, known FROM files WHERE room = 'tree' AND name = ?2
UNION ALL SELECT * FROM (SELECT room, name, known FROM files WHERE room = 'main' ORDER BY name DESC LIMIT 1)
UNION ALL SELECT * FROM (SELECT room, name, known FROM files WHERE room = 'tree' ORDER BY name DESC LIMIT 1)
"""


class Index:
    """The open index. Reading methods may be called from any thread; writing ones by the holder of the write lock."""

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
            self.identity = files.identity_of(path)
            self._log_file = files.identity_of(self._log_path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close both connections."""
        with self._read_mutex:
            self._reader.close()
        self._writer.close()

    def before_fork(self) -> None:
        """Close both connections and keep everybody from opening them again: what SQLite knows of its locks must not be inherited."""
        self._frozen = self._read_mutex.acquire(timeout=forks.WAIT_S)
        self._reader.let_go()
        self._writer.let_go()
        self._log_file = None  # the last to close takes the file along, and makes another when it is used again

    def after_fork(self, *, child: bool) -> None:
        """Go on; the connections are made again when they are used."""
        if child:
            self._read_mutex = threading.Lock()
        elif self._frozen:
            self._read_mutex.release()

    def has_its_log(self) -> bool:
        """Whether the write-ahead log on disk is the one our connections use. Deleted, each process would go on with one of its own."""
        found = files.identity_of(self._log_path)
        if self._log_file is None:
            self._log_file = found
        return found == self._log_file

    # -- reading

    def total(self) -> int:
        """How many messages the log holds; the next id."""
        (top,) = _whole(self._one("SELECT max(id) FROM messages"), nulls=True)
        return 0 if top is None else top + 1

    def generation(self) -> int:
        """Changes when the index was rebuilt."""
        row = self._one("SELECT value FROM meta WHERE key = 'generation'")
        return int(_whole(row)[0]) if row else 0

    def data_version(self) -> int:
        """Changes whenever anyone, in any process, has committed."""
        row = self._one("PRAGMA data_version")
        return int(row[0]) if row else 0

    def known(self, room: str) -> dict[str, int]:
        """Bytes of each day file of a room that are in the index, by name."""
        rows = self._all("SELECT name, known FROM files WHERE room = ?", (room,))
        return {_day(name): _whole((known,))[0] for name, known in rows}

    def state(self, near: tuple[str, str, str]) -> State:
        """What an append has to know, in one question however many day files there are.

        ``near``: the day files others may be writing messages to, whose clock or zone differs from ours; the second is ours. Besides
        them, the newest matter. (A node that another has built and we do not know of costs nothing but its line.)
        """
        rows = self._all(_STATE, near)
        generation, top = _whole(rows[0][1:], nulls=True)
        known = {("main", name): 0 for name in near} | {("tree", near[1]): 0}
        known.update(((room, _day(name)), _whole((bytes_,))[0]) for room, name, bytes_ in rows[1:])
        return State(generation or 0, 0 if top is None else top + 1, known)

    def newest(self) -> tuple[int, Spot, int] | None:
        """The newest message that is not lost, where it lies, and the bytes known of its file."""
        row = self._one(
            "SELECT m.id, m.file, m.offset, m.length, f.known FROM messages m LEFT JOIN files f ON f.id = m.file "
            "WHERE m.file IS NOT NULL ORDER BY m.id DESC LIMIT 1"
        )
        spot = None if row is None else self._spot(*_whole(row)[1:4])
        return None if spot is None else (row[0], spot, row[4])

    def message_spots(self, first: int, end: int) -> list[tuple[int, Spot | None]]:
        """Where messages [first, end) lie, in order; None for one that is lost."""
        rows = self._all("SELECT id, file, offset, length FROM messages WHERE id >= ? AND id < ? ORDER BY id", (first, end))
        if [id_ for id_, *_ in rows] != list(range(first, first + len(rows))) or (not rows and first < min(end, self.total())):
            raise DamagedError(f"{self.path} is damaged: messages between {first} and {end} are missing", path=self.path)
        return [(id_, self._spot(file, offset, length)) for id_, file, offset, length in rows]

    def spots_of(self, ids: Iterable[int]) -> list[tuple[int, Spot | None]]:
        """Where these messages lie, in the order of the log; None for one that is lost."""
        asked = ", ".join(map(str, ids))
        rows = self._all(f"SELECT id, file, offset, length FROM messages WHERE id IN ({asked}) ORDER BY id")
        return [(id_, self._spot(file, offset, length)) for id_, file, offset, length in rows]

    def sizes_of(self, ids: Iterable[int]) -> dict[int, int]:
        """Bytes of the source of each of these messages."""
        return dict(self._all(f"SELECT id, bytes FROM messages WHERE id IN ({', '.join(map(str, ids))})"))

    def session_spots(self, session: str, first: int = 0) -> list[tuple[int, Spot | None]]:
        """Where the messages of one session from ``first`` on lie, in order."""
        rows = self._all(
            "SELECT id, file, offset, length FROM messages WHERE session = (SELECT id FROM sessions WHERE name = ?) AND id >= ? "
            "ORDER BY id",
            (clean(session), first),
        )
        return [(id_, self._spot(file, offset, length)) for id_, file, offset, length in rows]

    def id_of(self, uid: str) -> int | None:
        """The message the host calls ``uid``, if it is logged."""
        row = self._one("SELECT id FROM uids WHERE uid = ?", (clean(uid),))
        return int(row[0]) if row else None

    def node_spots(self, places: Iterable[Place]) -> dict[Place, Spot]:
        """Where the nodes among ``places`` that are built lie."""
        found = {}
        for place in places:
            row = self._one("SELECT file, offset, length FROM nodes WHERE level = ? AND idx = ?", place)
            if row and (spot := self._spot(*row)):
                found[place] = spot
        return found

    def chars(self, place: Place) -> int | None:
        """Characters of a node's text, or None if it is not built."""
        row = self._one("SELECT chars FROM nodes WHERE level = ? AND idx = ?", place)
        return int(_whole(row)[0]) if row else None

    def bytes(self, place: Place) -> int | None:
        """Bytes of a node's text, or None if it is not built."""
        row = self._one("SELECT bytes FROM nodes WHERE level = ? AND idx = ?", place)
        return int(_whole(row)[0]) if row else None

    def leaves(self, first: int, end: int, limit: int) -> list[tuple[int, int]]:
        """(index, characters) of at most ``limit`` built leaves in [first, end), in order."""
        rows = self._all("SELECT idx, chars FROM nodes WHERE level = 0 AND idx >= ? AND idx < ? ORDER BY idx LIMIT ?", (first, end, limit))
        return [_whole(row) for row in rows]

    def any_leaf(self, first: int, end: int) -> bool:
        """Whether any message in [first, end) has its leaf."""
        return self._one("SELECT 1 FROM nodes WHERE level = 0 AND idx >= ? AND idx < ? LIMIT 1", (first, end)) is not None

    def ready(self, limit: int, costs: Collection[Cost] = ALL) -> list[Ready]:
        """At most ``limit`` nodes of these costs that can be built now, children before parents and old before new."""
        rows = sorted(row for question in ready.questions(costs) for row in self._all(question, (limit,)))
        return [_ready(*_whole(row)) for row in rows[:limit]]

    def waiting(self, cost: Cost) -> int:
        """How many nodes of this cost can be built now."""
        row = self._one("SELECT count(*) FROM ready WHERE cost = ?", (int(cost),))
        return int(row[0])

    def fallbacks(self, places: Collection[Place]) -> list[Place]:
        """Those of these nodes whose line is a fallback, and whose parent is not built."""
        return [
            place
            for place in places
            if self._one(
                "SELECT 1 FROM nodes WHERE level = ?1 AND idx = ?2 AND by = ?3 "
                "AND NOT EXISTS (SELECT 1 FROM nodes WHERE level = ?1 + 1 AND idx = ?2 / 2)",
                (*place, _FALLBACK),
            )
        ]

    def spares(self, places: Collection[Place]) -> set[Place]:
        """Those of these nodes that hold nothing worth a model's words."""
        return {p for p in places if self._one("SELECT 1 FROM nodes WHERE level = ? AND idx = ? AND spare", p)}

    def rewritten(self) -> int:
        """Changes when a line that was built got another text: what is remembered of texts and sizes is then stale."""
        row = self._one("SELECT sum(value) FROM meta WHERE key IN ('generation', 'rewritten')")
        (value,) = _whole(row, nulls=True)
        return value or 0

    def count(self, table: str) -> int:
        """Rows of one of our tables."""
        row = self._one(f"SELECT count(*) FROM {table}")
        return int(row[0]) if row else 0

    def damage(self, limit: int) -> list[str]:
        """Lines of day files that were stepped over, as ``room/file, byte n: reason``."""
        rows = self._all("SELECT room, name, offset, reason FROM damage ORDER BY id LIMIT ?", (limit,))
        return [f"{room}/{name}, byte {offset}: {reason}" for room, name, offset, reason in rows]

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Ask for the notes of ``capture.py``, whose tables these are too."""
        return self._all(sql, values)

    def write(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write notes; inside a transaction."""
        self._writer.executemany(sql, rows)

    def forget(self) -> None:
        """Drop what was remembered of file and session numbers: another process has rebuilt the index."""
        self._file_ids.clear()
        self._file_names.clear()
        self._session_ids.clear()

    # -- writing, under write.lock

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing for a block of writes."""
        try:
            with told(self.path), transaction(self._writer):
                yield
        except BaseException:
            self.forget()
            raise

    def wipe(self) -> None:
        """Empty all tables (creating what is missing) and start a new generation; inside a transaction."""
        for (name,) in self._writer.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall():
            self._writer.execute(f'DROP TABLE "{name}"')
        for statement in _SCHEMA.split(";"):
            if statement.strip():
                self._writer.execute(statement)
        self._writer.executemany("INSERT INTO meta VALUES (?, ?)", [("version", VERSION), ("generation", secrets.randbits(62))])
        self.forget()
        self.ok = True

    def add_messages(self, rows: list[MessageRow], room: str, *, ready_too: bool = True) -> None:
        """Add messages; an id already there keeps its first line, unless that one was lost."""
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
            "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET file = excluded.file, "
            "offset = excluded.offset, length = excluded.length, bytes = excluded.bytes, session = excluded.session, kind = excluded.kind "
            "WHERE messages.file IS NULL AND excluded.file IS NOT NULL",
            values,
        )
        if uids := [(r.uid, r.id) for r in rows if r.uid] + [(TURN + r.turn, r.id) for r in rows if r.turn]:
            self._writer.executemany("INSERT OR IGNORE INTO uids VALUES (?, ?)", uids)
        if ready_too:
            self._writer.executemany(self._ready.add_leaf, [(r.id,) for r in rows])

    def add_nodes(self, rows: list[NodeRow], room: str, *, ready_too: bool = True) -> None:
        """Add nodes; one already there keeps its first line, unless that was a fallback and a model has written it since."""
        values = [(*r.place, *self._columns(room, r.spot), r.bytes, r.chars, _builder(r.by), r.spare) for r in rows]
        anew = self._writer.executemany(
            "UPDATE nodes SET file = ?3, offset = ?4, length = ?5, bytes = ?6, chars = ?7, by = ?8, spare = ?9 "
            f"WHERE level = ?1 AND idx = ?2 AND by = {_FALLBACK}",
            [value for value, r in zip(values, rows, strict=True) if r.by == "model"],
        ).rowcount
        self._writer.executemany("INSERT OR IGNORE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        if anew > 0:
            self.note_rewritten()
        if not ready_too:
            return
        self.drop_ready(r.place for r in rows)
        parents = {r.place.parent for r in rows}
        self._writer.executemany(self._ready.add_merge, [(place.level, place.index, place.end - 1) for place in parents])

    def drop_ready(self, places: Iterable[Place]) -> None:
        """These nodes are built: nobody need build them."""
        self._writer.executemany(ready.DROP, [(place.end - 1, place.level) for place in places])

    def rebuild_ready(self) -> None:
        """Fill the ready table from messages and nodes in one pass; for bulk loading."""
        for statement in self._ready.rebuild:
            self._writer.execute(statement)

    def note_rewritten(self) -> None:
        """A line that was built got another text: tell every process that remembers some."""
        self._writer.execute(
            "INSERT INTO meta VALUES ('rewritten', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1"
        )

    def lost_ids(self, first: int, end: int) -> Iterator[int]:
        """Ids in [first, end) that have no row, in order; seen by the writing connection."""
        within = "FROM messages WHERE id >= ? AND id < ?"
        if self._writer.execute(f"SELECT count(*) {within}", (first, end)).fetchone()[0] == end - first:
            return
        at = first
        for (here,) in self._writer.execute(f"SELECT id {within} ORDER BY id", (first, end)).fetchall():
            yield from range(at, here)
            at = here + 1
        yield from range(at, end)

    def tops(self) -> tuple[int, int]:
        """One past the highest message id, and one past the highest leaf, as the writing connection sees them."""
        message, leaf = self._writer.execute(
            "SELECT (SELECT max(id) FROM messages), (SELECT max(idx) FROM nodes WHERE level = 0)"
        ).fetchone()
        return (0 if message is None else message + 1), (0 if leaf is None else leaf + 1)

    def set_known(self, room: str, name: str, known: int) -> None:
        """Say how many bytes of a day file are in the index."""
        changed = self._writer.execute("UPDATE files SET known = ? WHERE id = ?", (known, self._file_id(room, name)))
        if changed.rowcount != 1:
            raise DamagedError(f"{self.path} is damaged: it has forgotten {room}/{name}", path=self.path)

    def note_damage(self, room: str, name: str, offset: int, reason: str) -> None:
        """Remember a line that was stepped over."""
        self._writer.execute("INSERT INTO damage (room, name, offset, reason) VALUES (?, ?, ?, ?)", (room, name, offset, reason))

    # -- inside

    def usable(self) -> bool:
        """Whether the file is an index of our version; anything else is rebuilt."""
        if self._one("SELECT 1 FROM sqlite_master WHERE name = 'meta'") is None:
            return False
        row = self._one("SELECT value FROM meta WHERE key = 'version'")
        return row is not None and row[0] == VERSION

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        with self._read_mutex, told(self.path):
            return self._reader.execute(sql, values).fetchone()

    def _all(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._read_mutex, told(self.path):
            return self._reader.execute(sql, values).fetchall()

    def _spot(self, file: int | None, offset: int, length: int) -> Spot | None:
        if file is None:
            return None
        _whole((file, offset, length))
        if file not in self._file_names:
            self._file_names.update(self._all("SELECT id, name FROM files"))
        if file not in self._file_names or min(offset, length) < 0:
            raise DamagedError(f"{self.path} is damaged: it leads to a place that does not exist", path=self.path)
        return Spot(_day(self._file_names[file]), offset, length)

    def _columns(self, room: str, spot: Spot | None) -> tuple[int | None, int, int]:
        return (None, 0, 0) if spot is None else (self._file_id(room, spot.name), spot.offset, spot.length)

    def _file_id(self, room: str, name: str) -> int:
        found = self._file_ids.get((room, name))
        if found is None:
            self._writer.execute("INSERT OR IGNORE INTO files (room, name, known) VALUES (?, ?, 0)", (room, name))
            found = self._writer.execute("SELECT id FROM files WHERE room = ? AND name = ?", (room, name)).fetchone()[0]
            self._file_ids[room, name] = _whole((found,))[0]
        return int(found)

    def _session_id(self, name: str) -> int:
        found = self._session_ids.get(name)
        if found is None:
            self._writer.execute("INSERT OR IGNORE INTO sessions (name) VALUES (?)", (name,))
            found = self._writer.execute("SELECT id FROM sessions WHERE name = ?", (name,)).fetchone()[0]
            self._session_ids[name] = _whole((found,))[0]
        return int(found)


def _day(name: Any) -> str:
    if not files.is_day_file(name):
        raise DamagedError("index.sqlite is damaged: something else stands where a day file should be named")
    return str(name)


def _whole(row: Any, *, nulls: bool = False) -> Any:
    """A row of whole numbers as it is: a damaged page can hold anything, and would fail far from here."""
    for value in row:
        if type(value) is not int and not (nulls and value is None):
            raise DamagedError("index.sqlite is damaged: something else stands where a number should be")
    return row


def _builder(by: str) -> int:
    """Who built a line, as the index holds it; a log of another kind names nobody we know, and had a model."""
    return BUILDERS.index(by if by in BUILDERS else "model")


def _ready(last: int, level: int, size: int, cost: int, spare: int) -> Ready:
    if not 0 <= level <= MAX_LEVEL or (last + 1) & ((1 << level) - 1) or last < 0:
        raise DamagedError("index.sqlite is damaged: it wants a line built that the tree cannot have")
    if cost not in ALL:
        raise DamagedError("index.sqlite is damaged: it holds a line of a cost that does not exist")
    return Ready(Place(level, ((last + 1) >> level) - 1), size, Cost(cost), bool(spare))
