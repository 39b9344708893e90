"""A list that shows what the agent did in its place, where the log lacks it or has it far behind.

Pure. A turn that broke off before any hook showed what it did comes back from the host's database,
when younger turns are logged already. Called by ``match_by_text``.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING

from ..base.canon import without_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .host_messages import Item
    from .session_records import Record


def with_late(
    items: Sequence[Item], records: Sequence[Record], *, cut: bool
) -> tuple[list[tuple[int, int]], frozenset[int]]:
    """Item and record of a list that is all of the records, or their end where it was ``cut``, but
    for deeds of the agent's that are not logged or were logged late; and the former.

    Nothing where the list is no such one. Records that no list has shown may be left out.
    """
    found = _with_late(items, records, cut=cut, again=False)
    return found if found[0] or cut else _with_late(items, records, cut=False, again=True)


def _with_late(
    items: Sequence[Item], records: Sequence[Record], *, cut: bool, again: bool
) -> tuple[list[tuple[int, int]], frozenset[int]]:
    """The same, from the end back.

    ``again``: deeds may be new though a turn before has the very same words and deeds.
    """
    pairs: list[tuple[int, int]] = []
    missing: set[int] = set()
    late: deque[int] = deque()
    at, here, rest = len(items) - 1, len(records) - 1, ""
    while at >= 0 and here >= 0:
        item, record = items[at], records[here]
        before = _before(item, rest or item.canon, record)
        deeds = _deeds_behind(items, at, record) if before is None else range(0)
        if before is not None:
            pairs += [] if rest else [(at, here)]
            at, here, rest = at if before else at - 1, here - 1, before
        elif not record.said and ((item.said and pairs) or _is_later(item, records, here)):
            late.append(here)  # it answers what was said before
            here -= 1
        elif deeds and _is_next(items, deeds, records, late):
            pairs += [(k, late.popleft()) for k in deeds]
            at = deeds[-1] - 1
        elif deeds and (again or not _is_before(items[deeds[-1] - 1 : at + 1], records[:here])):
            missing |= {*deeds}
            at = deeds[-1] - 1
        elif record.said and not record.shown and pairs:
            here -= 1
        else:
            return [], frozenset()
    last = pairs[0][1] if pairs else -1
    left = [r for r in late if not cut or r > last]
    left += [] if cut else [r for r in range(here + 1) if records[r].shown]
    called = {record.key for record in records if record.kind == "tool"} if missing else set()
    if at >= 0 or left or any(items[k].key in called for k in missing):
        return [], frozenset()
    return pairs[::-1], frozenset(missing)


def _before(item: Item, words: str, record: Record) -> str | None:
    """What an item's words say before a record's, where a host has joined them; None where they do
    not end with those.
    """
    if item.said and record.said and record.canon:
        return without_end(words, record.canon)
    return "" if item.key == record.key else None


def _deeds_behind(items: Sequence[Item], at: int, record: Record) -> range:
    """What the agent did up to an item, from that one back to the one that is a record.

    Nothing but where the user's next message follows: else it may be another's, or new.
    """
    if at + 1 == len(items) or not items[at + 1].said:
        return range(0)
    first = at + 1
    while first > 0 and not items[first - 1].said and items[first - 1].key != record.key:
        first -= 1
    known = items[first - 1] if first else None
    found = known is not None and _before(known, known.canon, record) is not None
    return range(at, first - 1, -1) if found else range(0)


def _is_later(item: Item, records: Sequence[Record], here: int) -> bool:
    """Whether an item is logged with what came before a record, with nothing said between."""
    before = takewhile(lambda record: not record.said, reversed(records[:here]))
    return not item.said and any(record.key == item.key for record in before)


def _is_next(
    items: Sequence[Item], deeds: range, records: Sequence[Record], late: Sequence[int]
) -> bool:
    """Whether deeds, from the last back, are the next of those that were logged late."""
    keys = [records[here].key for here in list(late)[: len(deeds)]]
    return keys == [items[at].key for at in deeds]


def _is_before(items: Sequence[Item], records: Sequence[Record]) -> bool:
    """Whether the records end with these items."""
    return [record.key for record in records[-len(items) :]] == [item.key for item in items]
