"""What is wrong with a line that can be read.

Facts its checksum does not cover, as far as their form shows it. Pure.

The checksum covers number, kind and text. Size, date, session and the like stand beside it: of
these a damaged byte shows where it makes a number that does not fit, a date that is none, a value
of another type or a key nobody knows, and else not at all. Lines that have no checksum are another
writer's, and may be as they like. Called by ``memory/check.py``.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import orjson

from ..base.record import BUILDERS, message_size

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..base.record import Message, Node

_WORDS: Final = ("session", "uid", "turn", "call", "tool", "author", "platform")
_MESSAGE_KEYS: Final = frozenset(("i", "kind", "text", "size", "date", "unshown", "crc", *_WORDS))
_NODE_KEYS: Final = frozenset(("l", "i", "text", "size", "date", "by", "spare", "crc"))
_OURS: Final = ("size", "date", "session", "by", "crc")
"""Keys a line of ours has.

One that lacks such a key and has an unknown one instead had its name damaged.
"""

_DATE: Final = re.compile(
    (
        r"\d{4}-\d\d-\d\d(?:[T "
        r"]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?)?"
    ),
    re.ASCII,
)
_SHOWN_CHARS: Final = 40

_ENDS: Final = re.compile(
    rb'(?:[0-9]{4,10}|,"crc":.{1,30}|"spare":true)\}\Z|,"(?:crc":[0-9]{1,10}|spare":true)[^0-9,]\Z',
    re.DOTALL,
)
"""How every line of ours ends, also with one of its last bytes damaged."""
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")


class Oddities(NamedTuple):
    """``faults``: what must be damage.

    ``unknown``: keys of a later version or another writer. ``checked``: it has a checksum.
    """

    faults: list[str]
    unknown: list[str]
    checked: bool


_NONE: Final = Oddities([], [], checked=True)


def of_message(line: bytes, message: Message) -> Oddities:
    """What is odd about a line that holds this message."""
    crc = crc32(f"{message.id}|{message.kind}|{message.text}".encode())
    raw = _load(line)
    return (
        _NONE
        if raw is None
        else _judged(raw, _MESSAGE_KEYS, message_size(message.kind, message.text), crc)
    )


def of_node(line: bytes, node: Node) -> Oddities:
    """What is odd about a line that holds this node."""
    crc = crc32(f"{node.level}|{node.index}|{node.text}".encode())
    raw = _load(line)
    return _NONE if raw is None else _judged(raw, _NODE_KEYS, len(node.text.encode()), crc)


def is_date(text: str) -> bool:
    """Whether this is an ISO 8601 date, with or without a time and an offset."""
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_cut(line: bytes) -> bool:
    """Whether a line that cannot be read looks like the beginning of a good one, as a crash leaves
    it, and not like one that was whole.
    """
    if not line.startswith(b"{") or _CONTROL.search(line) or _ENDS.search(line):
        return False
    depth, quoted, escaped = 0, False, False
    for sign in line:
        if quoted:
            # A quote, a backslash.
            quoted, escaped = (escaped or sign != 0x22, not escaped and sign == 0x5C)
        elif sign == 0x22:
            quoted = True
        elif sign in b"{[":
            depth += 1
        elif sign in b"}]":
            depth -= 1
            if not depth:
                return False
    return True


# -- inside


def _load(line: bytes) -> dict[str, Any] | None:
    try:
        raw = orjson.loads(line)
    except (
        orjson.JSONDecodeError
    ):  # half a character as an escape: another writer's, who is free in all this
        return None
    return raw if isinstance(raw, dict) else None


def _judged(raw: dict[str, Any], keys: Collection[str], size: int, crc: int) -> Oddities:
    unknown = [key for key in raw if key not in keys]
    checked = "crc" in raw
    if not checked and not any(raw[key] == crc for key in unknown):
        return Oddities([], unknown, checked=False)
    faults = list(_misfits(raw, size))
    if missing := [name for name in _OURS if name not in raw and name in keys] if unknown else []:
        faults.append(f"it has {_shown(unknown[0])} in place of {missing[0]!r}")
        unknown = unknown[1:]
    return Oddities(faults, unknown, checked)


def _misfits(raw: dict[str, Any], size: int) -> list[str]:
    faults = []
    if "size" in raw and raw["size"] != size:
        faults.append(f"its size is {size} and not {_shown(raw['size'])}")
    date = raw.get("date", "")
    if not isinstance(date, str) or (date and not is_date(date)):
        faults.append(f"its date is none: {_shown(date)}")
    faults += [
        f"its {name} is no text: {_shown(raw[name])}"
        for name in _WORDS
        if not isinstance(raw.get(name, ""), str)
    ]
    faults += [
        f"its {name} is {_shown(raw[name])}"
        for name in ("unshown", "spare")
        if raw.get(name, True) is not True
    ]
    if "by" in raw and raw["by"] not in BUILDERS:
        faults.append(f"it was built by {_shown(raw['by'])}, which is nobody")
    return faults


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
