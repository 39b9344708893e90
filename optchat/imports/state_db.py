"""Hermes' ``state.db`` as a source.

Its rows in the order they were written, each real message once.

Reads only, and leaves no file behind. The database holds some messages several times: after a
compression the host stores the first and last messages of the old context again beside its summary,
and a branched session begins with a copy of its parent. ``find_copies`` tells these from real
repeats. Called by ``sources.open_source``.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ..base.errors import SourceError
from ..capture.host_text import split_summary, without_restatement
from .rows import Item, NotSaidError, RowError, entries_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NOT_SPOKEN: Final = ("cron", "subagent", "flush")
"""Sources of sessions nobody took part in; memory is not made from them live either."""

_WANTED: Final = (
    *(
        "session_id",
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "tool_name",
        "timestamp",
        "display_kind",
        "message_uid",
    ),
    "_compressed_summary",
)
_ROWS_AT_ONCE: Final = 200
_LIST_HEAD: Final = "\x00json:"
_BURST_S: Final = 1e-5
"""The host dates a list it writes anew one microsecond a row.

Messages that were said are further apart.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is needed of a row to tell copies.

    A print of what it says, when it was stored, its id and the host's own id of it.
    """

    id: int
    print: bytes
    stored: float
    uid: str = ""
    summary: bool = False
    glued: tuple[bytes, ...] = ()
    """Prints of the real messages a summary was glued to."""


class HermesDatabase:
    """A state.db of any release so far: columns that are not there are done without."""

    form = "Hermes state.db"

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(self._connect()) as db:
            try:
                self._columns = {row[1] for row in db.execute("PRAGMA table_info(messages)")}
                self._session_columns = {
                    row[1] for row in db.execute("PRAGMA table_info(sessions)")
                }
                if not {"session_id", "role", "content"} <= self._columns:
                    hint = "Give Hermes' state.db, as it lies in the Hermes home"
                    raise SourceError(
                        "cannot import: this SQLite file is no Hermes database",
                        path=path,
                        hint=hint,
                    )
                self.total = int(db.execute("SELECT COUNT(*) FROM messages").fetchone()[0])
            except sqlite3.Error as error:
                raise self._unreadable(error) from error

    def items(self) -> Iterator[Item]:
        """All messages of all sessions people took part in, in the order they were stored."""
        before = self._state()
        try:
            with closing(self._connect()) as db:
                yield from self._read(db)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        if before != self._state():
            yield Item(
                place="the file",
                position=self.total,
                fault="changed while it was read. Import it once more to take in the rest",
            )

    def _read(self, db: sqlite3.Connection) -> Iterator[Item]:
        # What the host stores from now on is left for the next import: the copies among it are not
        # known.
        newest = db.execute("SELECT MAX(rowid) FROM messages").fetchone()[0] or 0
        sessions = self._sessions(db)
        copies = self._copies(db, sessions)
        for position, row in enumerate(self._rows(db, newest), 1):
            session = sessions.get(str(row["session_id"]), {})
            place = f"message row {row['id']}"
            if row["id"] in copies:
                yield Item(place=place, position=position, left_out="copies made by the host")
            elif session.get("source") in NOT_SPOKEN or session.get("delegated"):
                yield Item(
                    place=place, position=position, left_out="messages of cron and subagent runs"
                )
            else:
                yield from _row_items(row, session, place, position)

    def _rows(self, db: sqlite3.Connection, newest: int) -> Iterator[dict[str, Any]]:
        """Rows up to this one, a few at a time.

        One long query would keep a host without WAL from writing until the import ends.
        """
        last = -(1 << 62)
        while True:
            condition = "rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?"
            rows = self._select(db, condition, (last, newest, _ROWS_AT_ONCE))
            yield from rows
            if len(rows) < _ROWS_AT_ONCE:
                return
            last = rows[-1]["id"]

    def _select(
        self, db: sqlite3.Connection, condition: str, values: tuple[object, ...]
    ) -> list[dict[str, Any]]:
        names = ["id", *(name for name in _WANTED if name in self._columns)]
        found = db.execute(
            f"SELECT rowid, {', '.join(names[1:])} FROM messages WHERE {condition}", values
        )
        return [dict(zip(names, row, strict=True)) for row in found]

    def _sessions(self, db: sqlite3.Connection) -> dict[str, dict[str, Any]]:
        wanted = (
            "id",
            "source",
            "parent_session_id",
            "end_reason",
            "model_config",
            "display_name",
            "chat_type",
        )
        columns = [name for name in wanted if name in self._session_columns]
        if "id" not in columns:
            return {}
        sessions = {}
        for values in db.execute(f"SELECT {', '.join(columns)} FROM sessions ORDER BY rowid"):
            session = dict(zip(columns, values, strict=True))
            marks = _object(session.pop("model_config", None))
            session["branched"] = marks.get("_branched_from")
            session["delegated"] = marks.get("_delegate_from")
            sessions[str(session["id"])] = session
        return sessions

    def _copies(self, db: sqlite3.Connection, sessions: dict[str, dict[str, Any]]) -> set[int]:
        """Ids of all rows that only repeat another.

        The lists of one session and of those copied from are in memory, as prints.
        """
        copies: set[int] = set()
        lists: dict[str, list[Row]] = {}
        parents = {_copied_from(session, sessions) for session in sessions.values()}
        for (name,) in db.execute(
            "SELECT session_id FROM messages GROUP BY session_id ORDER BY MIN(rowid)"
        ).fetchall():
            found, last = self._copies_in(db, sessions, lists, str(name))
            copies |= found
            if name in parents:
                lists[str(name)] = last
        return copies

    def _copies_in(
        self,
        db: sqlite3.Connection,
        sessions: dict[str, dict[str, Any]],
        lists: dict[str, list[Row]],
        name: str,
        before: int = 1 << 62,
    ) -> tuple[set[int], list[Row]]:
        """Copies among the rows of one session, and its list, as of row ``before``."""
        found = self._select(db, "session_id = ? AND rowid < ? ORDER BY rowid", (name, before))
        # A request restated after a compression would stand between what is compared; as a copy it
        # is left out by its words.
        rows = [_print(row) for row in found if without_restatement(str(row["content"])) is None]
        session = sessions.get(name, {})
        parent = _copied_from(session, sessions)
        inherited: list[Row] = []
        if parent and rows:
            inherited = lists.get(parent, [])
            # A parent that went on after it was branched: its list is wanted as it was at that
            # moment.
            if inherited and max(row.id for row in inherited) > rows[0].id:
                inherited = self._copies_in(db, sessions, lists, parent, rows[0].id)[1]
        return find_copies(rows, inherited, branched=bool(session.get("branched")))

    def _connect(self) -> sqlite3.Connection:
        """Open without writing.

        A database in WAL mode that no process has open would get a -wal and a -shm beside it even
        from a reader; ``immutable`` prevents that, and is taken only where there is no -wal that it
        would overlook.
        """
        still = self._in_wal_mode() and not self._wal_bytes()
        try:
            db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=ro{'&immutable=1' if still else ''}",
                uri=True,
            )
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        # A row cut inside a character must not end the import.
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return db

    def _state(self) -> tuple[int, ...]:
        """What tells that the file changed under an ``immutable`` reader.

        Where the database's own locks protect us, a constant.
        """
        if not self._in_wal_mode():
            return ()
        facts = self.path.stat()
        return (0, 1) if self._wal_bytes() else (facts.st_mtime_ns, facts.st_size)

    def _in_wal_mode(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(20)[18:] == b"\x02\x02"

    def _wal_bytes(self) -> int:
        wal = self.path.with_name(self.path.name + "-wal")
        return wal.stat().st_size if wal.exists() else 0

    def _unreadable(self, error: sqlite3.Error) -> SourceError:
        hint = (
            "End Hermes, or copy the file with its -wal beside it, and import the copy; a "
            "damaged one: sqlite3 FILE .recover"
        )
        return SourceError(f"cannot read the database: {error}", path=self.path, hint=hint)


def find_copies(
    rows: Sequence[Row], inherited: Sequence[Row] = (), *, branched: bool = False
) -> tuple[set[int], list[Row]]:
    """Ids of the rows of one session that repeat others, and the host's message list as it stands
    at the session's end.

    Where the host gives messages ids of their own, a second row with an id is a copy. Elsewhere the
    shape of a rewritten list tells: some first messages of the old list, a summary, the last
    messages of the old list. A real repeat at either place is told by its date: a rewritten list
    keeps the old dates or dates its rows in one burst.
    """
    copies: set[int] = set()
    seen = {row.uid for row in inherited if row.uid}
    current: list[Row] = list(inherited)
    position = 0
    if branched:
        while (
            position < min(len(rows), len(inherited))
            and rows[position].print == inherited[position].print
        ):
            position += 1
        copies.update(row.id for row in rows[:position])
        current = list(rows[:position])
    while position < len(rows):
        row = rows[position]
        position += 1
        if not row.summary:
            current.append(row)
            continue
        head = _head_length(current, row)
        old, current = current[: len(current) - head], [*current[len(current) - head :], row]
        copies.update(copy.id for copy in current[:head])
        if row.glued and {kept.print for kept in old}.issuperset(row.glued):
            copies.add(row.id)
        tail = _tail_length(old, row, rows[position:])
        copies.update(copy.id for copy in rows[position : position + tail])
        current.extend(rows[position : position + tail])
        position += tail
    for row in rows:
        if row.uid and row.uid in seen:
            copies.add(row.id)
        seen.add(row.uid)
    return copies, current


def _head_length(current: Sequence[Row], summary: Row) -> int:
    """How many rows before a summary are the first messages of the old list, stored again."""
    for length in range(len(current) // 2, 0, -1):
        start = len(current) - length
        if current[start].print == current[0].print:
            block = [*current[start:], summary]
            if all(
                copy.print == old.print and _rewritten(copy, old, later)
                for copy, old, later in zip(block, current[:length], block[1:], strict=False)
            ):
                return length
    return 0


def _tail_length(old: Sequence[Row], summary: Row, after: Sequence[Row]) -> int:
    """How many rows after a summary are the last messages of the old list, stored again."""
    burst = 0
    before = summary
    while (
        burst < len(after)
        and 0 <= after[burst].stored - before.stored < _BURST_S
        and burst < len(old)
    ):
        before = after[burst]
        burst += 1
    for length in range(min(len(old), len(after)), burst, -1):
        start = len(old) - length
        if after[0].print == old[start].print and all(
            copy.print == kept.print and (copy.stored == kept.stored or index < burst)
            for index, (copy, kept) in enumerate(zip(after, old[start:], strict=False))
        ):
            return length
    return burst


def _rewritten(copy: Row, old: Row, later: Row) -> bool:
    return copy.stored == old.stored or 0 <= later.stored - copy.stored < _BURST_S


def _copied_from(session: dict[str, Any], sessions: dict[str, dict[str, Any]]) -> str:
    """The session this one begins with messages of.

    Its parent, if it was branched from it or follows its compression.
    """
    if session.get("branched"):
        return str(session["branched"])
    parent = str(session.get("parent_session_id") or "")
    return parent if sessions.get(parent, {}).get("end_reason") == "compression" else ""


def _print(row: dict[str, Any]) -> Row:
    content = row["content"] if isinstance(row["content"], str) else ""
    real = split_summary(content, flagged=bool(row.get("_compressed_summary")))
    return Row(
        id=row["id"],
        print=_digest(row, content),
        stored=row["timestamp"] if isinstance(row.get("timestamp"), (int, float)) else 0.0,
        uid=str(row.get("message_uid") or ""),
        summary=real is not None,
        glued=tuple(_digest(row, piece.text) for piece in real or ()),
    )


def _digest(row: dict[str, Any], content: str) -> bytes:
    calls, call = row.get("tool_calls") or "", row.get("tool_call_id") or ""
    # When a host shortens an old tool result on copying it, its call's id still tells which one it
    # is.
    said = f"{row['role']}\0{call}\0{calls}\0{'' if call else content.strip()}"
    return blake2b(said.encode("utf-8", "replace"), digest_size=16).digest()


def _row_items(
    row: dict[str, Any], session: dict[str, Any], place: str, position: int
) -> Iterator[Item]:
    content = row["content"]
    try:
        if isinstance(content, str) and content.startswith(_LIST_HEAD):
            row["content"] = json.loads(content.removeprefix(_LIST_HEAD))
        elif isinstance(content, bytes):
            row["content"] = content.decode("utf-8", "replace")
        direct = session.get("chat_type") == "dm" and row["role"] == "user"
        author = session.get("display_name") if direct else ""
        for entry in entries_of(
            {**row, "author": author}, platform=str(session.get("source") or "")
        ):
            yield Item(place=place, position=position, entry=entry)
    except NotSaidError as reason:
        yield Item(place=place, position=position, left_out=str(reason))
    except RowError as error:
        yield Item(place=place, position=position, fault=str(error))
    except ValueError:
        yield Item(place=place, position=position, fault="its content is marked as JSON and is not")


def _object(text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) and text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
