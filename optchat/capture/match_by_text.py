"""What is new in the list of a host that names its messages by nothing but place and words.

What follows the part the log holds.

Pure. The running turn's own message is found from the end, as the host appends it, and what stands
before it is compared with the log by ``alignment``. Called by ``reconcile``.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from ..base.canon import without_end
from .alignment import align, explained_by
from .assign_turns import expected
from .host_messages import STEER, Item
from .late_deeds import with_late
from .open_turns import Piece, Unit
from .pairing import Match
from .plan import Bind, Footing, New, is_blank, new_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .plan import Reconciliation
    from .session_records import Record

_AGAIN: Final = (64, 8)
"""Items, and messages of the user among them, that are compared again with the next list.

Hosts rewrite and join only the end of it, and a stretch of this length is not found again elsewhere
but where the same few words were said over and over.
"""


def fresh_unnamed(case: Reconciliation, gap: int) -> list[New]:
    """The new part of a list, in order.

    ``gap``: index of the last summary, or -1: what stands before it was there before it.
    """
    records: Sequence[Record] = case.known.shown(case.turn.session)
    start = gap + 1 if records else 0
    footing = _footing(case, start, records)
    at, here = (footing.at, footing.here) if footing is not None else (start, 0)
    case.plan.footing = footing
    if here:
        records = records[here:]
    places = [
        k
        for k in range(at, len(case.items))
        if case.items[k].kind != "gap" and not case.items[k].steer
    ]
    flow = [case.items[k] for k in places]
    anchor = (
        _anchor(case, flow)
        if case.running is not None and (case.turn.is_own_list or case.turn.likely)
        else None
    )
    if anchor is None:
        case.running = None  # the list is older than the turn, or shows it among others
        fresh, match, flow = _after_known(case, flow, records, cut=gap >= 0)
    else:
        fresh, match, flow = _with_own(case, flow, records, anchor, cut=gap >= 0)
    _step_on(case, flow, records, match, here)
    return _with_steers(case, fresh)


_Read = tuple[list[New], Match, list[Item]]
"""What is new, and the match it comes from, with the items that were matched."""


def _after_known(
    case: Reconciliation, flow: list[Item], records: Sequence[Record], *, cut: bool
) -> _Read:
    flow = [item for item in flow if not item.again]
    own = (
        None
        if case.own is None
        else next((at for at in range(len(records) - 1, -1, -1) if records[at] is case.own), None)
    )
    old, rest = _parted(case, flow)
    new, match = _matched(case, old, records, cut=cut, own=own)
    case.plan.consistent = match.consistent
    return [*new, *rest], match, flow


def _matched(
    case: Reconciliation,
    items: Sequence[Item],
    records: Sequence[Record],
    *,
    cut: bool,
    own: int | None = None,
) -> tuple[list[New], Match]:
    """What is new of items without the running turn's message, unless that is logged as ``own``."""
    both: Sequence[Record] = _with_unshown(case, items, records)
    match = _shown_after_all(case, items, records, both, cut=cut)
    if match is None:
        is_own_list = case.turn.is_own_list and case.running is None
        match = align(
            items, records, expected(case, items), cut=cut, own=own, is_own_list=is_own_list
        )
        both = records
    case.beyond = frozenset()
    _go_on_in(case, both, match)
    new = new_after(items, match)
    _place_missing(new, items, both, match)
    if both is not records:
        place = {record.id: at for at, record in enumerate(records)}
        match.pairs = [(at, place[both[k].id]) for at, k in match.pairs if both[k].shown]
    return new, match


def _shown_after_all(
    case: Reconciliation,
    items: Sequence[Item],
    records: Sequence[Record],
    both: Sequence[Record],
    *,
    cut: bool,
) -> Match | None:
    """The match of a list that shows just what is logged, turns among it that no list had shown.

    And what the agent did in one that broke off, in its place; then open turns may follow.
    ``both``: the records and those turns.
    """
    if explained_by(items, records, cut=cut):
        return None
    end, missing = len(items), frozenset[int]()
    pairs = explained_by(items, both, cut=cut)
    if not any(not both[here].shown for _, here in pairs):
        for end in _ends_before_open(case, items):
            pairs, missing = with_late(items[:end], both, cut=cut)
            if pairs:
                break
    if not pairs or _is_taken_back(case, items, both[pairs[-1][1]]):
        return None
    late = {both[here].id for _, here in pairs if not both[here].shown}
    case.plan.binds += [Bind(id_) for id_ in sorted(late)]
    case.drafts = [d for d in case.drafts if d.record is None or d.record.id not in late]
    return Match(old=end, pairs=pairs, missing=missing)


def _is_taken_back(case: Reconciliation, items: Sequence[Item], last: Record) -> bool:
    """Whether the user has taken back the last record of a list, and has said more since.

    That may explain the list as well, and is the likelier.
    """
    begun = any(draft.record is None and draft.said for draft in case.open)
    return begun and last.id < expected(case, items).retracted


def _ends_before_open(case: Reconciliation, items: Sequence[Item]) -> Iterator[int]:
    """The end of a list, and the places before it from where on each message may be an open
    turn's.
    """
    yield len(items)
    opens = expected(case, items).opens
    for at in range(len(items) - 1, 0, -1):
        if items[at].said:
            if not opens(items[at]):
                break
            yield at


def _with_unshown(
    case: Reconciliation, items: Sequence[Item], records: Sequence[Record]
) -> list[Record]:
    """The records, and the turns that no list had shown, from the place where a list is read."""
    footing = case.plan.footing
    late = case.known.unshown(case.turn.session)
    late = [r for r in late if footing is None or r.id > footing.record.id]
    return _without_cleared(items, sorted([*records, *late], key=lambda record: record.id))


def _without_cleared(items: Sequence[Item], records: Sequence[Record]) -> list[Record]:
    """The records without results of calls whose results a compression has taken out of a list."""
    calls = {item.call for item in items if item.kind == "tool"}
    cleared = calls - {item.call for item in items if item.kind == "echo"}
    return [r for r in records if r.kind != "echo" or r.call not in cleared]


def _with_own(
    case: Reconciliation,
    flow: list[Item],
    records: Sequence[Record],
    anchor: tuple[int, str],
    *,
    cut: bool,
) -> _Read:
    """What is new where the running turn's message was found.

    Its place, and what the host joined before it.
    """
    at, remainder = anchor
    before = [item for item in flow[:at] if not item.again]
    if remainder:
        before.append(_cut_short(flow[at], remainder))
    old, between = _parted(case, before)
    new, match = _matched(case, old, records, cut=cut)
    if before and before[-1].said:
        pass  # unanswered: hosts join and part such messages, so what stands before is not clear
    elif match.pairs and match.pairs[-1][0] == len(before) - 1 and not match.rest:
        case.before = records[match.pairs[-1][1]].id
    elif not before and flow[at] is case.items[0]:
        case.before = -1
    assert case.running is not None
    if (again := _taken_for_another(case, flow[at + 1 :], records, match)) is not None:
        return [*new, *between, *again], match, before
    own_canon = case.running.canon if remainder else flow[at].canon
    own_unit = Unit(own_canon, pieces=[Piece(case.running, own_canon)])
    own_new = New(flow[at], names=(flow[at].uid,), unit=own_unit)
    rest = [New.whole(item) for item in flow[at + 1 :] if not item.again]
    return [*new, *between, own_new, *rest], match, before


def _parted(case: Reconciliation, flow: list[Item]) -> tuple[list[Item], list[New]]:
    """The items that may be logged, and what follows from the first that is known not to be."""
    at = case.first_open(flow)
    case.beyond = frozenset(case.turn.placed.get(id(item), "") for item in flow[at:])
    return flow[:at], [New.whole(item) for item in flow[at:]]


def _taken_for_another(
    case: Reconciliation, after: Sequence[Item], records: Sequence[Record], match: Match
) -> list[New] | None:
    """What is new after the running turn's message where that is logged as the message of an older
    turn with the same words.
    """
    assert case.running is not None
    here = match.pairs[-1][1] + 1 if match.pairs else 0
    record = records[here] if here < len(records) else None
    if (
        record is None
        or record.canon != case.running.canon
        or not record.said
        or record.turn not in case.turn.unfinished_turns
    ):
        return None
    known = records[here + 1 :]
    if any(record.said for record in known) or [r.key for r in known] != [
        item.key for item in after[: len(known)]
    ]:
        return None
    case.plan.binds.append(Bind(record.id, turn=case.running.token))
    case.session = record.session
    return [New.whole(item) for item in after[len(known) :] if not item.again]


def _go_on_in(case: Reconciliation, records: Sequence[Record], match: Match) -> None:
    """What follows a known message without a word of the user's between belongs to that message's
    session, and not to a branch.

    Also keeps what the log has beyond the list.
    """
    if match.pairs:
        last = match.pairs[-1][1]
        # After an answer, what comes next is a turn of the host's own, in this session.
        answered = records[last].kind == "talk"
        case.session = case.turn.session if answered else records[last].session
        case.tail = [record for record in records[last + 1 :] if record.said]


def _place_missing(
    fresh: list[New], flow: Sequence[Item], records: Sequence[Record], match: Match
) -> None:
    """Say of what is missing among logged messages where it was said.

    Where what stands before it was.
    """
    missing = {id(new.item): new for new in fresh if new.missing and new.unit is None}
    here, session = dict(match.pairs), ""
    for at, item in enumerate(flow if missing else ()):
        if at in here:
            session = records[here[at]].session
        elif id(item) in missing:
            missing[id(item)].session = session


def _anchor(case: Reconciliation, flow: Sequence[Item]) -> tuple[int, str] | None:
    """Where the running turn's own message stands in a list without ids, and what the host joined
    before it.

    None where the list is older than the turn.
    """
    assert case.running is not None
    at = next((k for k in range(len(flow) - 1, -1, -1) if flow[k].said), None)
    if at is None:
        return None
    item, draft = flow[at], case.running
    joined = is_blank(draft) and item.text.endswith(f"\n\n{draft.text}")
    if draft.canon != item.canon and not (item.parts or joined) and _is_older(case, item):
        return None
    if draft.text is None:
        return (at, "") if item.parts or case.turn.is_own_list else None
    if not draft.canon:
        return (at, item.canon) if case.turn.is_own_list or not item.canon else None
    before = without_end(item.canon, draft.canon)
    if before is not None:
        return at, before
    framed = len(draft.canon) >= 8 and item.canon.endswith(draft.canon)
    return (at, "") if case.turn.is_own_list or framed else None


def _is_older(case: Reconciliation, item: Item) -> bool:
    """Whether the last message of a list is one the agent's lists have shown before.

    The turn's own may be one that says nothing, or none of the user's: the host has marked it as
    its own.
    """
    shown = reversed(case.known.shown(case.turn.session))
    last = next(
        (record for record in shown if record.said and record.id <= case.turn.seen_to), None
    )
    return last is not None and last.key == item.key


def _with_steers(case: Reconciliation, fresh: list[New]) -> list[New]:
    """Put in what the user sent into running turns: right after the result a host hung it on.

    A host takes the last result there is, and that may be an older turn's, which the log holds
    already: then it came after the running turn's own message and before all else of that turn.
    """
    if not any(item.tool == STEER for item in case.items):
        return fresh
    counted: Counter[str] = Counter()
    hung: dict[int, list[New]] = {}
    late: list[New] = []
    news, echo = {id(new.item) for new in fresh}, None
    for item in case.items:
        echo = item if item.kind == "echo" and not item.said else echo
        if not item.steer:
            continue
        counted[item.key] += 1
        if counted[item.key] <= case.known.steers[item.key]:
            continue
        if echo is not None and echo.call == item.call and id(echo) in news:
            hung.setdefault(id(echo), []).append(New(item))
        else:
            late.append(New(item))
    said = [new for new in fresh if new.unit is not None]
    ends_new = bool(said) and case.turn.reserve_token and said[-1].item is case.items[-1]
    if ends_new and (len(said) > 1 or case.begun is None):
        said.pop()  # a turn that is not announced yet can have been sent nothing
    last = said[-1] if said else None
    woven = late if last is None else []
    for new in fresh:
        woven += [new, *hung.get(id(new.item), ()), *(late if new is last else ())]
    return woven


def _cut_short(item: Item, canon: str) -> Item:
    """The part of a joined message that came before the running turn's own."""
    return Item(
        item.kind, canon, f"said|{canon}", canon=canon, uid=item.uid, said=True, stamp=item.stamp
    )


# -- not beginning anew with every list


def _footing(case: Reconciliation, start: int, records: Sequence[Record]) -> Footing | None:
    """Where the last list stood firm, if this one still does."""
    footing = case.turn.footing
    if (
        footing is None
        or footing.at < start
        or footing.at >= len(case.items)
        or footing.here >= len(records)
    ):
        return None
    if case.items[footing.at] is not footing.item or records[footing.here] is not footing.record:
        return None
    return footing if case.own is None or case.own.id > footing.record.id else None


def _step_on(
    case: Reconciliation, flow: Sequence[Item], records: Sequence[Record], match: Match, base: int
) -> None:
    """Find the next footing: far enough before the end of what is known."""
    if match.pairs:
        case.plan.reached = records[match.pairs[-1][1]].id
    if match.later:
        keys = {flow[at].key for at in match.later if at < len(flow)}
        later = (record.id for record in reversed(records) if record.key in keys)
        case.plan.reached = max(case.plan.reached, next(later, -1))
    items, said = _AGAIN
    reached = list(accumulate((here for _, here in match.pairs), max))
    for (at, here), most in zip(reversed(match.pairs), reversed(reached), strict=True):
        items -= 1
        said -= flow[at].said
        if here < most:
            continue  # what was logged late stands before it in the list
        if items > 0 or said > 0 or flow[at].said or flow[at].key != records[here].key:
            continue
        place = next(
            (k for k in range(len(case.items) - 1, -1, -1) if case.items[k] is flow[at]), None
        )
        if place is not None:
            case.plan.footing = Footing(place, flow[at], base + here, records[here])
        return
