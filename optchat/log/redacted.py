"""What a redacted message is on disk, and which lines of the day files hold words of it. Pure.

A redacted line keeps its length in bytes, so that nothing after it moves: the words are replaced by
``[redacted]`` and the rest of the line is filled with spaces, which JSON does not mind. A line that
has to go as a whole becomes nothing but spaces, and readers step over it. Called by
``log/redact.py``, which does the writing, and by all who read day files; capture asks
``is_redacted`` what a record may stand for.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from ..base.address import Place
from ..base.json_line import BadLineError, encode_line
from ..base.record import MAX_LEVEL, Message, decode_message, decode_node, message_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REDACTED: Final = "[redacted]"
NOTE: Final = "message {} was redacted: its words are gone from this memory"

_LEVEL: Final = re.compile(rb'"l"\s*:\s*(\d{1,2})\b')
_INDEX: Final = re.compile(rb'"i"\s*:\s*(\d{1,15})\b')
_TEXT: Final = re.compile(rb'"text"\s*:\s*"((?:[^"\\]|\\.)*+)')
_KIND: Final = re.compile(rb'"kind"\s*:\s*"(\w{1,20})"')
_DATE: Final = re.compile(rb'"date"\s*:\s*"([0-9T:.+Z -]{1,40})"')
_SESSION: Final = re.compile(rb'"session"\s*:\s*("(?:[^"\\]|\\.)*+")')


def is_redacted(text: str) -> bool:
    """Whether a message says that its words are gone."""
    return text == REDACTED


def is_blank(line: bytes) -> bool:
    """Whether a line held something once that is gone as a whole: spaces and nothing else."""
    return line.isspace()


def blank(line: bytes) -> bytes:
    """A line of the same length that says nothing."""
    return b" " * len(line)


def redacted_line(line: bytes, id_: int) -> bytes:
    """The line of message ``id_`` without its words, in the same number of bytes.

    All else it says of itself stays.

    A text shorter than ``[redacted]`` leaves no room for it unless something goes: first the size,
    which nobody trusts, then the checksum; at last the words are replaced by fewer. A damaged line
    becomes one that can be read, with what can still be told of it.
    """
    try:
        message = decode_message(line)
    except BadLineError:
        message = _salvaged(line, id_)
    for fields, bare in _ever_shorter(message):
        new = orjson.dumps(fields) if bare else encode_line(fields).rstrip()
        if len(new) <= len(line):
            return new.ljust(len(line))
    return blank(line)  # the torn beginning of a line


def _ever_shorter(message: Message) -> Iterator[tuple[dict[str, Any], bool]]:
    """Fields of the line, and whether it goes without a checksum."""
    fields = message_fields(replace(message, text=REDACTED))
    yield fields, False
    del fields["size"]
    yield fields, False
    yield fields, True
    for name in [name for name in ("date", "session") if not fields[name]]:
        del fields[name]
        yield fields, True
    for length in range(len(REDACTED) - 1, -1, -1):
        yield fields | {"text": REDACTED[:length]}, True
    yield {"i": message.id, "kind": message.kind, "text": ""}, True


def _salvaged(line: bytes, id_: int) -> Message:
    kind, date, session = _KIND.search(line), _DATE.findall(line), _SESSION.findall(line)
    try:
        name = str(orjson.loads(session[-1])) if session else ""
    except orjson.JSONDecodeError:
        name = ""
    return Message(
        id=id_,
        kind=kind[1].decode() if kind else "note",
        text="",
        date=date[-1].decode() if date else "",
        session=name,
    )


class Traces:
    """Tells which lines hold words of one message, by what they say of themselves or, where they
    are damaged, by what they hold.

    ``text``: the message's; None where it cannot be read any more. ``words`` is it as lines hold
    it, ``core`` that without outer space.
    """

    def __init__(self, id_: int, text: str | None) -> None:
        self.id = id_
        self.words = b"" if text is None else quoted(text)
        self.core = b"" if text is None else quoted(text.strip())
        self._named = re.compile(rb'"i"\s*:\s*%d\b' % id_)

    def is_message(self, line: bytes) -> bool:
        """Whether a line is, or was, one of this message.

        There may be several, and damaged ones.
        """
        if self._named.search(line):
            try:
                return decode_message(line).id == self.id
            except BadLineError as error:
                return error.id in (None, self.id)
        return self.is_remains(line)

    def is_line_above(self, line: bytes) -> bool:
        """Whether a line of the tree sums up this message, alone or among others.

        One that is damaged as well.
        """
        if line.startswith(b" "):
            return self.is_remains(line, decode_node)
        return is_line_of(line, lambda place: place.index == self.id >> place.level)

    def holds(self, text: object) -> bool:
        """Whether a text is the message's own, but for outer space."""
        return isinstance(text, str) and bool(text.strip()) and quoted(text.strip()) == self.core

    def is_remains(self, line: bytes, read: Callable[[bytes], object] = decode_message) -> bool:
        """Whether a line that cannot be read holds the beginning of this message's words, or all of
        them.

        An append that was cut by a crash is said again, and may then have come to another number
        than the torn line still claims. ``read`` is what raises ``BadLineError`` for such a line.
        """
        half = line.startswith(b" ")  # as nothing is written: a crash has cut its blanking
        if (
            not half and line.rstrip().endswith(b"}") and self.words[:8] not in line
        ):  # cheap, and true of nearly every line
            return False
        if not half and not any(
            part and self.words.startswith(part) for part in _TEXT.findall(line)
        ):
            return False
        try:
            read(line)
        except BadLineError:
            return True
        return False


def is_line_of(line: bytes, is_one: Callable[[Place], bool]) -> bool:
    """Whether a line of the tree is that of such a node, or, where it is damaged, names one."""
    level, index = _LEVEL.search(line), _INDEX.search(line)
    if level is None or index is None or int(level[1]) > MAX_LEVEL:
        return False
    if not is_one(Place(int(level[1]), int(index[1]))):
        return False
    try:
        node = decode_node(line)
    except BadLineError:
        return True
    return is_one(Place(node.level, node.index))


def quoted(text: str) -> bytes:
    """A text as it stands in a line we write, without the quotes around it."""
    return orjson.dumps(text)[1:-1]


def places_of(id_: int) -> list[Place]:
    """The message's leaf and all that can ever stand above it."""
    return [Place(level, id_ >> level) for level in range(MAX_LEVEL + 1)]
