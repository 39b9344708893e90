"""Messages and nodes, and the JSON lines they are on disk.

One message is one line of ``main/``, one node one line of ``tree/``::

{"i":7,"kind":"user","text":"…","size":12,"date":"2026-05-01T09:00:00+02:00","session":"s1",
"crc":3735928559}
{"l":1,"i":3,"text":"…","size":40,"date":"…","by":"local","crc":…}

``size`` is bytes of UTF-8 (of ``kind: text`` for a message, of ``text`` for a node); it is written
for other readers and never trusted. ``crc`` is the CRC-32 of ``i|kind|text`` (``l|i|text``); a line
without one is accepted, because logs of other implementations of the design have none. Unknown keys
are ignored. Does no input or output: ``log/day_files.py`` does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn, TypeGuard
from zlib import crc32

import orjson

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


class BadLineError(ValueError):
    """A line of a day file that holds no usable record; the text says what is wrong with it.

    ``id`` is the message id the line claims, where one can still be read: such a message existed
    and is lost, so its id must not be given to another.
    """

    def __init__(self, reason: str, claimed_id: int | None = None) -> None:
        super().__init__(reason)
        self.id = claimed_id


_OPTIONAL: Final = tuple(
    f.name for f in fields(Entry) if f.name not in ("kind", "text", "date", "session")
)


def clean(text: str) -> str:
    """The text with lone surrogates as U+FFFD, and surrogate pairs as the character they mean.

    A lone surrogate cannot be written as UTF-8: without this one half of an emoji loses the whole
    turn.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def message_size(kind: str, text: str) -> int:
    """Bytes of ``kind.

    Text`` in UTF-8, as they are written: a kind may be of any script, and a surrogate is cleaned
    first.
    """
    return len(clean(kind).encode()) + 2 + len(clean(text).encode())


def encode_message(message: Message) -> bytes:
    """The message as one line, newline included. Every string comes out as valid UTF-8."""
    kind, text = clean(message.kind), clean(message.text)
    line: dict[str, Any] = {
        "i": message.id,
        "kind": kind,
        "text": text,
        "size": message_size(kind, text),
        "date": clean(message.date),
        "session": clean(message.session),
    }
    for name in _OPTIONAL:
        if value := getattr(message, name):
            line[name] = clean(value) if isinstance(value, str) else value
    line["crc"] = crc32(f"{message.id}|{kind}|{text}".encode())
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def encode_node(node: Node) -> bytes:
    """The node as one line, newline included."""
    text = clean(node.text)
    line = {
        "l": node.level,
        "i": node.index,
        "text": text,
        "size": len(text.encode()),
        "date": node.date,
        "by": node.by,
        "crc": crc32(f"{node.level}|{node.index}|{text}".encode()),
    }
    if node.spare:
        line["spare"] = True
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def decode_message(line: bytes) -> Message:
    """The message a line holds.

    Raises:
        BadLineError: it is not JSON, lacks what a message needs, or its checksum does not match.

    """
    raw = _load(line)
    number, kind, text = raw.get("i"), raw.get("kind"), raw.get("text")
    if not _is_count(number) or not isinstance(kind, str) or not isinstance(text, str):
        raise BadLineError(
            "is no message: it needs i, kind and text", number if _is_count(number) else None
        )
    crc = raw.get("crc")
    if crc is not None and crc != crc32(f"{number}|{kind}|{text}".encode()):
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
    raw = _load(line)
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
    crc = raw.get("crc")
    if crc is not None and crc != crc32(f"{level}|{index}|{text}".encode()):
        raise BadLineError(f"node {level},{index}: the checksum does not match")
    by, date = _text(raw.get("by")) or "model", _text(raw.get("date"))
    return Node(
        level=level, index=index, text=text, by=by, date=date, spare=raw.get("spare") is True
    )


MAX_LEVEL: Final = 48
"""2^48 messages.

Far past any life, small enough that an address always fits SQLite's 64-bit integers.
"""


_HALF_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def _load(line: bytes) -> dict[str, Any]:
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if not _HALF_ESCAPE.search(line):
            raise BadLineError("is not JSON") from error
        raw = _load_halves(line)
    if not isinstance(raw, dict):
        raise BadLineError("is not a JSON object")
    return raw


def _load_halves(line: bytes) -> Any:
    """A line with half a character as an escape.

    JavaScript and Python write such lines, orjson refuses them whole.
    """
    try:
        raw = json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadLineError("is not JSON") from error
    if isinstance(raw, dict):
        return {
            key: clean(value) if isinstance(value, str) else value for key, value in raw.items()
        }
    return raw


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << MAX_LEVEL


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
