"""Which items of a host's list are messages whose words were redacted in the log.

Pure. The host still shows such a message with every list, and by its words it would be new: it
would come into the log once more, with all that was taken out. So its place tells: it stands
between the messages it was logged between. Once found, its record goes by what the list shows, in
memory only. Called by ``reconcile``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.canon import without_end, without_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .host_messages import Item
    from .session_records import Record, SessionRecords


def recognize(
    items: Sequence[Item], known: SessionRecords, session: str, begun: Sequence[str]
) -> None:
    """Let the redacted records of a session's family be known by what the list shows in their
    place.

    ``begun``: what the open turns began with, in canonical form.
    """
    if not known.redacted:
        return
    for record in [record for record in known.redacted if record.steer]:
        _recognize_steer(items, known, record)
    records = sorted([*known.shown(session), *known.unshown(session)], key=lambda record: record.id)
    canons = {
        *begun,
        *(record.canon for record in records if record.said and not record.redacted),
    } - {""}
    said = [item for item in items if item.kind != "gap" and not item.steer and not item.again]
    flow = [part for item in said for part in _parts(item, sorted(canons, key=len, reverse=True))]
    cut = any(item.kind == "gap" for item in items)
    at = 0
    while at < len(records):
        end = at
        while end < len(records) and records[end].redacted:
            end += 1
        if end > at:
            before = records[at - 1] if at else None
            after = records[end] if end < len(records) else None
            for record, item in _paired(
                records[at:end], _between(flow, before, after, end - at, cut=cut)
            ):
                known.recognized(record, item)
        at = max(end, at + 1)


def _between(
    flow: Sequence[Item], before: Record | None, after: Record | None, count: int, *, cut: bool
) -> Sequence[Item]:
    """The items that stand where ``count`` redacted records do, between two that are known.

    The latest such place that fits best.
    """
    starts = [at + 1 for at, item in enumerate(flow) if before is not None and _is(item, before)]
    ends = [at for at, item in enumerate(flow) if after is not None and _is(item, after)]
    if before is None:
        starts = [] if cut else [0]
    if after is None:
        return flow[starts[-1] :] if starts else ()
    for start in reversed(starts):
        if start + count in ends:
            return flow[start : start + count]
    if (
        starts
        and ends
        and (wide := [(start, end) for end in ends for start in starts if start < end])
    ):
        start, end = min(wide, key=lambda place: (place[1] - place[0], -place[1]))
        return flow[start:end]
    return flow[max(0, ends[-1] - count) : ends[-1]] if ends and not starts else ()


def _parts(item: Item, canons: Sequence[str]) -> list[Item]:
    """The messages a host has joined into one, as far as they are known by their words, and what is
    left between them.
    """
    if not item.said or "\n\n" not in item.canon or item.canon in canons:
        return [item]
    first: list[str] = []
    last: list[str] = []
    rest, found = item.canon, True
    while found and rest:
        found = False
        for canon in canons:
            if (left := without_start(rest, canon)) is not None:
                first.append(canon)
            elif (left := without_end(rest, canon)) is not None:
                last.insert(0, canon)
            else:
                continue
            rest, found = left, True
            break
    parts = [*first, *([rest] if rest else ()), *last]
    return (
        [replace(item, text=part, key=f"said|{part}", canon=part) for part in parts]
        if len(parts) > 1
        else [item]
    )


def _is(item: Item, record: Record) -> bool:
    return item.key == record.key or bool(item.uid and item.uid == record.uid)


def _paired(records: Sequence[Record], items: Sequence[Item]) -> list[tuple[Record, Item]]:
    """Each record with the next item of its kind."""
    pairs, at = [], 0
    for record in records:
        here = next((k for k in range(at, len(items)) if _may_be(items[k], record)), None)
        if here is not None:
            pairs.append((record, items[here]))
            at = here + 1
    return pairs


def _may_be(item: Item, record: Record) -> bool:
    if item.uid and record.uid and item.uid != record.uid:
        return False
    return item.kind == record.kind and item.said == record.said and item.call == record.call


def _recognize_steer(items: Sequence[Item], known: SessionRecords, record: Record) -> None:
    for item in items:
        if item.steer and item.call == record.call and not known.steers[item.key]:
            known.recognized(record, item)
            return
