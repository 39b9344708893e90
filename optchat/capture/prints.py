"""What is kept of each message to find those that are there twice: numbers, no texts. Pure.

Called by ``copies.py``, which decides what is a copy; here is what one message says of itself.
Some 40 bytes a message, in arrays.
"""

from __future__ import annotations

import re
from array import array
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ..base.canon import canon
from .host_messages import STEER

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..base.record import Message

_TELLING_ID: Final = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[0-9A-Za-z]{8,}")
"""The last part of a call's id that is given once: some endpoints number the calls from 0 on."""

_CHARS_MAX: Final = 255

ANNOUNCED: Final = 1
"""Its turn was announced to us when it began."""
NAMED: Final = 2
"""It has an id of the host's."""
CALLED: Final = 4
"""It has none, but a call's id that an endpoint gives once."""
OPENS: Final = 8
"""It opens a turn."""
SILENT: Final = 16
"""No list of the host need show it."""


class Prints:
    """The prints of a log's messages, by id. They may come in any order."""

    def __init__(self) -> None:
        self.keys = array("q")  # of kind and words; 0: lost
        self.names = array("q")  # of the ids a host gave it; 0: none
        self.dates = array("I")  # seconds; 0: not known
        self.sessions = array("i")
        self.flags = bytearray()
        self.chars = bytearray()
        self.following = array("i")  # the next one in its session, whatever lies between; -1: none
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        """How many messages there are, the lost ones among them."""
        return len(self.keys)

    def add(self, message: Message) -> None:
        """A message of the log."""
        at = message.id
        self._extend(at + 1)
        self.keys[at] = hash((message.kind, words_of(message))) or 1
        if message.uid or message.call:
            self.names[at] = hash((message.uid, message.call)) or 1
        self.dates[at] = _seconds(message.date)
        self.sessions[at] = self._numbers.setdefault(message.session, len(self._numbers))
        self.flags[at] = _flags_of(message)
        self.chars[at] = min(len(message.text), _CHARS_MAX)

    def link(self) -> None:
        """All are there: find which comes next in each session."""
        self.following = array("i", [-1]) * len(self.keys)
        last = array("i", [-1]) * len(self._numbers)
        for at, key in enumerate(self.keys):
            if key:
                before = last[self.sessions[at]]
                if before >= 0:
                    self.following[before] = at
                last[self.sessions[at]] = at

    def session_names(self) -> list[str]:
        """The names of sessions by their numbers."""
        return list(self._numbers)

    def near(self, one: int, other: int, seconds: int) -> bool:
        """Whether the dates of two messages lie at most so far apart."""
        date, other_date = self.dates[one], self.dates[other]
        return bool(date and other_date) and abs(date - other_date) <= seconds

    def same_id(self, one: int, other: int, which: int) -> bool:
        """Whether both have the same id, one that is given once."""
        both = self.flags[one] & self.flags[other] & which
        return bool(both) and self.names[one] == self.names[other]

    def other_id(self, one: int, other: int) -> bool:
        """Whether both have ids, and not the same."""
        return bool(self.names[one] and self.names[other]) and self.names[one] != self.names[other]

    def _extend(self, length: int) -> None:
        more = length - len(self.keys)
        if more > 0:
            for numbers in (self.keys, self.names, self.dates, self.sessions):
                numbers.extend([0] * more)
            self.flags.extend(bytes(more))
            self.chars.extend(bytes(more))


class Places:
    """Finds the message last put in with a value.

    Open addressing in an array: a tenth of what a dict of numbers takes.
    """

    def __init__(self, most: int, value_of: Callable[[int], int]) -> None:
        self._value_of = value_of
        self._mask = (1 << max(4, (2 * most).bit_length())) - 1
        self._slots = array("i", bytes(4 * (self._mask + 1)))  # the id and one; 0: free

    def find(self, value: int) -> int:
        """The message with this value; -1: none."""
        return self._slots[self._slot(value)] - 1

    def put(self, id_: int) -> None:
        """Keep a message, in place of an older one with its value."""
        self._slots[self._slot(self._value_of(id_))] = id_ + 1

    def _slot(self, value: int) -> int:
        at = value & self._mask
        while (id_ := self._slots[at]) and self._value_of(id_ - 1) != value:
            at = (at + 1) & self._mask
        return at


def words_of(message: Message) -> str:
    """What a message says in the form in which a host gives it back."""
    return canon(message.text) if message.kind == "user" else message.text.strip()


def _flags_of(message: Message) -> int:
    flags = ANNOUNCED if message.turn else 0
    if message.uid:
        flags |= NAMED
    elif message.call and _TELLING_ID.fullmatch(re.split(r"[^0-9A-Za-z]", message.call)[-1]):
        flags |= CALLED
    if message.kind == "user" and message.tool != STEER:
        flags |= OPENS
    if message.kind in ("note", "work") or message.unshown:
        flags |= SILENT
    return flags


def _seconds(date: str) -> int:
    try:
        seconds = int(datetime.fromisoformat(date).timestamp())
    except (ValueError, OverflowError, OSError):
        return 0
    return seconds if 0 < seconds < 1 << 32 else 0
