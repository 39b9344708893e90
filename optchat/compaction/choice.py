"""What goes into a line.

Windows of segments, best first by worth per byte, under the limit and a fair share for both halves.

The greedy answer to a knapsack whose things are worth less once similar ones are in it (a
submodular gain, judged again when its turn comes). Knows nothing of shapes and tags; ``local.py``
writes the line from the choice.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from .clauses import STEPS
from .items import NAME_WEIGHT, Item, Segment, Window, Words

_WORTH: Final = {"user": 3.0, "note": 2.2, "work": 1.8, "talk": 1.4, "echo": 0.6, "tool": 0.6}
"""The user's own words first, tool steps last."""
_OTHER_WORTH: Final = 1.0
_LEAST_SHARE: Final = 0.36
"""Of a merged line, the part that either half can claim.

Neither is erased, and facts stay spread over time.
"""
_LONGER: Final = 0.5
"""What a longer window counts against the first one of another clause.

Many clauses named find more than few told whole.
"""
_WHOLE: Final = 0.35
"""What a clause is worth more for being whole, as a share of its words' worth."""
_CROWD: Final = 0.15
"""What each further clause of an item loses, in a line of several items."""
_EFFORT: Final = 8
"""Bytes that a window is charged over its size: many scraps take frames to hold and sense to read.
"""
_JOIN: Final = 4
"""Bytes of ``… `` between two windows."""
_FRAME: Final = 7
"""Bytes of a newline and a ``…`` at both ends of an item."""
_SPARED: Final = 20
"""One in so many bytes of what is counted is not needed.

Gaps that close, frames that two items share. Measured: 4 to 10 percent.
"""
_LEAST_ROOM: Final = 20
"""Bytes below which looking for something that fits is not worth the time."""
_LEAST_WORTH: Final = -1e-9
_LEAST_VALUE: Final = 0.2
"""A clause below it is filler: better a shorter line."""
_NEAR: Final = 8
"""Bytes of a segment not worth a gap."""


class Taken(NamedTuple):
    """What the line has of a segment."""

    level: int
    window: Window
    freshness: float


_Offer = tuple[float, int, int, Window | None, float]
"""One way to lengthen a line.

Minus the worth per byte as last judged, segment, level, the next longer window of that segment, and
its freshness. Sorts best first. Without a window the worth is a bound from above: most are never
looked at more closely. A plain tuple: many thousands are made for every hundred lines.
"""


class Choice:
    """The line so far.

    Which window of which segment is in it, and how many bytes it takes at most.
    """

    def __init__(
        self, items: list[Item], segments: list[Segment], words: Words, older: int, limit: int
    ) -> None:
        """The first ``older`` of the items are the older half."""
        self.items, self.segments, self.words, self.older = items, segments, words, older
        self.limit = limit + limit // _SPARED
        self.taken: dict[int, Taken] = {}
        self._order: list[tuple[int, Taken | None]] = []
        self._count = [0] * len(items)
        self._open: list[int] = []
        """Places of the items that have something in the line, in order."""
        self._seen: set[str] = set()
        self._shapes: set[str] = set()
        """Words of steps without their digits: ``user:650`` says nothing new after ``user:74``."""
        self._told: dict[int, str] = {}
        """The clauses taken, by how many status words they have."""
        self._used = 0
        self._room = self._shares(self.limit)
        small = min(max(limit // 18, 14), 40)
        self._caps = ((small * 2 // 3, 3 * small), (small, small * 9 // 2))
        self._crowd = _CROWD if len(items) > 1 else 0.0
        self._passed: list[_Offer] = [self._bound(number) for number in range(len(segments))]

    def _shares(self, limit: int) -> list[int]:
        """Bytes that each half may take: all that the other cannot claim."""
        need, starts = [0, 0], self.words.starts
        for place, item in enumerate(self.items):
            need[place >= self.older] += (
                starts[item.high] - starts[item.low] + len(item.kind) + _FRAME
            )
        floor = int(limit * _LEAST_SHARE)
        return [limit - min(need[1], floor), limit - min(need[0], floor)]

    def fill(self) -> None:
        """Takes what is offered, best first, as long as any of it fits."""
        heap, self._passed = self._passed, []
        heapify(heap)
        taken, segments = self.taken, self.segments
        while heap and self._used + _LEAST_ROOM <= self.limit:
            offer = heappop(heap)
            number, found = offer[1], offer[3]
            seg = segments[number]
            half = seg.item >= self.older
            if found is None:
                if offer[0] > _LEAST_WORTH:
                    break
                if self._room[half] >= _LEAST_ROOM and not self._is_told(seg):
                    heappush(heap, self._first(number))
                continue
            before = taken.get(number)
            size = found.size - before.window.size if before else found.size + _JOIN
            if not before and not self._count[seg.item]:
                size += self._opening(seg.item)
            if self._used + size > self.limit or size > self._room[half]:
                self._passed.append(offer)
                continue
            if not before and self._is_told(seg):
                continue
            self._order.append((number, before))
            made = taken[number] = Taken(offer[2], found, offer[4])
            self._used += size
            self._room[half] -= size
            self._count_in(seg, found, new=before is None)
            if made.level < 2:
                heappush(heap, self._longer(number, made))
        self._passed += heap

    def fill_again(self, size: int, limit: int) -> None:
        """The line came out at ``size`` bytes.

        What was passed over gets the rest, from whichever half it is.
        """
        self.limit, self._used, self._room = limit, size, [limit, limit]
        self.fill()

    def take_back(self) -> None:
        """Undoes the last and so least worthy addition: the line came out too long."""
        number, before = self._order.pop()
        if before:
            self.taken[number] = before
        else:
            del self.taken[number]

    def _bound(self, number: int) -> _Offer:
        """At most what the first window of a segment can be worth per byte."""
        seg, words = self.segments[number], self.words
        kind = self.items[seg.item].kind
        value = (words.sums[seg.high] - words.sums[seg.low]) * seg.factor
        size = min(seg.size, self._caps[kind == "user"][0]) + _JOIN + _EFFORT
        if value < _LEAST_VALUE:
            return 0.0, number, 0, None, 0.0
        return -value * _WORTH.get(kind, _OTHER_WORTH) / size, number, 0, None, 1.0

    def _first(self, number: int) -> _Offer:
        """The first window of a segment, judged by what the line has now."""
        seg = self.segments[number]
        level, found, value = self._next(seg, 0, None)
        freshness = self._freshness(seg, found)
        worth = _WORTH.get(self.items[seg.item].kind, _OTHER_WORTH) * seg.factor * freshness
        return -worth * value / (found.size + _JOIN + _EFFORT), number, level, found, freshness

    def _longer(self, number: int, before: Taken) -> _Offer:
        """The next longer window of a segment, and what it adds per byte it adds."""
        seg = self.segments[number]
        level, found, value = self._next(seg, before.level + 1, before.window)
        worth = (
            _WORTH.get(self.items[seg.item].kind, _OTHER_WORTH)
            * seg.factor
            * before.freshness
            * _LONGER
        )
        density = worth * (value - before.window.value) / max(found.size - before.window.size, 1)
        return -density, number, level, found, before.freshness

    def _next(self, seg: Segment, level: int, inner: Window | None) -> tuple[int, Window, float]:
        """The window of that level, or the next that differs from it; 2 is the whole segment.

        And its worth in weights.
        """
        words, caps = self.words, self._caps[self.items[seg.item].kind == "user"]
        while level < 2:
            if seg.size > caps[level] + _NEAR:
                found = words.window(seg, caps[level], inner)
                return level, found, found.value
            level += 1
        found = words.whole(seg)
        return 2, found, found.value * (1.0 + _WHOLE)

    def _freshness(self, seg: Segment, found: Window) -> float:
        """From 1 down: less for each further clause of an item and for names that the line has."""
        fresh = 1.0
        if self._seen:
            words = self.words
            keys, known, share = words.keys, self._seen, 0.6
            if self.items[seg.item].kind in STEPS:
                keys, known, share = words.shapes, self._shapes, 0.85
            low, high = found.low, found.high
            names = [
                key
                for key, weight in zip(keys[low:high], words.weights[low:high], strict=True)
                if weight >= NAME_WEIGHT
            ]
            if names:
                fresh -= share * len(known.intersection(names)) / len(names)
        return fresh / (1.0 + self._crowd * self._count[seg.item])

    def _is_told(self, seg: Segment) -> bool:
        """Whether the line has the whole clause already, with as many negations and conditions."""
        told = self._told.get(len(seg.status))
        return told is not None and " ".join(self.words.keys[seg.low : seg.high]) in told

    def _count_in(self, seg: Segment, found: Window, *, new: bool) -> None:
        """Remembers what the line now says."""
        keys, low, high = self.words.keys, found.low, found.high
        self._seen.update(keys[low:high])
        if self.items[seg.item].kind in STEPS:
            self._shapes.update(self.words.shapes[low:high])
        if new:
            if not self._count[seg.item]:
                insort(self._open, seg.item)
            self._count[seg.item] += 1
            status = len(seg.status)
            clause = " ".join(keys[seg.low : seg.high])
            told = self._told.get(status)
            self._told[status] = f"{told}\n{clause}" if told else clause

    def _opening(self, place: int) -> int:
        """Bytes that the item's first window takes besides itself.

        Less where it goes on with an item of the same kind.
        """
        at = bisect_left(self._open, place)
        older = self._open[at - 1] if at else -1
        size = self._frame(older, place)
        if at == len(self._open):
            return size
        newer = self._open[at]
        return size + self._frame(place, newer) - self._frame(older, newer)

    def _frame(self, older: int, place: int) -> int:
        kind = self.items[place].kind
        joined = older >= 0 and self.items[older].kind == kind
        return len(kind.encode()) + (0 if joined else 2 + _FRAME - _JOIN)
