"""One record as one line of JSON with a checksum: what all day files and ``usage.jsonl`` hold.

``{…,"crc":N}``, where N is the CRC-32 of the line's bytes without ``,"crc":N``. It covers every
byte, so that a flipped one is always found. Does no input or output.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn
from zlib import crc32

import orjson


class BadLineError(ValueError):
    """A line of a day file that holds no usable record; the text says what is wrong with it.

    ``id`` is the message id the line claims, where one can still be read: such a message existed
    and is lost, so its id must not be given to another.
    """

    def __init__(self, reason: str, claimed_id: int | None = None) -> None:
        super().__init__(reason)
        self.id = claimed_id


_CRC: Final = b',"crc":'
_RENAMED: Final = re.compile(rb',"[^"]*":([0-9]{1,10})\}\s*\Z')
"""The end of a line of ours in which the name of the checksum may be damaged."""
_HALF_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")

_ENDS: Final = re.compile(
    rb'(?:[0-9]{4,10}|,"crc":.{1,30}|"spare":true)\}\Z|,"(?:crc":[0-9]{1,10}|spare":true)[^0-9,]\Z',
    re.DOTALL,
)
"""How every line of ours ends, also with one of its last bytes damaged; before format 1, some
ended in ``"spare":true``.
"""
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")


def encode_line(fields: dict[str, Any]) -> bytes:
    """The fields as one line, newline included. Every string comes out as valid UTF-8."""
    try:
        body = orjson.dumps(fields)
    except TypeError:  # half a character, which cannot be written
        body = orjson.dumps(_cleaned(fields))
    return body[:-1] + b"%b%d}\n" % (_CRC, crc32(body))


def load_line(line: bytes) -> dict[str, Any]:
    """The fields a line holds, whatever its checksum says.

    Raises:
        BadLineError: it is no JSON object.

    """
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if not _HALF_ESCAPE.search(line):
            raise BadLineError("is not JSON") from error
        raw = _load_halves(line)
    if not isinstance(raw, dict):
        raise BadLineError("is not a JSON object")
    return raw


def is_as_written(line: bytes) -> bool:
    """Whether a line, newline excluded, ends with the checksum of its bytes."""
    head, _, tail = line.rpartition(_CRC)
    return tail == b"%d}" % crc32(b"}", crc32(head))


def load_whole(line: bytes) -> dict[str, Any] | None:
    """The fields of a line as ``encode_line`` has written it; None where its bytes are others.

    What it returns needs no second look, which spares a quarter of the time of a first open.
    """
    if not is_as_written(line):
        return None
    fields = orjson.loads(line)
    return fields if isinstance(fields, dict) else None


def is_whole(line: bytes, fields: dict[str, Any]) -> bool:
    """Whether the checksum in a line is that of its bytes; ``fields`` are those it holds.

    Also where another program has written the same fields with other white space.
    """
    if is_as_written(line.rstrip()):
        return True
    try:
        body = orjson.dumps({key: value for key, value in fields.items() if key != "crc"})
    except TypeError:
        return False
    return bool(fields.get("crc") == crc32(body)) and type(fields["crc"]) is int


def is_damaged(line: bytes, fields: dict[str, Any]) -> bool:
    """Whether a line's checksum is not that of its bytes, or stands under a damaged name.

    A line without one is another program's, or written by hand.
    """
    if "crc" in fields:
        return not is_whole(line, fields)
    found = _RENAMED.search(line)
    return found is not None and crc32(b"}", crc32(line[: found.start()])) == int(found[1])


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


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _cleaned(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(part) for part in value]
    return value


def _load_halves(line: bytes) -> Any:
    """A line with half a character as an escape.

    JavaScript and Python write such lines, orjson refuses them whole.
    """
    try:
        raw = json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadLineError("is not JSON") from error
    return _cleaned(raw) if isinstance(raw, dict) else raw


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
