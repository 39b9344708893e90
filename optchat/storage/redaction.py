"""Takes one message's words out of the day files: the one edit of what was written. Decides no order of steps.

Finds every line that holds them (the message's own and doubled or torn ones, the lines of the tree above it, what was noted when its turn
began) and writes over them in place. Each step may be done again, so that a redaction cut by a crash is finished by the next. Called by
``memory/redaction.py``, which sees to the view and the full text.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from ..core.records import BadLineError, Message, decode_message
from ..core.redaction import NOTE, Traces, blank, is_blank, places_of, quoted, redacted_line
from . import files
from .database import Database, told, vacuum
from .index import SAID
from .loader import LOST_BYTES, message_row
from .log import Spot
from .rows import MessageRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from .index import Index
    from .log import DayLog
    from .notes import NoteLog
    from .store import Store

_TELLING: Final = 8
"""Bytes from which on the same words in another message are no chance."""


class Redactor:
    """The redaction of one message. ``others``: other messages that hold the same words; ``noted``: the log says it was redacted."""

    def __init__(self, store: Store, notes: NoteLog, id_: int) -> None:
        self.id = id_
        self.message: Message | None = None
        self.others: list[int] = []
        self.noted = False
        self._store = store
        self._notes = notes
        self._traces: Traces | None = None
        self._looked: dict[tuple[str, str], int] = {}
        self._main: list[tuple[Spot, bytes]] = []
        self._tree: list[tuple[Spot, bytes]] = []

    def look(self, *, locked: bool) -> None:
        """Look through what the day files have beyond the last look. Most of it can be done before the lock is held."""
        message = self._store.message(self.id)
        traces = Traces(self.id, None if message is None else message.text)
        if self._traces is None or self._traces.words != traces.words:
            self._traces, self._looked, self._main, self._tree, self.others, self.noted = traces, {}, [], [], [], False
        self.message = message
        self._scan(self._store.main, self._judge, self._main, locked=locked)
        self._scan(self._store.tree, self._traces.is_line_above, self._tree, locked=locked)

    def erase(self) -> int:
        """Write over all of it, the message's own line last, and tell the index; how many lines of the tree are gone. Under the lock."""
        assert self._traces is not None
        self._notes.erase(self._traces, self.message)
        self._write_over(self._store.tree, [(spot, line, blank(line)) for spot, line in self._tree])
        own = self._own_spot()
        edits = [(spot, line, redacted_line(line, self.id) if spot == own else blank(line)) for spot, line in self._main]
        self._write_over(self._store.main, edits)
        rows = [message_row(decode_message(new), spot) for spot, _, new in edits if spot == own and not is_blank(new)]
        gone = [("tree", spot.name, spot.offset) for spot, _ in self._tree] + [("main", spot.name, spot.offset) for spot, _ in self._main]
        self._store.tell_index(lambda index: _describe(index, self.id, rows or [MessageRow(self.id, None, LOST_BYTES, "")], gone))
        return len(self._tree)

    def becomes(self) -> Message | None:
        """The message as it will be; None where it is lost and stays so."""
        own = self._own_spot()
        new = next((redacted_line(line, self.id) for spot, line in self._main if spot == own), b"")
        return decode_message(new) if new and not is_blank(new) else None

    # -- inside

    def _scan(self, log: DayLog, is_one: Callable[[bytes], bool], found: list[tuple[Spot, bytes]], *, locked: bool) -> None:
        for name in log.sizes():
            for piece in log.scan(name, self._looked.get((log.room, name), 0)):
                if not piece.ended and not locked:
                    break  # perhaps just being written
                if piece.line and not is_blank(piece.line) and is_one(piece.line):
                    found.append((Spot(name, piece.offset, len(piece.line)), piece.line))
                self._looked[log.room, name] = piece.offset + len(piece.line) + piece.ended

    def _judge(self, line: bytes) -> bool:
        assert self._traces is not None
        if self._traces.is_message(line):
            return True
        note, words = quoted(NOTE.format(self.id)), self._traces.core
        if note in line or (len(words) >= _TELLING and words in line):
            try:
                other = decode_message(line)
            except BadLineError:
                return False
            self.noted |= other.kind == "note" and quoted(other.text) == note
            if len(words) >= _TELLING and words in quoted(other.text):
                self.others.append(other.id)
        return False

    def _own_spot(self) -> Spot | None:
        """The line that goes on standing for the message; for one that is lost, the first damaged line that can."""
        ((_, spot),) = self._store.read(lambda index: index.message_spots(self.id, self.id + 1))
        if spot is not None:
            return spot
        return next((at for at, line in self._main if not is_blank(redacted_line(line, self.id))), None)

    @staticmethod
    def _write_over(log: DayLog, edits: list[tuple[Spot, bytes, bytes]]) -> None:
        for name in sorted({spot.name for spot, _, _ in edits}):
            files.write_over(log.path(name), [(spot.offset, old, new) for spot, old, new in edits if spot.name == name and old != new])


def _describe(index: Index, id_: int, rows: list[MessageRow], gone: list[tuple[str, str, int]]) -> None:
    """In a transaction of the index: what stands above the message is not built any more, and every process is told."""
    places = places_of(id_)
    index.write("DELETE FROM nodes WHERE level = ? AND idx = ?", places)
    index.drop_ready(places)
    index.write("DELETE FROM uids WHERE uid >= ? AND uid < ? AND id = ?", [(SAID, SAID[:-1] + ";", id_)])
    index.write("UPDATE messages SET file = NULL, offset = 0, length = 0 WHERE id = ?", [(id_,)])  # so that the row is taken anew
    index.add_messages(rows, "main")
    index.write("DELETE FROM damage WHERE room = ? AND name = ? AND offset = ?", gone)
    index.note_rewritten()
    index.write("UPDATE meta SET value = ? WHERE key = 'generation'", [(secrets.randbits(62),)])


def clean_index(store: Store) -> bool:
    """Leave no byte of what was deleted in ``index.sqlite``; False where a reader has kept some in the file beside it.

    Notes of turns that began stand in it until the turn is logged, with all that was said.
    """
    path = store.root / "index.sqlite"
    with store.locked():
        database = Database(path)
        try:
            with told(path):
                return vacuum(database)
        finally:
            database.close()
