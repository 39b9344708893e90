"""What is new in the list of a host that gives its messages ids.

What has an unknown id, and what a known message has gained.

Pure. Texts are compared only where an id does not decide it: a host may mask them anew with every
list. Called by ``reconcile``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base.canon import joined, without_end, without_start
from .alignment import align
from .assign_turns import expected
from .host_text import alike
from .open_turns import Unit, assign, seconds
from .plan import Bind, New, is_blank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .host_messages import Item
    from .pairing import Match
    from .plan import Reconciliation
    from .session_records import Record


_SAME_START: Final = 24
"""Characters at the beginning that a shortened message has in common with the whole one."""
_CLOCK_S: Final = 1
"""Dates in the log may be in whole seconds."""


def fresh_named(case: Reconciliation) -> list[New]:
    """The new part of a list, in order."""
    # Another list may show it among others, or not at all.
    case.running = case.running if case.turn.is_own_list else None
    seen: list[New] = []
    unknown: list[Item] = []
    for item in case.items:
        if item.held or item.kind == "gap" or item.again:
            continue
        records = [
            r
            for name in (item.uid, *item.absorbed)
            if name
            for r in case.known.by_uid.get(name, ())
        ]
        if records:
            case.plan.reached = max(case.plan.reached, *(record.id for record in records))
            bound = len(case.plan.binds)
            # Of one that is redacted, what is gone from the log would be taken for what the message
            # has gained.
            gained = (
                [] if any(record.redacted for record in records) else _gained(case, item, records)
            )
            told = not item.said or item.canon == joined(*(record.canon for record in records))
            item.held = told and not gained and len(case.plan.binds) == bound
            seen += gained
        else:
            unknown.append(item)
            seen.append(New.whole(item, named=True))
    nameless = _nameless(case) if unknown else []
    if not case.turn.elsewhere:
        nameless = [r for r in nameless if not r.said or r.uid or _may_be_shown(r, unknown)]
    matched: dict[int, Record] = {}
    if nameless:
        seen = _without_nameless(case, seen, unknown, nameless, matched)
    _place(case, seen, matched)
    return seen


def _place(case: Reconciliation, seen: list[New], matched: dict[int, Record]) -> None:
    """Say of what the agent did where it belongs.

    A broken turn's deeds to the session of that turn.

    A list of a copy may be the first to show them. ``matched``: what else is known, by item.
    """
    news = {id(new.item): new for new in seen}
    here = after = ""
    before: Item | None = None
    first = len(case.items)  # from the end: a list of thousands mostly has its news there
    left = len(news)
    while left and first:
        first -= 1
        left -= id(case.items[first]) in news
    for item in case.items[max(0, first - 1) :] if news else ():
        record = matched.get(id(item)) or next(iter(case.known.by_uid.get(item.uid, ())[-1:]), None)
        new = news.get(id(item))
        if record is not None and new is None:
            here, after = record.session, record.kind
        elif new is not None and new.unit is None:
            same = before is not None and bool(item.uid) and before.uid == item.uid
            if after == "talk" and not same:
                # After an answer, the next turn is one of the host's own, in this session.
                here = ""
            new.session, after = here, item.kind
        elif new is not None:
            here = ""
        before = item


def _nameless(case: Reconciliation) -> list[Record]:
    """The records that items with unknown ids may be: those without an id, or copied with new ones.

    Host B's gateway copies the rows of a branch without their ids (0.22.2,
    gateway/slash_commands_session.py, ``_branch_row``), so that all of the branch's first list is
    unknown. A list that begins with a known id is no such list.
    """
    session, shown = case.turn.session, case.known.shown(case.turn.session)
    names = (item.uid for item in case.items if item.uid and item.kind != "gap")
    if case.turn.elsewhere:
        gone = {record.id for name in names for record in case.known.by_uid.get(name, ())}
        return [record for record in shown if record.id not in gone]
    copied = next(names, "") not in case.known.by_uid
    return [r for r in shown if not r.uid or (copied and r.session != session)]


def _may_be_shown(record: Record, unknown: list[Item]) -> bool:
    """Whether one of the messages with unknown ids is old enough to be one that was logged without
    an id.
    """
    logged = seconds(record.date)
    return not logged or any(item.stamp <= logged + _CLOCK_S for item in unknown if item.said)


def _gained(case: Reconciliation, item: Item, records: list[Record]) -> list[New]:
    """What a message whose id is known has gained since: joined to it, or filled in later."""
    unknown = tuple(name for name in item.absorbed if name not in case.known.by_uid)
    if item.said:
        gained, unknown = _gained_words(case, item, records, unknown)
        if gained is not None:
            return [gained]
    elif item.kind == "talk":
        spoken = [record for record in records if record.kind == "talk"]
        if not spoken:
            return [New.whole(item, named=True)]
        if unknown and (rest := item.text.strip()[sum(record.size for record in spoken) :].strip()):
            return [New(item, text=rest, names=unknown)]
    elif item.kind == "tool" and item.call and all(record.call != item.call for record in records):
        return [New.whole(item, named=True)]
    case.plan.binds += [Bind(records[-1].id, uid=name) for name in unknown]
    return []


def _gained_words(
    case: Reconciliation, item: Item, records: list[Record], unknown: tuple[str, ...]
) -> tuple[New | None, tuple[str, ...]]:
    """What a message of the user's has gained, and the ids that are left to be bound."""
    known = joined(*(record.canon for record in records))
    rest = _rest_of(item.canon, known, masked=bool(unknown))
    rest, unknown = _without_early(case, rest, unknown)
    if not rest and not item.absorbed and _is_edited(item, records):
        unit = Unit(item.canon, masked=True)
        return New(item, names=(item.uid,), unit=unit, edited=True), unknown
    if rest and (unknown or assign([Unit(rest)], case.open, oldest_first=False)):
        return New(item, names=unknown or (item.uid,), unit=Unit(rest, masked=True)), unknown
    if not rest and unknown and is_blank(case.running) and case.is_last_said(item):
        return New(item, names=unknown, unit=Unit("", masked=True)), unknown
    return None, unknown


def _is_edited(item: Item, records: list[Record]) -> bool:
    """Whether a message has other words than were logged of it.

    Its user has put new ones in their place.

    Not where one text may be the other, masked, shortened or joined: hosts do all that by
    themselves.
    """
    words = [record.canon for record in records if record.said and not record.redacted]
    if not item.canon or not words:
        return False
    return not any(
        one == item.canon
        or one in item.canon
        or item.canon[:_SAME_START] in one
        or alike(one, item.canon)
        for one in words
    )


def _without_early(
    case: Reconciliation, rest: str, names: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Take off what a message has gained that was logged before the host had named it."""
    for record in case.known.shown(case.turn.session) if rest and names else ():
        after = (
            without_start(rest, record.canon)
            if record.said and not record.uid and record.canon
            else None
        )
        if after is None and record.said and not record.uid and alike(rest, record.canon):
            after = ""
        if after is not None:
            case.plan.binds.append(Bind(record.id, uid=names[0]))
            rest, names = after, names[1:]
            if not rest or not names:
                break
    return rest, names


def _without_nameless(
    case: Reconciliation,
    seen: list[New],
    unknown: list[Item],
    nameless: list[Record],
    matched: dict[int, Record],
) -> list[New]:
    """Take out the unknown ids that are those of messages logged before the host had named them.

    ``matched`` is told which items those are.
    """
    flow = _before_running(case, [item for item in unknown if not item.steer])
    own = next((at for at, record in enumerate(nameless) if record is case.own), None)
    match = align(
        flow, nameless, expected(case, flow), cut=True, own=own, is_own_list=case.turn.is_own_list
    )
    case.plan.consistent = match.consistent
    masked = _masked_pairs(flow, nameless, match)
    pairs = dict(match.pairs) | {at: here[-1] for at, (here, _) in masked.items()}
    if pairs:
        case.plan.reached = max(case.plan.reached, nameless[max(pairs.values())].id)
    matched |= {id(flow[at]): nameless[here] for at, here in pairs.items()}
    # A host that has just begun to name its messages: its whole list is unknown, and old none the
    # less.
    all_old = len(unknown) == sum(1 for item in case.items if item.kind != "gap")
    gone = {id(item) for at, item in enumerate(flow) if at in pairs or (all_old and at < match.old)}
    for at, here in pairs.items():
        together = [nameless[k] for k in masked[at][0]] if at in masked else []
        case.plan.binds += _names_of(flow[at], nameless[: here + 1], together)
    gone |= _known_steers(case, unknown)
    gained = {id(flow[at]): rest for at, (_, rest) in masked.items() if rest}
    if match.rest and match.old:
        gained[id(flow[match.old - 1])] = match.rest
    if is_blank(case.running):
        said = (flow[at] for at, here in pairs.items() if flow[at].canon == nameless[here].canon)
        # Of what was joined, only the id tells of white space.
        gained |= {id(item): "" for item in said if item.absorbed and case.is_last_said(item)}
    return [
        _what_is_left(new, gone, gained)
        for new in seen
        if id(new.item) not in gone or id(new.item) in gained
    ]


def _names_of(item: Item, records: Sequence[Record], together: Sequence[Record]) -> list[Bind]:
    """The ids by which an item is known from now on: it is the last record.

    A joined one has its messages' ids, the last message's last: ``together``, where they are known.

    Without them all a later list, which shows the messages apart, would bring them as new.
    """
    names = (item.uid, *item.absorbed) if item.uid else ()
    together = together or _joined_of(item.canon, records)
    if len(names) > 1 and len(names) == len(together):
        return [Bind(record.id, uid=name) for record, name in zip(together, names, strict=True)]
    return [Bind(records[-1].id, uid=name) for name in names[:1]]


def _joined_of(words: str, records: Sequence[Record]) -> list[Record]:
    """The last records that a text is joined of; none where it is not, to its beginning.

    What was taken back may stand between them.
    """
    found: list[Record] = []
    for record in reversed(records):
        before = without_end(words, record.canon) if record.said and record.canon else None
        if before is not None:
            found.insert(0, record)
            words = before
            if not words:
                return found
    return []


def _known_steers(case: Reconciliation, unknown: list[Item]) -> set[int]:
    """Which items are messages into a running turn that are logged, without an id or before
    a copy.
    """
    session = case.turn.session
    elsewhere = case.turn.elsewhere
    steers = (record for record in case.known.records if record.steer)
    may_be = [r for r in steers if not r.uid or elsewhere or r.session != session]
    found: set[int] = set()
    for item in unknown:
        record = next((r for r in may_be if r.key == item.key), None) if item.steer else None
        if record is not None:
            may_be.remove(record)
            found.add(id(item))
            if item.uid:
                case.plan.binds.append(Bind(record.id, uid=item.uid))
    return found


def _before_running(case: Reconciliation, flow: list[Item]) -> list[Item]:
    """The items without the running turn's message and what follows it.

    That one is not logged, so it is none of those that are.
    """
    if case.running is None:
        return flow
    at = next((k for k in range(len(flow) - 1, -1, -1) if flow[k].said), None)
    if (
        at is not None
        and case.is_last_said(flow[at])
        and _is_one(flow[at].canon, case.running.canon)
    ):
        return flow[:at]
    return flow


def _what_is_left(new: New, gone: set[int], gained: dict[int, str]) -> New:
    """Of an item that is logged what it has gained since; any other item whole."""
    here = id(new.item)
    return New.gain(new.item, gained[here], named=True) if here in gone and here in gained else new


def _is_one(text: str, other: str) -> bool:
    """Whether two texts may be one that is masked in two ways.

    A joined one is no single one, however it is masked.
    """
    return text.count("\n\n") == other.count("\n\n") and alike(text, other)


def _masked_pairs(
    flow: Sequence[Item], records: Sequence[Record], match: Match
) -> dict[int, tuple[range, str]]:
    """Messages of the user that only their place pairs, as their texts may be one text masked in
    two ways: the records that each is joined of, and what it has gained.
    """
    taken = dict(match.pairs)
    found: dict[int, tuple[range, str]] = {}
    for at, item in enumerate(flow):
        if at in taken or not item.said:
            continue
        below = max((here for k, here in taken.items() if k < at), default=-1)
        below = max((joined_of[-1] for joined_of, _ in found.values()), default=below)
        above = min((here for k, here in taken.items() if k > at), default=len(records))
        for here in range(below + 1, above):
            rest = _rest_of(item.canon, records[here].canon, masked=True)
            if records[here].said and alike(
                without_end(item.canon, rest) or item.canon, records[here].canon
            ):
                found[at] = _with_next(records[:above], here, rest)
                break
    return found


def _with_next(records: Sequence[Record], here: int, rest: str) -> tuple[range, str]:
    """The records that a message is joined of, from one on, and what is left of what it gained."""
    end = here + 1
    while rest and end < len(records) and records[end].said:
        more = without_start(rest, records[end].canon)
        if more is None:
            break
        rest, end = more, end + 1
    return range(here, end), rest


def _rest_of(whole: str, known: str, *, masked: bool) -> str:
    """What a message has gained beyond what is logged of it.

    By the number of paragraphs where its text may be masked differently.
    """
    rest = without_start(whole, known)
    if rest is None and masked:
        parts = whole.split("\n\n")
        rest = "\n\n".join(parts[len(known.split("\n\n")) if known else 0 :])
    return rest or ""
