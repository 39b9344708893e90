"""The fold: which nodes stand for the past, coarse to fine. Pure; knows sizes, never texts.

A view is a list of built lines, oldest first. What lies between them and after them up to the log's
end is not summarized yet. Lines merge in batches: past the high mark, the most due pairs of
siblings become their parent until the low mark is reached, so that between two batches the view
only grows at its end and a cached prefix stays valid.

Which pair is most due: the largest ``(total - last) / 2^level`` with ``last`` the pair's last
message, ties to the oldest. Measured from the pair's first message instead, lines that were already
coarse would be rewritten again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from ..base.address import Place, cover
from ..base.record import MAX_LEVEL
from .spans import holds, touches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .spans import Span


class Line(NamedTuple):
    """A node of the view with the size of its text, or None where it is not built.

    Characters, in the compactor's own view bytes.
    """

    place: Place
    chars: int | None


class Marks(NamedTuple):
    """When to merge and how far, in the unit of ``weigh``."""

    high: int
    low: int


def due(place: Place, total: int) -> int:
    """How urgently the two siblings under ``place`` want to become it.

    An integer that orders like the fraction.
    """
    return (total - place.end + 1) << (MAX_LEVEL + 1 - place.level)


def tile(lines: Iterable[Line], total: int, first: int = 0) -> Iterator[Line]:
    """The lines with every gap, up to the end of the log, filled by the fewest unbuilt nodes.

    A tiling of [first, total).
    """
    at = first
    for line in lines:
        for place in cover(at, line.place.first):
            yield Line(place, None)
        yield line
        at = line.place.end
    for place in cover(at, total):
        yield Line(place, None)


def outside(
    lines: Iterable[Line], covered: Sequence[Span], line_at: Callable[[Place], Line | None]
) -> Iterator[Line]:
    """The lines without what ``covered`` holds.

    One that is covered in part gives way to those of its parts that are not.
    """
    todo = list(lines)[::-1]
    while todo:
        line = todo.pop()
        place = line.place
        if not touches(covered, place.first, place.end):
            yield line
        elif not holds(covered, place.first, place.end):
            todo += [line_at(child) or Line(child, None) for child in reversed(place.children)]


def merge(
    lines: list[Line],
    total: int,
    target: int,
    *,
    weigh: Callable[[Line], int],
    parent: Callable[[Place], Line | None],
    weight: int,
) -> list[Line]:
    """Merge the most due pairs of siblings until the weight is at most ``target`` or no pair can
    merge.

    ``parent`` gives the line of a place if it may be used; ``weight`` is what the whole now weighs,
    gaps included.
    """
    chain = _Chain(lines)

    def candidate(slot: int) -> tuple[int, int, int, Line] | None:
        """The merge of the pair whose older half stands in ``slot``, most due first in a heap."""
        older, younger = chain.lines[slot], chain.next_line(slot)
        if (
            older is None
            or younger is None
            or older.place.index & 1
            or younger.place != (older.place.level, older.place.index + 1)
        ):
            return None
        joined = parent(older.place.parent)
        return (
            None
            if joined is None
            else (-due(joined.place, total), joined.place.first, slot, joined)
        )

    heap = [found for slot in range(len(lines)) if (found := candidate(slot))]
    heapify(heap)
    while heap and weight > target:
        # A line merges with its one sibling only, so no pair in the heap can be overtaken by
        # another.
        _, _, slot, joined = heappop(heap)
        older, younger = chain.join(slot, joined)
        weight += weigh(joined) - weigh(older) - weigh(younger)
        pair = slot if joined.place.index % 2 == 0 else chain.before[slot]
        if pair >= 0 and (found := candidate(pair)):
            heappush(heap, found)
    return [line for line in chain.lines if line is not None]


def merge_in_time(
    lines: list[Line],
    total: int,
    target: int,
    *,
    weigh: Callable[[Line], int],
    parent: Callable[[Place], Line | None],
    expected: int,
) -> list[Line]:
    """Of the merges that ``merge`` would make if every parent were built, of ``expected``
    characters each, those whose parent is.

    While a model is behind, the newest lines cannot merge yet. Made room for by what can, they
    would leave of all that is older a few lines for ever, for no merge is undone.
    """
    tiles = list(tile(lines, total))
    wanted = merge(
        tiles,
        total,
        target,
        weigh=weigh,
        parent=lambda place: parent(place) or Line(place, expected),
        weight=sum(map(weigh, tiles)),
    )
    merged: list[Line] = []
    at = 0
    for line in wanted:
        start = at
        while at < len(lines) and lines[at].place.end <= line.place.end:
            at += 1
        inside = lines[start:at]  # all that is merged here, as far as it can be
        merged += (
            merge(inside, total, -1, weigh=weigh, parent=parent, weight=sum(map(weigh, inside)))
            if len(inside) > 1
            else inside
        )
    return merged


def parents_within(lines: Iterable[Line]) -> list[Place]:
    """Every parent that ``merge`` can ask for, however far it merges.

    So that all may be looked up at once.
    """
    found: list[Place] = []
    open_: list[Place] = []  # what all lines so far merge to
    for line in lines:
        place = line.place
        while open_ and place.index & 1 and open_[-1] == (place.level, place.index - 1):
            open_.pop()
            place = place.parent
            found.append(place)
        open_.append(place)
    return found


class _Chain:
    """Lines as a doubly linked list over fixed slots, so that a merge costs the same anywhere in
    it.
    """

    def __init__(self, lines: list[Line]) -> None:
        self.lines: list[Line | None] = list(lines)
        self.before = list(range(-1, len(lines) - 1))
        self.after = list(range(1, len(lines) + 1))

    def next_line(self, slot: int) -> Line | None:
        return self.lines[self.after[slot]] if self.after[slot] < len(self.lines) else None

    def join(self, slot: int, joined: Line) -> tuple[Line, Line]:
        """Put ``joined`` in place of the pair that begins in ``slot``; the pair."""
        gone = self.after[slot]
        older, younger = self.lines[slot], self.lines[gone]
        assert older is not None
        assert younger is not None
        self.lines[slot], self.lines[gone] = joined, None
        self.after[slot] = self.after[gone]
        if self.after[gone] < len(self.lines):
            self.before[self.after[gone]] = slot
        return older, younger


def open_up(
    lines: list[Line],
    total: int,
    target: int,
    *,
    weigh: Callable[[Line], int],
    children: Callable[[Place], tuple[Line, Line] | None],
    weight: int,
) -> list[Line]:
    """Split the least due lines into their children while the weight stays at most ``target``.

    ``merge`` backwards.

    ``children`` gives both halves of a place if both are built. Costs O(lines of the result),
    whatever the log's size.
    """
    heap = [(due(line.place, total), -line.place.first, line) for line in lines if line.place.level]
    done = [line for line in lines if not line.place.level]
    heapify(heap)
    while heap:
        _, _, line = heappop(heap)
        halves = children(line.place)
        if halves is None:
            done.append(line)
            continue
        grown = weight + weigh(halves[0]) + weigh(halves[1]) - weigh(line)
        if grown > target:
            done.append(line)
            break
        weight = grown
        for half in halves:
            if half.place.level:
                heappush(heap, (due(half.place, total), -half.place.first, half))
            else:
                done.append(half)
    done.extend(line for _, _, line in heap)
    return sorted(done, key=lambda line: line.place.first)


@dataclass(slots=True)
class View:
    """The lines kept from call to call.

    ``weigh`` gives a line's share of the budget; gaps are weighed as they are shown.
    """

    lines: list[Line]
    total: int

    def weight(self, weigh: Callable[[Line], int]) -> int:
        """What the whole view weighs, gaps included."""
        return sum(map(weigh, tile(self.lines, self.total)))

    def gaps(self) -> list[tuple[int, int]]:
        """The stretches [first, end) not covered by a line, the one up to the log's end last."""
        found, at = [], 0
        for line in self.lines:
            if line.place.first > at:
                found.append((at, line.place.first))
            at = line.place.end
        if at < self.total:
            found.append((at, self.total))
        return found

    def insert(self, built: list[Line]) -> None:
        """Add lines that were built inside gaps.

        Both lists are in order, so the common case is an append.
        """
        if not built:
            return
        ordered = not self.lines or built[0].place.first >= self.lines[-1].place.end
        self.lines = [*self.lines, *built]
        if not ordered:
            self.lines.sort(key=lambda line: line.place.first)

    def fold(
        self,
        marks: Marks,
        *,
        weigh: Callable[[Line], int],
        parent: Callable[[Place], Line | None],
        expected: int | None = None,
    ) -> bool:
        """Run one batch if the view is past the high mark; whether any lines merged.

        ``expected``: see ``merge_in_time``.
        """
        weight = self.weight(weigh)
        if weight <= marks.high:
            return False
        if expected is None:
            merged = merge(
                self.lines, self.total, marks.low, weigh=weigh, parent=parent, weight=weight
            )
        else:
            merged = merge_in_time(
                self.lines, self.total, marks.low, weigh=weigh, parent=parent, expected=expected
            )
        changed = len(merged) != len(self.lines)
        self.lines = merged
        return changed
