"""Addressing in the binary tree over the log: pure arithmetic, no texts and no state.

Node (level, index) covers messages [index·2^level, (index+1)·2^level). Its name is ``id+n``: its
first message and how many it covers. Level 0 is one message; a node above merges its two children.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .errors import AddressError
from .record import MAX_LEVEL


class Place(NamedTuple):
    """Where a node stands in the tree."""

    level: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs on an address

    @property
    def first(self) -> int:
        """The first message covered."""
        return self.index << self.level

    @property
    def end(self) -> int:
        """The message after the last one covered."""
        return (self.index + 1) << self.level

    @property
    def n(self) -> int:
        """How many messages are covered."""
        return 1 << self.level

    @property
    def parent(self) -> Place:
        """The node this one is merged into."""
        return Place(self.level + 1, self.index >> 1)

    @property
    def children(self) -> tuple[Place, Place]:
        """The two nodes this one merges, oldest first; a leaf has none."""
        if self.level == 0:
            raise ValueError("a leaf has no children")
        return Place(self.level - 1, self.index * 2), Place(self.level - 1, self.index * 2 + 1)

    @property
    def address(self) -> str:
        """The name shown to the model: ``id+n``."""
        return f"{self.index << self.level}+{1 << self.level}"


def cover(first: int, end: int) -> list[Place]:
    """The fewest nodes that tile messages [first, end), oldest first."""
    places: list[Place] = []
    while first < end:
        room = (end - first).bit_length() - 1
        level = min(room, _alignment(first))
        places.append(Place(level, first >> level))
        first += 1 << level
    return places


def place_at(first: int, count: int) -> Place | None:
    """The node named ``first+count``, or None where the tree has none of that name."""
    if count < 1 or count & (count - 1) or first < 0 or first % count or count > 1 << MAX_LEVEL:
        return None
    level = count.bit_length() - 1
    return Place(level, first >> level)


# The tool's own word.
def parse_address(id: int | str, n: int | str = 1, *, total: int) -> Place:  # noqa: A002
    """The node a caller means by ``id`` and ``n``: 40, "40", "40+8", "40 + 8" or (40, 8).

    Raises: AddressError: no line has this address; the hint names the one that holds the message
    asked for.
    """
    if total == 0:
        raise AddressError("nothing is logged yet: there is no line to open")
    first, count = _numbers(id, n, total)
    if not 0 <= first < total:
        raise AddressError(
            f"there is no message {first}: the log holds 0 to {total - 1}",
            hint=f"Use an id from 0 to {total - 1}, or an address id+n as it stands in the view",
        )
    place = place_at(first, count)
    if place is None or place.end > total:
        valid = _nearest(first, count, total)
        raise AddressError(
            f"no line has the address {first}+{count}",
            hint=(
                f"The line that holds message {first} is {valid.address}; {first}+1 is the "
                "message itself"
            ),
        )
    return place


_ADDRESS: Final = re.compile(r"\s*(\d{1,18})\s*(?:\+\s*(\d{1,18})\s*)?(?:\|.*)?", re.DOTALL)
_COUNT: Final = re.compile(r"\s*\+?\s*(\d{1,18})\s*")


def _numbers(id: int | str, n: int | str, total: int) -> tuple[int, int]:  # noqa: A002
    """First message and count out of what a model may send."""
    asked = _spelled(id)
    match = _ADDRESS.fullmatch(asked)
    if match is None:
        raise AddressError(
            f"{asked[:60]!r} is no address",
            hint=(
                f"Give the number of a message, 0 to {total - 1}, or an address id+n as it "
                "stands in the view"
            ),
        )
    first = int(match[1])
    if match[2]:
        return first, int(match[2])
    wanted = _spelled(n).strip() or "1"
    count = _COUNT.fullmatch(wanted)
    if count is None:
        raise AddressError(
            f"n = {wanted[:60]!r} is no number of messages",
            hint="Give n as it stands behind the + of a line of the view",
        )
    return first, int(count[1])


def _spelled(value: object) -> str:
    # Python refuses to write out an integer of thousands of digits, and its refusal would pass for
    # a bug of ours.
    return hex(value) if isinstance(value, int) and value.bit_length() > 1024 else str(value)


def _nearest(first: int, count: int, total: int) -> Place:
    """The smallest node of at least about ``count`` messages that holds message ``first`` and ends
    inside the log.
    """
    level = max(0, min(count, total).bit_length() - 1)
    while level and ((first >> level) + 1) << level > total:
        level -= 1
    return Place(level, first >> level)


def _alignment(first: int) -> int:
    """The largest level at which a node may start at ``first``."""
    return MAX_LEVEL if first == 0 else (first & -first).bit_length() - 1
