"""Stretches of the log as pairs [first, end): what is covered, and what is not. Pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same messages as the fewest spans, in order."""
    joined: list[Span] = []
    for first, end in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        elif first < end:
            joined.append((first, end))
    return tuple(joined)


def runs(ids: Iterable[int]) -> tuple[Span, ...]:
    """Messages one by one as spans."""
    return union((id_, id_ + 1) for id_ in ids)


def gaps(spans: Iterable[Span], first: int, end: int) -> Iterator[Span]:
    """What of [first, end) lies outside; ``spans`` as ``union`` gives them."""
    for start, stop in spans:
        if first < min(start, end):
            yield first, min(start, end)
        first = max(first, stop)
    if first < end:
        yield first, end


def holds(spans: Sequence[Span], first: int, end: int) -> bool:
    """Whether all of [first, end) lies in one of them; ``spans`` as ``union`` gives them."""
    at = bisect_right(spans, (first, end)) if spans else 0
    around = spans[max(0, at - 1) : at + 1]
    return any(start <= first and end <= stop for start, stop in around)


def touches(spans: Sequence[Span], first: int, end: int) -> bool:
    """Whether any of [first, end) lies in one of them; ``spans`` as ``union`` gives them."""
    at = bisect_right(spans, (end - 1, end))
    return any(start < end and first < stop for start, stop in spans[max(0, at - 1) : at + 1])
