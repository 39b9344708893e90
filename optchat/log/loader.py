"""Takes day files into the index: at a rebuild all of them, otherwise what they have beyond it.

Steps over what cannot be read and notes it, and gives every message that existed its place, so that
ids never shift. Called by ``recovery.py`` under the write lock, inside a transaction of the index.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ..base.address import Place
from ..base.canon import key_of
from ..base.json_line import BadLineError
from ..base.record import (
    Message,
    Node,
    decode_message,
    decode_node,
    message_size,
    whole_message,
    whole_node,
)
from .day_files import DayLog, Spot
from .index import SAID, TURN
from .redacted import is_blank
from .rows import MessageRow, NodeRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from .index import Index

_ROWS_AT_ONCE: Final = 5_000
"""Rows held before they are written, so that a rebuild takes the same memory however long the log
is.
"""
ID_JUMP_MAX: Final = 1_000_000
"""A line whose id lies further ahead than this is damage, not a log with a million messages
missing.
"""

_CLAIM: Final = re.compile(rb'\{"i":(\d{1,14}),"kind"')
CLAIM_BYTES: Final = 32
"""Enough of a line to hold ``{"i":<id>,"kind"``."""
LOST_BYTES: Final = 64
"""What a lost message counts as: about the size of ``LOST_TEXT``, which always fits a line."""
LOST_TEXT: Final = "(message {} is lost: the log was damaged there)"
"""What stands for a message that existed and cannot be read any more; with it the tree goes on."""


class Loader:
    """Reads day files into the index, inside the caller's transaction."""

    def __init__(self, index: Index, *, ready: bool) -> None:
        self.index = index
        self.ready = ready
        self.claimed = 0
        self.top = index.tops()[0]

    def load(
        self, log: DayLog, name: str, offset: int, progress: Callable[[int], None] | None = None
    ) -> int:
        """Take in one day file from an offset on, and say up to where.

        A torn last line stays outside until somebody appends after it.
        """
        read = self._message_row if log.room == "main" else self._node_row
        add = self.index.add_messages if log.room == "main" else self.index.add_nodes
        rows: list[MessageRow] | list[NodeRow] = []
        known = offset
        spoilt: tuple[bytes, BadLineError] | None = None
        for begin, line, ended in log.scan(name, offset):
            # An empty line says that the one before was cut by a crash: no message had its number.
            if spoilt and line:
                self._claim(*spoilt)
            spoilt = None
            try:
                if line and not is_blank(line):
                    rows.append(read(line, Spot(name, begin, len(line))))  # type: ignore[arg-type]
            except BadLineError as error:
                if not ended:
                    break
                if log.room == "main":
                    spoilt = line, error
                self.index.note_damage(log.room, name, begin, str(error))
            known = begin + len(line) + ended
            if len(rows) >= _ROWS_AT_ONCE:
                add(rows, log.room, ready_too=self.ready)  # type: ignore[arg-type]
                rows.clear()
                if progress:
                    progress(known)
        if spoilt:
            self._claim(*spoilt)
        add(rows, log.room, ready_too=self.ready)  # type: ignore[arg-type]
        self.index.set_known(log.room, name, known)
        return known

    def fill_lost(self, first: int) -> None:
        """Give a place to every message from ``first`` on that existed and cannot be read, so that
        ids never shift.
        """
        messages, leaves = self.index.tops()
        total = max(messages, min(max(leaves, self.claimed), messages + ID_JUMP_MAX))
        for start in range(first, total, _ROWS_AT_ONCE):
            lost = self.index.lost_ids(start, min(total, start + _ROWS_AT_ONCE))
            self.index.add_messages(
                [MessageRow(id_, None, LOST_BYTES, "") for id_ in lost],
                "main",
                ready_too=self.ready,
            )

    def _message_row(self, line: bytes, spot: Spot) -> MessageRow:
        fields = whole_message(line)
        row = message_row(decode_message(line), spot) if fields is None else _row_of(fields, spot)
        if row.id > self.top + ID_JUMP_MAX:
            raise BadLineError(f"message {row.id}: its number is far beyond the log")
        if row.id >= self.top:
            self.top = row.id + 1
        return row

    def _claim(self, line: bytes, error: BadLineError) -> None:
        """Keep the id a damaged line still shows.

        Its message was acknowledged, and nodes may cover it.
        """
        claimed = id_of(line) if error.id is None else error.id
        if claimed is not None and claimed <= self.top:
            self.top = self.claimed = max(self.top, claimed + 1)

    def _node_row(self, line: bytes, spot: Spot) -> NodeRow:
        fields = whole_node(line)
        if fields is not None:
            place = Place(fields["l"], fields["i"])
            chars, by, spare = len(fields["text"]), fields["by"], fields.get("spare") is True
            return NodeRow(place, spot, fields["size"], chars, by, spare)
        row = node_row(decode_node(line), spot)
        if row.place.end > self.top and b'"crc":' not in line:
            # With its checksum it proves that its messages existed. Without, a mistyped number
            # would invent a million lost ones.
            raise BadLineError(f"line {row.place.address} covers messages that are not in the log")
        return row


def id_of(line: bytes) -> int | None:
    """The message id a line begins with, as we write it; for judging a line by its head alone."""
    shown = _CLAIM.match(line)
    return int(shown[1]) if shown else None


def message_row(message: Message, spot: Spot) -> MessageRow:
    """The row of the index that describes a message's line."""
    size = message_size(message.kind, message.text)
    return MessageRow(message.id, spot, size, message.session, names_of(message), message.kind)


def _row_of(fields: dict[str, Any], spot: Spot) -> MessageRow:
    """The same of the fields of its line."""
    id_, kind, session = fields["i"], fields["kind"], fields["session"]
    said = fields["text"] if kind == "user" and session else None
    names = _names(id_, fields.get("uid"), fields.get("turn"), said)
    return MessageRow(id_, spot, fields["size"], session, names, kind)


def names_of(message: Message) -> tuple[str, ...]:
    """The names a message can be looked up by: the host's id, its turn, and what the user said."""
    said = message.text if message.kind == "user" and message.session else None
    return _names(message.id, message.uid, message.turn, said)


def _names(id_: int, uid: str | None, turn: str | None, said: str | None) -> tuple[str, ...]:
    names = [uid] if uid else []
    if turn:
        names.append(TURN + turn)
    if said is not None:
        names.append(f"{said_name(said)}{id_}")
    return tuple(names)


def said_name(text: str) -> str:
    """The beginning of the names of all messages of the user with these words, as hosts
    keep them.
    """
    key = key_of("user", text, said=True)
    return f"{SAID}{blake2b(key.encode(), digest_size=8).hexdigest()}:"


def node_row(node: Node, spot: Spot) -> NodeRow:
    """The row of the index that describes a node's line."""
    return NodeRow(
        Place(node.level, node.index),
        spot,
        len(node.text.encode()),
        len(node.text),
        node.by,
        node.spare,
    )
