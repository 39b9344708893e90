"""From a host's list to what the log still lacks: which messages are new, in which order, and which open turns they are.

Pure: list, log and open turns in, a plan out. A host shows its whole list again and again, rewritten on the way; every real message
of it must come into the log once, in order. With host ids a message is new if its id is; without them ``alignment`` tells by place
and words, and the turns known to be open tell which of several equal messages are meant. Called by ``capture``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from .alignment import Match, align
from .drafts import Draft, Piece, Unit, assign
from .hostlist import STEER
from .hosttext import alike, joined, masked_end, without_end, without_start
from .records import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hostlist import Item
    from .known import Known, Record

EARLY: Final = "early-"
"""Begins the token of a turn whose message a list showed before the host announced the turn."""


@dataclass(slots=True)
class Turn:
    """What the instance that was given a list knows of it.

    ``running``: the token of the turn it began last. ``sure``: the list is that turn's own; ``likely``: it ends with that turn, as far
    as its words agree. ``rewound``: the user has taken turns back since. ``spare``: a token for a message that was not announced yet.
    ``waiting``: the turns no list of their own has come for.
    """

    session: str
    running: str = ""
    sure: bool = False
    likely: bool = False
    rewound: bool = False
    spare: str = ""
    platform: str = ""
    author: str = ""
    waiting: frozenset[str] = frozenset()


@dataclass(slots=True)
class Addition:
    """An entry to log; ``stamp`` is the host's time in seconds, where the entry has no date of its own."""

    entry: Entry
    stamp: float = 0.0


@dataclass(slots=True)
class Bind:
    """A logged message got a host's id, was shown after all, or is what an open turn has become."""

    id: int
    uid: str = ""
    turn: str = ""


@dataclass(slots=True)
class Plan:
    """What to write. ``early``: the last entry is a message whose turn is not announced yet. ``gap``: the summary now in the list.

    ``firm``: nothing in the list speaks against its being the running turn's.
    """

    firm: bool = True
    additions: list[Addition] = field(default_factory=list)
    binds: list[Bind] = field(default_factory=list)
    early: Item | None = None
    gap: str = ""


@dataclass(slots=True)
class _New:
    """An item that is not in the log, or what it has gained: in the user's role, ``unit``; of the agent, ``text``."""

    item: Item
    text: str = ""
    names: tuple[str, ...] = ()
    unit: Unit | None = None


def reconcile(items: Sequence[Item], known: Known, drafts: Sequence[Draft], turn: Turn) -> Plan:
    """The plan for one list. ``drafts``: the open turns of the session and its branches, in the order in which they began."""
    return _Reconciler(items, known, drafts, turn).plan()


class _Reconciler:
    def __init__(self, items: Sequence[Item], known: Known, drafts: Sequence[Draft], turn: Turn) -> None:
        self.items = items
        self.known = known
        self.turn = turn
        self.result = Plan()
        last = known.last_said(turn.session)
        self.drafts = [Draft.of(record, late=record.id < last) for record in known.unshown(turn.session)] + list(drafts)
        own = known.by_turn.get(turn.running) if turn.running else None
        self.own = own if own is not None and own.shown else None
        self.running = next((draft for draft in self.drafts if draft.token == turn.running), None) if self.own is None else None
        self.named = any(item.uid for item in items)
        self.session = turn.session

    def plan(self) -> Plan:
        gaps = [at for at, item in enumerate(self.items) if item.kind == "gap"]
        self.result.gap = self.items[gaps[-1]].key if gaps else ""
        self._link_early()
        fresh = self._fresh_named() if self.named else self._fresh_unnamed(gaps[-1] + 1 if gaps else 0, cut=bool(gaps))
        self._settle(fresh)
        self._emit(fresh)
        return self.result

    # -- what is new

    def _fresh_named(self) -> list[_New]:
        """New is what has an unknown id, and what a known message has gained. Texts are not compared: they may be masked anew."""
        self.running = self.running if self.turn.sure else None  # another list may show it among others, or not at all
        seen: list[_New] = []
        unknown: list[Item] = []
        for item in self.items:
            if item.kind == "gap" or item.again:
                continue
            records = [r for name in (item.uid, *item.absorbed) if name for r in self.known.by_uid.get(name, ())]
            if records:
                seen += self._gained(item, records)
            else:
                unknown.append(item)
                seen.append(_whole(item, named=True))
        nameless = [record for record in self.known.shown(self.turn.session) if not record.uid]
        if not nameless or not unknown:
            return seen
        return self._bound(seen, unknown, nameless)

    def _gained(self, item: Item, records: list[Record]) -> list[_New]:
        """What a message whose id is known has gained since: joined to it, or filled in later."""
        unknown = tuple(name for name in item.absorbed if name not in self.known.by_uid)
        if item.said:
            rest = _rest_of(item.canon, joined(*(record.canon for record in records)), masked=bool(unknown))
            rest, unknown = self._gained_nameless(rest, unknown)
            if rest and (unknown or assign([Unit(rest)], self._open(), oldest_first=False)):
                return [_New(item, names=unknown or (item.uid,), unit=Unit(rest, masked=True))]
            if not rest and unknown and self._is_blank(self.running) and self._is_last_said(item):
                return [_New(item, names=unknown, unit=Unit("", masked=True))]
        elif item.kind == "talk":
            spoken = [record for record in records if record.kind == "talk"]
            if not spoken:
                return [_whole(item, named=True)]
            if unknown and (rest := item.text.strip()[sum(record.size for record in spoken) :].strip()):
                return [_New(item, text=rest, names=unknown)]
        elif item.kind == "tool" and item.call and all(record.key != item.key for record in records):
            return [_whole(item, named=True)]
        self.result.binds += [Bind(records[-1].id, uid=name) for name in unknown]
        return []

    def _gained_nameless(self, rest: str, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Take off what a message has gained that was logged before the host had named it."""
        for record in self.known.shown(self.turn.session) if rest and names else ():
            after = without_start(rest, record.canon) if record.said and not record.uid and record.canon else None
            if after is None and record.said and not record.uid and alike(rest, record.canon):
                after = ""
            if after is not None:
                self.result.binds.append(Bind(record.id, uid=names[0]))
                rest, names = after, names[1:]
                if not rest or not names:
                    break
        return rest, names

    def _bound(self, seen: list[_New], unknown: list[Item], nameless: list[Record]) -> list[_New]:
        """Unknown ids that are those of messages logged before the host had named them."""
        flow = [item for item in unknown if not item.steer]
        own = next((at for at, record in enumerate(nameless) if record is self.own), None)
        match = align(flow, nameless, lambda match: self._explained(flow, match), cut=True, own=own, sure=self.turn.sure)
        self.result.firm = match.firm
        masked = _masked_pairs(flow, nameless, match)
        pairs = dict(match.pairs) | {at: here for at, (here, _) in masked.items()}
        # A host that has just begun to name its messages: its whole list is unknown, and old none the less.
        all_old = len(unknown) == sum(1 for item in self.items if item.kind != "gap")
        gone = {id(item) for at, item in enumerate(flow) if at in pairs or (all_old and at < match.old)}
        self.result.binds += [Bind(nameless[here].id, uid=flow[at].uid) for at, here in pairs.items() if flow[at].uid]
        steers = {record.key for record in self.known.records if record.steer and not record.uid}
        gone |= {id(item) for item in unknown if item.steer and item.key in steers}
        gained = {id(flow[at]): rest for at, (_, rest) in masked.items() if rest}
        if match.rest and match.old:
            gained[id(flow[match.old - 1])] = match.rest
        left: list[_New] = []
        for new in seen:
            if id(new.item) in gained and id(new.item) in gone:
                left.append(_part(new.item, gained[id(new.item)], named=True))
            elif id(new.item) not in gone:
                left.append(new)
        return left

    def _fresh_unnamed(self, start: int, *, cut: bool) -> list[_New]:
        """New is what follows the part of the list that the log holds. What stands before a summary was there before it."""
        records = self.known.shown(self.turn.session)
        flow = [item for item in self.items[start if records else 0 :] if item.kind != "gap" and not item.steer]
        anchor = self._anchor(flow) if self.running is not None and (self.turn.sure or self.turn.likely) else None
        if anchor is None:
            self.running = None  # the list is older than the turn, or shows it among others
            flow = [item for item in flow if not item.again]
            own = None if self.own is None else next((at for at in range(len(records) - 1, -1, -1) if records[at] is self.own), None)
            match = align(flow, records, lambda m: self._explained(flow, m), cut=cut, own=own, sure=self.turn.sure)
            self.result.firm = match.firm
            self._go_on_in(records, match)
            return self._with_steers(_after(flow, match))
        at, remainder = anchor
        before = [item for item in flow[:at] if not item.again]
        if remainder:
            before.append(_cut_short(flow[at], remainder))
        match = align(before, records, lambda m: self._explained(before, m), cut=cut)
        self._go_on_in(records, match)
        assert self.running is not None
        if (again := self._taken_for_another(flow[at + 1 :], records, match)) is not None:
            return self._with_steers([*_after(before, match), *again])
        own_canon = self.running.canon if remainder else flow[at].canon
        own_unit = Unit(own_canon, pieces=[Piece(self.running, own_canon)])
        own_new = _New(flow[at], names=(flow[at].uid,), unit=own_unit)
        after = [_whole(item) for item in flow[at + 1 + _logged_of(flow[at + 1 :], records, match) :] if not item.again]
        return self._with_steers([*_after(before, match), own_new, *after])

    def _taken_for_another(self, after: Sequence[Item], records: Sequence[Record], match: Match) -> list[_New] | None:
        """What is new after the running turn's message where that is logged as the message of an older turn with the same words."""
        assert self.running is not None
        here = match.pairs[-1][1] + 1 if match.pairs else 0
        record = records[here] if here < len(records) else None
        if record is None or record.canon != self.running.canon or not record.said or record.turn not in self.turn.waiting:
            return None
        known = records[here + 1 :]
        if any(record.said for record in known) or [r.key for r in known] != [item.key for item in after[: len(known)]]:
            return None
        self.result.binds.append(Bind(record.id, turn=self.running.token))
        self.session = record.session
        return [_whole(item) for item in after[len(known) :] if not item.again]

    def _go_on_in(self, records: Sequence[Record], match: Match) -> None:
        """What follows a known message without a word of the user's between belongs to that message's session, and not to a branch."""
        if match.pairs:
            self.session = records[match.pairs[-1][1]].session

    def _anchor(self, flow: Sequence[Item]) -> tuple[int, str] | None:
        """Where the running turn's own message stands in a list without ids, and what the host joined before it.

        None where the list is older than the turn.
        """
        assert self.running is not None
        at = next((k for k in range(len(flow) - 1, -1, -1) if flow[k].said), None)
        if at is None:
            return None
        item, draft = flow[at], self.running
        if draft.text is None:
            return (at, "") if item.parts or self.turn.sure else None
        if not draft.canon:
            return (at, item.canon) if self.turn.sure or not item.canon else None
        before = without_end(item.canon, draft.canon)
        if before is not None:
            return at, before
        framed = len(draft.canon) >= 8 and item.canon.endswith(draft.canon)
        return (at, "") if self.turn.sure or framed else None

    def _with_steers(self, fresh: list[_New]) -> list[_New]:
        """Put in what the user sent into running turns: right after the result a host hung it on.

        A host takes the last result there is, and that may be an older turn's, which the log holds already: then it came after the
        running turn's own message and before all else of that turn.
        """
        if not any(item.tool == STEER for item in self.items):
            return fresh
        counted: Counter[str] = Counter()
        hung: dict[int, list[_New]] = {}
        late: list[_New] = []
        news, echo = {id(new.item) for new in fresh}, None
        for item in self.items:
            echo = item if item.kind == "echo" and not item.said else echo
            if not item.steer:
                continue
            counted[item.key] += 1
            if counted[item.key] <= self.known.steers(item.key):
                continue
            if echo is not None and echo.call == item.call and id(echo) in news:
                hung.setdefault(id(echo), []).append(_New(item))
            else:
                late.append(_New(item))
        said = [new for new in fresh if new.unit is not None]
        if self.turn.spare and len(said) > 1 and said[-1].item is self.items[-1]:
            said.pop()  # a turn that is not announced yet can have been sent nothing
        last = said[-1] if said else None
        woven = late if last is None else []
        for new in fresh:
            woven += [new, *hung.get(id(new.item), ()), *(late if new is last else ())]
        return woven

    # -- which turns they are

    def _open(self) -> list[Draft]:
        """The turns that may be among the new messages of this list, but for the running one."""
        if self.running is None:
            return self.drafts if self.own is None else []
        at = next((k for k, draft in enumerate(self.drafts) if draft is self.running), len(self.drafts))
        return self.drafts[:at]

    def _explained(self, flow: Sequence[Item], match: Match) -> bool:
        fresh = _after(flow, match)
        self._mark_ahead(fresh)
        units = [new.unit for new in fresh if new.unit is not None]
        if self.named and self.running is not None and units:
            # Its own message is last; without host ids it has been cut off already.
            before = units[-1].canon if self._is_blank(self.running) else masked_end(units[-1].canon, self.running.canon)
            units[-1:] = [Unit(before)] if before else []
        ahead = bool(units) and fresh[-1].unit is units[-1] and bool(self.turn.spare)
        return self._assign(units) or (ahead and assign(units[:-1], self._open(), oldest_first=True))

    def _assign(self, units: Sequence[Unit]) -> bool:
        """Give new messages their turns; of several that look alike the newest, unless some were taken back or one is not begun yet."""
        if self._newest_last(units):
            return True
        if not self.turn.rewound and assign(units, self._open(), oldest_first=False):
            return True
        return assign(units, self._open(), oldest_first=self.turn.rewound or self.running is None)

    def _newest_last(self, units: Sequence[Unit]) -> bool:
        """Whether the turn begun last is the last message, and the others explain the rest."""
        at = next((k for k, draft in enumerate(self.drafts) if draft.token == self.turn.running), None)
        if at is None or not units or self.turn.sure or self.running is not None:
            return False
        last, draft = units[-1], self.drafts[at]
        fits = last.parts if draft.text is None else last.canon == draft.canon
        if not fits or not assign(units[:-1], self.drafts[:at], oldest_first=self.turn.rewound):
            return False
        last.pieces = [Piece(draft, last.canon)]
        return True

    def _settle(self, fresh: list[_New]) -> None:
        """Give every new message in the user's role its turns."""
        self._mark_ahead(fresh)
        units = [new.unit for new in fresh if new.unit is not None and new.unit.pieces is None]
        last = next((new for new in reversed(fresh) if new.unit is not None), None)
        own: list[Piece] = []
        if self.named and self.running is not None and last is not None and self._is_last_said(last.item) and last.unit is not None:
            before = last.unit.canon if self._is_blank(self.running) else masked_end(last.unit.canon, self.running.canon)
            own = [Piece(self.running, last.unit.canon[len(before) :].strip() if before else last.unit.canon)]
            if before:
                last.unit.canon = before
            else:
                last.unit.pieces = []
                units.remove(last.unit)
        self._assign(units)
        own = own or self._blank_joined(last)
        if own and last is not None and last.unit is not None:
            last.unit.pieces = [*(last.unit.pieces or []), *own]

    def _mark_ahead(self, fresh: list[_New]) -> None:
        last = fresh[-1] if fresh else None
        if self.turn.spare and last is not None and last.unit is not None and last.item is self.items[-1]:
            last.unit.ahead = self._is_live(last.item)

    def _is_live(self, item: Item) -> bool:
        """Whether the host has not saved a message yet: only such a one can be shown before its turn is announced."""
        return not item.uid if self.named else not item.stamp

    def _blank_joined(self, last: _New | None) -> list[Piece]:
        """The running turn where its message is blank and was joined to another one: only the white space at the end shows it."""
        draft = next((draft for draft in self.drafts if draft.token == self.turn.running), None)
        if draft is None or draft.text is None or draft.canon or self.turn.sure or last is None or last.unit is None:
            return []
        used = any(piece.draft is draft for piece in last.unit.pieces or ())
        return [] if used or not last.item.text.endswith("\n\n" + draft.text) else [Piece(draft, "")]

    @staticmethod
    def _is_blank(draft: Draft | None) -> bool:
        """Whether a turn was opened by white space: joined to another message it leaves no trace."""
        return draft is not None and draft.text is not None and not draft.canon

    def _is_last_said(self, item: Item) -> bool:
        return item is next((other for other in reversed(self.items) if other.said and not other.steer), None)

    def _link_early(self) -> None:
        """The running turn's message may be logged already: a host that compresses first shows it before it announces the turn."""
        if self.running is None or self.running.text is None:
            return
        records = self.known.shown(self.turn.session)
        last = records[-1] if records else None
        if last is None or not last.said or last.canon != self.running.canon or (last.turn and not last.turn.startswith(EARLY)):
            return
        flow = [item for item in self.items if not item.steer and not item.again]
        at = next((k for k in range(len(flow) - 1, -1, -1) if flow[k].said), None)
        joined_before = without_end(flow[at].canon, last.canon) if at is not None else None
        if at is None or (joined_before is None and not alike(flow[at].canon, last.canon)):
            return
        before = [*flow[:at], _cut_short(flow[at], joined_before)] if joined_before else flow[:at]
        if not self._is_known(before, records[:-1]):
            return
        self.result.binds.append(Bind(last.id, turn=self.running.token))
        self.own, self.running = last, None

    def _is_known(self, flow: Sequence[Item], records: Sequence[Record]) -> bool:
        """Whether a part of the list shows nothing new."""
        if self.named:
            return all(not item.said or not item.uid or item.uid in self.known.by_uid for item in flow)
        gap = max((at for at, item in enumerate(flow) if item.kind == "gap"), default=-1)
        flow = flow[gap + 1 :]
        match = align(flow, records, lambda _: False, cut=gap >= 0)
        return match.old == len(flow) and not match.rest

    # -- writing it down

    def _emit(self, fresh: list[_New]) -> None:
        used = {id(piece.draft) for new in fresh if new.unit for piece in new.unit.pieces or () if piece.draft is not None}
        waiting = [draft for draft in self.drafts if id(draft) not in used and draft.record is None and not draft.foreign]
        order = {id(draft): at for at, draft in enumerate(self.drafts)}
        early = fresh[-1] if fresh and self._is_early(fresh[-1]) else None
        session = self.session
        for new in fresh:
            if new.unit is None:
                self._add(new, session)
                continue
            pieces = new.unit.pieces or []
            for piece, name in zip(pieces, _shared_out(new.names, len(pieces)), strict=True):
                # What was begun before and no list has shown comes first: the user said it earlier.
                reached = order[id(piece.draft)] if piece.draft is not None else len(order) if new is early else 0
                while waiting and order[id(waiting[0])] < reached:
                    lost = waiting.pop(0)
                    if lost.text is not None:  # of a picture announced without words there is nothing to write
                        self.result.additions.append(unshown(lost, self.turn.platform))
                session = piece.draft.session if piece.draft is not None else self.turn.session
                self._say(new.item, piece, name, session, alone=len(pieces) == 1)
        if early is not None:
            last = self.result.additions[-1]
            last.entry = replace(last.entry, turn=self.turn.spare)
            self.result.early = early.item

    def _is_early(self, last: _New) -> bool:
        """Whether the list ends with a message that no turn explains: its turn is about to be announced."""
        if self.running is not None or not self.turn.spare or last.item is not self.items[-1] or not self._is_live(last.item):
            return False
        pieces = last.unit.pieces if last.unit is not None else None
        return pieces is not None and pieces[-1:] != [] and pieces[-1].draft is None

    def _add(self, new: _New, session: str) -> None:
        item = new.item
        entry = Entry(
            kind=item.kind,
            text=new.text or item.text,
            session=session,
            uid=new.names[0] if new.names else item.uid,
            call=item.call,
            tool=item.tool,
            author=item.author or (self.turn.author if item.steer else ""),
            platform=self.turn.platform,
        )
        self.result.additions.append(Addition(entry, item.stamp))

    def _say(self, item: Item, piece: Piece, name: str, session: str, *, alone: bool) -> None:
        draft = piece.draft
        if draft is not None and draft.record is not None:
            self.result.binds.append(Bind(draft.record.id, uid=name))
            return
        text = item.text if alone and item.canon == piece.canon else piece.canon
        if draft is not None and draft.text is not None and not item.parts and _same_words(draft, piece, masked=bool(item.uid)):
            text = draft.text  # as told: the list may have it joined, stripped, framed or masked more
        entry = Entry(
            kind=draft.kind if draft is not None else item.kind,
            text=text,
            date=draft.date if draft is not None else "",
            session=session,
            uid=name,
            turn=draft.token if draft is not None else "",
            author=(draft.author if draft is not None else "") or self.turn.author,
            platform=self.turn.platform,
        )
        self.result.additions.append(Addition(entry, item.stamp))


def unshown(draft: Draft, platform: str) -> Addition:
    """The entry of a turn that no list has shown: the user said it, and the host may have lost it."""
    entry = Entry(
        kind=draft.kind,
        text=draft.text or "",
        date=draft.date,
        session=draft.session,
        turn=draft.token,
        author=draft.author,
        platform=platform,
        unshown=draft.said,
    )
    return Addition(entry)


def _same_words(draft: Draft, piece: Piece, *, masked: bool) -> bool:
    return draft.canon in piece.canon or (masked and alike(draft.canon, piece.canon))


def _whole(item: Item, *, named: bool = False) -> _New:
    unit = Unit(item.canon, parts=item.parts, masked=named) if item.said and not item.steer else None
    return _New(item, names=(item.uid, *item.absorbed) if item.uid else (), unit=unit)


def _part(item: Item, rest: str, *, named: bool = False) -> _New:
    names = item.absorbed or (item.uid,)
    if item.said:
        return _New(item, names=names, unit=Unit(rest, masked=named))
    return _New(item, text=rest, names=names)


def _shared_out(names: tuple[str, ...], pieces: int) -> tuple[str, ...]:
    """One host id for each piece of a joined message, where they are as many; else all for the first, which keeps it."""
    return names if len(names) == pieces else ((names or ("",))[0],) * min(1, pieces) + ("",) * (pieces - 1)


def _masked_pairs(flow: Sequence[Item], records: Sequence[Record], match: Match) -> dict[int, tuple[int, str]]:
    """Messages of the user that only their place pairs, as their texts may be one text masked in two ways; with what they have gained."""
    taken = dict(match.pairs)
    found: dict[int, tuple[int, str]] = {}
    for at, item in enumerate(flow):
        if at in taken or not item.said:
            continue
        below = max((here for k, here in taken.items() if k < at), default=-1)
        below = max((here for here, _ in found.values()), default=below)
        above = min((here for k, here in taken.items() if k > at), default=len(records))
        for here in range(below + 1, above):
            rest = _rest_of(item.canon, records[here].canon, masked=True)
            if records[here].said and alike(without_end(item.canon, rest) or item.canon, records[here].canon):
                found[at] = (here, rest)
                break
    return found


def _cut_short(item: Item, canon: str) -> Item:
    """The part of a joined message that came before the running turn's own."""
    return type(item)(item.kind, canon, f"said|{canon}", canon=canon, uid=item.uid, said=True, stamp=item.stamp)


def _logged_of(after: Sequence[Item], records: Sequence[Record], match: Match) -> int:
    """How much of what follows a turn's message is logged although the message is not: it was shown, and taken for another's."""
    here = match.pairs[-1][1] + 1 if match.pairs else 0
    reached = 0
    for at, item in enumerate(after):
        if not item.said and here < len(records) and item.key == records[here].key:
            here, reached = here + 1, at + 1
        elif item.call and (found := next((k for k in range(here, len(records)) if records[k].key == item.key), None)) is not None:
            here, reached = found + 1, at + 1
    return reached


def _after(flow: Sequence[Item], match: Match) -> list[_New]:
    head = [_part(flow[match.old - 1], match.rest)] if match.rest and match.old else []
    return head + [_whole(item) for item in flow[match.old :]]


def _rest_of(whole: str, known: str, *, masked: bool) -> str:
    """What a message has gained beyond what is logged of it; by the number of paragraphs where its text may be masked differently."""
    rest = without_start(whole, known)
    if rest is None and masked:
        parts = whole.split("\n\n")
        rest = "\n\n".join(parts[len(known.split("\n\n")) if known else 0 :])
    return rest or ""
