"""Messages and nodes, and the JSON lines they are on disk.

One message is one line of ``main/``, one node one line of ``tree/``::

{"i":7,"kind":"user","text":"…","size":12,"date":"2026-05-01T09:00:00+02:00","session":"s1",
"crc":3735928559}
{"l":1,"i":3,"text":"…","size":40,"date":"…","by":"local","crc":…}

``size`` is bytes of UTF-8 (of ``kind: text`` for a message, of ``text`` for a node); it is written
for other readers and never trusted. ``crc`` covers the whole line (``json_line.py``). A line
without one is accepted, because logs of other implementations of the design have none, and one with
the checksum of before format 1, that of ``i|kind|text`` (``l|i|text``). Unknown keys are ignored.
Does no input or output: ``log/day_files.py`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, TypeGuard
from zlib import crc32

from .json_line import BadLineError, clean, encode_line, is_damaged, load_line, load_whole

KINDS: Final = ("user", "talk", "tool", "echo", "work", "note")
"""The user's words, the agent's replies, a tool call, its result, a subagent's report, an imported
or mirrored memory.
"""

BUILDERS: Final = ("free", "local", "model", "fallback", "copy")
"""How a node's text came to be: a source short enough to stand for itself, the local summarizer, a
model, the local summarizer in place of a model that failed, or a remark in place of copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something said, before it has a place in the log.

    ``date`` is ISO 8601 with offset, or empty for "now". ``uid`` is the host's own id of the
    message, ``turn`` the token of the draft it was first seen as, ``call`` the tool call's id,
    ``tool`` the tool's name. ``unshown``: the host never listed it.
    """

    kind: str
    text: str
    date: str = ""
    session: str = ""
    uid: str = ""
    turn: str = ""
    call: str = ""
    tool: str = ""
    author: str = ""
    platform: str = ""
    unshown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Entry):
    """An entry with its permanent id: 0, 1, 2, … in the order of the log."""

    id: int

    @property
    def source(self) -> str:
        """The text a leaf is made from; short enough, it is the leaf."""
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One line of the tree: the summary of messages [index·2^level, (index+1)·2^level).

    ``spare``: nothing in those messages is worth a model's words, so that merges of such lines are
    local by choice as well.
    """

    level: int
    index: int
    text: str
    by: str
    date: str = ""
    spare: bool = False


_OPTIONAL: Final = tuple(
    f.name for f in fields(Entry) if f.name not in ("kind", "text", "date", "session")
)


def message_size(kind: str, text: str) -> int:
    """Bytes of ``kind: text`` in UTF-8, as they are written: surrogates are cleaned first."""
    return size_of(kind) + 2 + size_of(text)


def size_of(text: str) -> int:
    """Bytes of a text in UTF-8, as they are written."""
    return len(text) if text.isascii() else len(clean(text).encode())


def message_fields(message: Message) -> dict[str, Any]:
    """What a message's line holds, but for the checksum."""
    fields: dict[str, Any] = {
        "i": message.id,
        "kind": message.kind,
        "text": message.text,
        "size": message_size(message.kind, message.text),
        "date": message.date,
        "session": message.session,
    }
    for name in _OPTIONAL:
        if value := getattr(message, name):
            fields[name] = value
    return fields


def encode_message(message: Message) -> bytes:
    """The message as one line, newline included. Every string comes out as valid UTF-8."""
    return encode_line(message_fields(message))


def encode_node(node: Node) -> bytes:
    """The node as one line, newline included."""
    fields = {
        "l": node.level,
        "i": node.index,
        "text": node.text,
        "size": size_of(node.text),
        "date": node.date,
        "by": node.by,
    }
    if node.spare:
        fields["spare"] = True
    return encode_line(fields)


def decode_message(line: bytes) -> Message:
    """The message a line holds.

    Raises:
        BadLineError: it is not JSON, lacks what a message needs, or its checksum does not match.

    """
    raw = load_line(line)
    number, kind, text = raw.get("i"), raw.get("kind"), raw.get("text")
    if not _is_count(number) or not isinstance(kind, str) or not isinstance(text, str):
        raise BadLineError(
            "is no message: it needs i, kind and text", number if _is_count(number) else None
        )
    if is_damaged(line, raw) and raw.get("crc") != crc32(f"{number}|{kind}|{text}".encode()):
        raise BadLineError(f"message {number}: the checksum does not match", number)
    extra = {
        name: _text(raw.get(name)) for name in ("date", "session", *_OPTIONAL) if name != "unshown"
    }
    return Message(id=number, kind=kind, text=text, unshown=bool(raw.get("unshown")), **extra)


def decode_node(line: bytes) -> Node:
    """The node a line holds.

    Raises:
        BadLineError: it is not JSON, lacks what a node needs, or its checksum does not match.

    """
    raw = load_line(line)
    level, index, text = raw.get("l"), raw.get("i"), raw.get("text")
    if (
        not _is_count(level)
        or not _is_count(index)
        or not isinstance(text, str)
        or level > MAX_LEVEL
    ):
        raise BadLineError("is no node: it needs l, i and text")
    if (index + 1) << level > 1 << MAX_LEVEL:
        raise BadLineError(f"node {level},{index}: it lies beyond any log")
    if is_damaged(line, raw) and raw.get("crc") != crc32(f"{level}|{index}|{text}".encode()):
        raise BadLineError(f"node {level},{index}: the checksum does not match")
    by, date = _text(raw.get("by")) or "model", _text(raw.get("date"))
    return Node(
        level=level, index=index, text=text, by=by, date=date, spare=raw.get("spare") is True
    )


MAX_LEVEL: Final = 48
"""2^48 messages.

Far past any life, small enough that an address always fits SQLite's 64-bit integers.
"""
_COUNT_END: Final = 1 << MAX_LEVEL


def whole_message(line: bytes) -> dict[str, Any] | None:
    """The fields of a message's line that is as we write it; None where it has to be decoded."""
    fields = load_whole(line)
    if fields is None:
        return None
    known = fields.get
    is_ours = (
        type(known("i")) is int
        and 0 <= fields["i"] < _COUNT_END
        and type(known("kind")) is type(known("text")) is type(known("session")) is str
        and type(known("size")) is int
    )
    return fields if is_ours else None


def whole_node(line: bytes) -> dict[str, Any] | None:
    """The same of a node's line."""
    fields = load_whole(line)
    if fields is None:
        return None
    known = fields.get
    is_ours = (
        type(known("l")) is type(known("i")) is type(known("size")) is int
        and 0 <= fields["l"] <= MAX_LEVEL
        and 0 <= fields["i"] < _COUNT_END >> fields["l"]
        and type(known("text")) is type(known("by")) is str
    )
    return fields if is_ours else None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _COUNT_END


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
