"""What is asked of ``index.sqlite``.

Where messages and nodes lie, what is known of the day files, what can be built now.

Any thread, in any process, at any time; on a connection of its own, because with a single one a
prefetch would wait for the compactor's commit. ``index.py`` opens the file and writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..base.address import Place
from ..base.cost import ALL, Cost
from ..base.json_line import clean
from ..base.record import BUILDERS, MAX_LEVEL
from . import reads, ready
from .day_files import Spot
from .rows import Ready, State
from .sqlite import DamagedError, database_errors

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from .sqlite import Database

FALLBACK: Final = BUILDERS.index("fallback")

_STATE: Final = """
SELECT '', (SELECT value FROM meta WHERE key = 'generation'), (SELECT max(id) FROM messages)
UNION ALL SELECT room, name, known FROM files WHERE room = 'main' AND name IN (?1, ?2, ?3)
UNION ALL SELECT room, name, known FROM files WHERE room = 'tree' AND name = ?2
UNION ALL SELECT 'last', value, 0 FROM meta WHERE key = 'last'
UNION ALL SELECT 'main', m.value, coalesce(f.known, 0) FROM meta m LEFT JOIN files f ON f.room =
'main' AND f.name = m.value
                                                            WHERE m.key = 'last'
UNION ALL SELECT * FROM (SELECT room, name, known FROM files WHERE room = 'main' ORDER BY name DESC
LIMIT 1)
UNION ALL SELECT * FROM (SELECT room, name, known FROM files WHERE room = 'tree' ORDER BY name DESC
LIMIT 1)
"""

_IDS_MOST: Final = 500
"""Messages with one name that are looked at, the newest.

"ok" may have been said a hundred thousand times.
"""

_ASKED_AT_ONCE: Final = 256
_CHARS_OF: Final = (
    f"SELECT idx, chars FROM nodes WHERE level = ? AND idx IN ({', '.join('?' * _ASKED_AT_ONCE)})"
)


class Lookup:
    """The reading half of an ``Index``; the attributes below are the index's."""

    path: Path
    _reader: Database
    _read_mutex: threading.Lock
    _file_names: dict[int, str]

    def total(self) -> int:
        """How many messages the log holds; the next id."""
        (top,) = whole(self._one("SELECT max(id) FROM messages"), nulls=True)
        return 0 if top is None else top + 1

    def generation(self) -> int:
        """Changes when the index was rebuilt."""
        row = self._one("SELECT value FROM meta WHERE key = 'generation'")
        return int(whole(row)[0]) if row else 0

    def data_version(self) -> int:
        """Changes whenever anyone, in any process, has committed."""
        row = self._one("PRAGMA data_version")
        return int(row[0]) if row else 0

    def known(self, room: str) -> dict[str, int]:
        """Bytes of each day file of a room that are in the index, by name."""
        rows = self._all("SELECT name, known FROM files WHERE room = ?", (room,))
        return {day_name(name): whole((known,))[0] for name, known in rows}

    def state(self, near: tuple[str, str, str]) -> State:
        """What an append has to know, in one question however many day files there are.

        ``near``: the day files others may be writing messages to, whose clock or zone differs a
        little from ours; the second is ours. Besides them, the newest matter, and the last that was
        written to, whatever clock that was by. (A node that another has built and we do not know of
        costs nothing but its line.)
        """
        rows = self._all(_STATE, near)
        generation, top = whole(rows[0][1:], nulls=True)
        known = {("main", name): 0 for name in near} | {("tree", near[1]): 0}
        known.update(
            ((room, day_name(name)), whole((bytes_,))[0]) for room, name, bytes_ in rows[1:]
        )
        last = next((name for room, name in known if room == "last"), "")
        known.pop(("last", last), None)
        return State(generation or 0, 0 if top is None else top + 1, known, last)

    def newest(self) -> tuple[int, Spot, int] | None:
        """The newest message that is not lost, where it lies, and the bytes known of its file."""
        row = self._one(
            "SELECT m.id, m.file, m.offset, m.length, f.known FROM messages m LEFT JOIN "
            "files f ON f.id = m.file "
            "WHERE m.file IS NOT NULL ORDER BY m.id DESC LIMIT 1"
        )
        spot = None if row is None else self._spot(*whole(row)[1:4])
        return None if spot is None else (row[0], spot, row[4])

    def message_spots(self, first: int, end: int) -> list[tuple[int, Spot | None]]:
        """Where messages [first, end) lie, in order; None for one that is lost."""
        rows = self._all(
            "SELECT id, file, offset, length FROM messages WHERE id >= ? AND id < ? ORDER BY id",
            (first, end),
        )
        if [id_ for id_, *_ in rows] != list(range(first, first + len(rows))) or (
            not rows and first < min(end, self.total())
        ):
            raise DamagedError(
                f"{self.path} is damaged: messages between {first} and {end} are missing",
                path=self.path,
            )
        return [(id_, self._spot(file, offset, length)) for id_, file, offset, length in rows]

    def spots_of(self, ids: Iterable[int]) -> list[tuple[int, Spot | None]]:
        """Where these messages lie, in the order of the log; None for one that is lost."""
        asked = ", ".join(map(str, ids))
        rows = self._all(
            f"SELECT id, file, offset, length FROM messages WHERE id IN ({asked}) ORDER BY id"
        )
        return [(id_, self._spot(file, offset, length)) for id_, file, offset, length in rows]

    def sizes_of(self, ids: Iterable[int]) -> dict[int, int]:
        """Bytes of the source of each of these messages."""
        return dict(
            self._all(f"SELECT id, bytes FROM messages WHERE id IN ({', '.join(map(str, ids))})")
        )

    def session_spots(self, session: str, first: int = 0) -> list[tuple[int, Spot | None]]:
        """Where the messages of one session from ``first`` on lie, in order."""
        rows = self._all(
            "SELECT id, file, offset, length FROM messages WHERE session = (SELECT id FROM "
            "sessions WHERE name = ?) AND id >= ? "
            "ORDER BY id",
            (clean(session), first),
        )
        return [(id_, self._spot(file, offset, length)) for id_, file, offset, length in rows]

    def session_ids(self, session: str, first: int = 0) -> list[int]:
        """The messages of one session from ``first`` on, in order."""
        sql = (
            "SELECT id FROM messages WHERE session = (SELECT id FROM sessions WHERE name = ?) "
            "AND id >= ? ORDER BY id"
        )
        return [int(id_) for (id_,) in self._all(sql, (clean(session), first))]

    def id_of(self, uid: str) -> int | None:
        """The message the host calls ``uid``, if it is logged."""
        row = self._one("SELECT id FROM uids WHERE uid = ?", (clean(uid),))
        return int(row[0]) if row else None

    def ids_under(self, start: str) -> list[int]:
        """The messages that have a name with this beginning, the newest first."""
        end = f"{start[:-1]}{chr(ord(start[-1]) + 1)}"
        sql = "SELECT id FROM uids WHERE uid >= ? AND uid < ? ORDER BY id DESC LIMIT ?"
        return [whole(row)[0] for row in self._all(sql, (start, end, _IDS_MOST))]

    def sessions_of(self, ids: Collection[int]) -> dict[int, str]:
        """The session of each of these messages that has one."""
        asked = ", ".join(map(str, ids))
        sql = "SELECT m.id, s.name FROM messages m JOIN sessions s ON s.id = m.session"
        return dict(self._all(f"{sql} WHERE m.id IN ({asked})"))

    def node_spots(self, places: Iterable[Place]) -> dict[Place, Spot]:
        """Where the nodes among ``places`` that are built lie."""
        found = {}
        for place in places:
            row = self._one(
                "SELECT file, offset, length FROM nodes WHERE level = ? AND idx = ?", place
            )
            if row and (spot := self._spot(*row)):
                found[place] = spot
        return found

    def chars(self, place: Place) -> int | None:
        """Characters of a node's text, or None if it is not built."""
        row = self._one("SELECT chars FROM nodes WHERE level = ? AND idx = ?", place)
        return int(whole(row)[0]) if row else None

    def chars_of(self, places: Iterable[Place]) -> dict[Place, int]:
        """Characters of the texts of those of these nodes that are built, in few questions.

        Each would cost more than its answer.
        """
        wanted: dict[int, list[int]] = {}
        for level, index in places:
            wanted.setdefault(level, []).append(index)
        found: dict[Place, int] = {}
        for level, indices in wanted.items():
            for at in range(0, len(indices), _ASKED_AT_ONCE):
                asked = indices[at : at + _ASKED_AT_ONCE]
                # Always as many, so that the question is compiled once.
                asked += [-1] * (_ASKED_AT_ONCE - len(asked))
                found.update(
                    (Place(level, index), whole((chars,))[0])
                    for index, chars in self._all(_CHARS_OF, (level, *asked))
                )
        return found

    def bytes(self, place: Place) -> int | None:
        """Bytes of a node's text, or None if it is not built."""
        row = self._one("SELECT bytes FROM nodes WHERE level = ? AND idx = ?", place)
        return int(whole(row)[0]) if row else None

    def leaves(self, first: int, end: int, limit: int) -> list[tuple[int, int]]:
        """(index, characters) of at most ``limit`` built leaves in [first, end), in order."""
        rows = self._all(
            (
                "SELECT idx, chars FROM nodes WHERE level = 0 AND idx >= ? AND idx < ? ORDER BY "
                "idx LIMIT ?"
            ),
            (first, end, limit),
        )
        return [whole(row) for row in rows]

    def any_leaf(self, first: int, end: int) -> bool:
        """Whether any message in [first, end) has its leaf."""
        return (
            self._one(
                "SELECT 1 FROM nodes WHERE level = 0 AND idx >= ? AND idx < ? LIMIT 1", (first, end)
            )
            is not None
        )

    def ready(self, limit: int, costs: Collection[Cost] = ALL) -> list[Ready]:
        """At most ``limit`` nodes of these costs that can be built now, children before parents and
        old before new.
        """
        rows = sorted(
            row for question in ready.questions(costs) for row in self._all(question, (limit,))
        )
        return [_ready(*whole(row)) for row in rows[:limit]]

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
                (*place, FALLBACK),
            )
        ]

    def spares(self, places: Collection[Place]) -> set[Place]:
        """Those of these nodes that hold nothing worth a model's words."""
        return {
            p
            for p in places
            if self._one("SELECT 1 FROM nodes WHERE level = ? AND idx = ? AND spare", p)
        }

    def rewritten(self) -> int:
        """Changes when a line that was built got another text.

        What is remembered of texts and sizes is then stale.
        """
        row = self._one("SELECT sum(value) FROM meta WHERE key IN ('generation', 'rewritten')")
        (value,) = whole(row, nulls=True)
        return value or 0

    def count(self, table: str) -> int:
        """Rows of one of our tables."""
        row = self._one(f"SELECT count(*) FROM {table}")
        return int(row[0]) if row else 0

    def damage(self, limit: int) -> list[str]:
        """Lines of day files that were stepped over, as ``room/file, byte n: reason``."""
        rows = self._all(
            "SELECT room, name, offset, reason FROM damage ORDER BY id LIMIT ?", (limit,)
        )
        return [f"{room}/{name}, byte {offset}: {reason}" for room, name, offset, reason in rows]

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Ask for the notes of ``session_notes.py``, whose tables these are too."""
        return self._all(sql, values)

    # -- inside

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        with self._read_mutex, database_errors(self.path):
            return self._reader.execute(sql, values).fetchone()

    def _all(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._read_mutex, database_errors(self.path):
            return self._reader.execute(sql, values).fetchall()

    def _spot(self, file: int | None, offset: int, length: int) -> Spot | None:
        if file is None:
            return None
        whole((file, offset, length))
        if file not in self._file_names:
            self._file_names.update(self._all("SELECT id, name FROM files"))
        if file not in self._file_names or min(offset, length) < 0:
            raise DamagedError(
                f"{self.path} is damaged: it leads to a place that does not exist", path=self.path
            )
        return Spot(day_name(self._file_names[file]), offset, length)


def day_name(name: Any) -> str:
    """A day file's name as it is: a damaged page can hold a path to anywhere."""
    if not reads.is_day_file(name):
        raise DamagedError(
            "index.sqlite is damaged: something else stands where a day file should be named"
        )
    return str(name)


def whole(row: Any, *, nulls: bool = False) -> Any:
    """A row of whole numbers as it is.

    A damaged page can hold anything, and would fail far from here.
    """
    for value in row:
        if type(value) is not int and not (nulls and value is None):
            raise DamagedError(
                "index.sqlite is damaged: something else stands where a number should be"
            )
    return row


def _ready(last: int, level: int, size: int, cost: int, spare: int) -> Ready:
    if not 0 <= level <= MAX_LEVEL or (last + 1) & ((1 << level) - 1) or last < 0:
        raise DamagedError(
            "index.sqlite is damaged: it wants a line built that the tree cannot have"
        )
    if cost not in ALL:
        raise DamagedError("index.sqlite is damaged: it holds a line of a cost that does not exist")
    return Ready(Place(level, ((last + 1) >> level) - 1), size, Cost(cost), bool(spare))
