"""Takes one message's words out of the day files: the one edit of what was written.

Decides no order of steps.

Finds every line that holds them (the message's own and doubled or torn ones, the lines of the tree
above it, what was noted when its turn began) and writes over them in place. Each step may be done
again, so that a redaction cut by a crash is finished by the next. Called by
``memory/redact.py``, which sees to the view and the full text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base.json_line import BadLineError
from ..base.record import Message, decode_message
from .index import SAID
from .loader import LOST_BYTES, message_row
from .redacted import NOTE, Traces, blank, is_blank, places_of, quoted, redacted_line
from .rows import MessageRow
from .sought import Sought
from .sqlite import Database, database_errors, vacuum

if TYPE_CHECKING:
    from .day_files import Spot
    from .index import Index
    from .session_notes import NoteLog
    from .store import Store

_TELLING: Final = 8
"""Bytes from which on the same words in another message are no chance."""


class Redactor:
    """The redaction of one message.

    ``others``: other messages that hold the same words; ``noted``: the log says it was redacted.
    """

    def __init__(self, store: Store, notes: NoteLog, id_: int) -> None:
        self.id = id_
        self.message: Message | None = None
        self.others: list[int] = []
        self.noted = False
        self._store = store
        self._notes = notes
        self._traces: Traces | None = None
        self._main = Sought(store.main, self._judge)
        self._tree = Sought(store.tree, lambda _: False)

    def scan(self, *, locked: bool) -> None:
        """Look through what the day files have beyond the last look.

        Most of it can be done before the lock is held.
        """
        message = self._store.message(self.id)
        traces = Traces(self.id, None if message is None else message.text)
        if self._traces is None or self._traces.words != traces.words:
            self._traces, self.others, self.noted = traces, [], False
            self._main = Sought(self._store.main, self._judge)
            self._tree = Sought(self._store.tree, traces.is_line_above)
        self.message = message
        self._main.scan(locked=locked)
        self._tree.scan(locked=locked)

    def erase(self) -> int:
        """Write over all of it, the message's own line last, and tell the index.

        How many lines of the tree are gone. Under the lock.
        """
        assert self._traces is not None
        self._notes.erase(self._traces, self.message)
        self._tree.write_over(lambda _, line: blank(line))
        own = self._own_spot()
        new = self._redacted(own)
        self._main.write_over(lambda spot, line: new if spot == own else blank(line))
        rows = [message_row(decode_message(new), own)] if own and not is_blank(new) else []
        gone = [("tree", spot.name, spot.offset) for spot in self._tree.spots]
        gone += [("main", spot.name, spot.offset) for spot in self._main.spots]
        self._store.update_index(
            lambda index: _describe(
                index, self.id, rows or [MessageRow(self.id, None, LOST_BYTES, "")], gone
            )
        )
        return len(self._tree.spots)

    def redacted_message(self) -> Message | None:
        """The message as it will be; None where it is lost and stays so."""
        new = self._redacted(self._own_spot())
        return decode_message(new) if new and not is_blank(new) else None

    # -- inside

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
        """The line that goes on standing for the message.

        For one that is lost, the first damaged line that can.
        """
        ((_, spot),) = self._store.read(lambda index: index.message_spots(self.id, self.id + 1))
        if spot is not None:
            return spot
        return next((at for at in self._main.spots if not is_blank(self._redacted(at))), None)

    def _redacted(self, spot: Spot | None) -> bytes:
        return b"" if spot is None else redacted_line(self._store.main.read(spot), self.id)


def _describe(
    index: Index, id_: int, rows: list[MessageRow], gone: list[tuple[str, str, int]]
) -> None:
    """In a transaction of the index.

    What stands above the message is not built any more, and every process is told.
    """
    index.unbuild(places_of(id_))
    index.write(
        "DELETE FROM uids WHERE uid >= ? AND uid < ? AND id = ?", [(SAID, SAID[:-1] + ";", id_)]
    )
    # So that the row is taken anew.
    index.write("UPDATE messages SET file = NULL, offset = 0, length = 0 WHERE id = ?", [(id_,)])
    index.add_messages(rows, "main")
    index.write("DELETE FROM damage WHERE room = ? AND name = ? AND offset = ?", gone)


def clean_index(store: Store) -> bool:
    """Leave no byte of what was deleted in ``index.sqlite``.

    False where a reader has kept some in the file beside it.

    Notes of turns that began stand in it until the turn is logged, with all that was said.
    """
    path = store.derived / "index.sqlite"
    with store.locked():
        database = Database(path)
        try:
            with database_errors(path):
                return vacuum(database)
        finally:
            database.close()
