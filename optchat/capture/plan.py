"""What is known when a host shows a list, and the plan that comes of it.

Data, and the few ways in which it is made. ``reconcile`` makes the plan, with ``match_by_id``,
``match_by_text`` and ``assign_turns``; ``capture`` writes it down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from ..base.canon import canon
from ..base.record import Entry
from .host_messages import ASIDE, STEER
from .open_turns import Draft, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .host_messages import Item
    from .pairing import Match
    from .session_records import Record, SessionRecords

EARLY: Final = "early-"
"""Begins the token of a turn whose message a list showed before the host announced the turn."""
ROW: Final = "row-"
"""Begins the token of a report that came in a row nobody announced."""


@dataclass(frozen=True, slots=True)
class Footing:
    """An item and the record it is, by index and as such.

    All before them was compared, so that the next list need not be again.
    """

    at: int
    item: Item
    here: int
    record: Record


@dataclass(slots=True)
class Turn:
    """What the instance that was given a list knows of it.

    ``running``: the token of the turn it began last. ``is_own_list``: the list is that turn's own;
    ``likely``: it ends with that turn, as far as its words agree. ``rewound``: the user has taken
    turns back since. ``reserve_token``: a token for a message that was not announced yet.
    ``unfinished_turns``: the turns no list of their own has come for. ``seen_to``: the last message
    that the agent's lists have shown so far. ``elsewhere``: its ids may be those of a copy, shown
    or logged under another session's name. ``placed``: turns by the items that are their messages,
    by identity: the list each began with told its place. ``hosts_own``: the list is of a turn that
    the host opened by itself; ``since``: the first item that turn has brought; ``began``: when it
    began, in seconds; ``unseen``: no list has shown any of it before.
    """

    session: str
    running: str = ""
    is_own_list: bool = False
    likely: bool = False
    rewound: bool = False
    reserve_token: str = ""
    platform: str = ""
    author: str = ""
    unfinished_turns: frozenset[str] = frozenset()
    footing: Footing | None = None
    seen_to: int = -1
    elsewhere: bool = False
    placed: Mapping[int, str] = field(default_factory=dict)
    hosts_own: bool = False
    since: Item | None = None
    unseen: bool = False
    began: float = 0.0


@dataclass(slots=True)
class Addition:
    """An entry to log.

    ``stamp`` is the host's time in seconds, where the entry has no date of its own.
    """

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
    """What to write.

    ``early``: the last entry is a message whose turn is not announced yet. ``gap``: the summary now
    in the list.

    ``consistent``: nothing in the list speaks against its being the running turn's. ``reached``:
    the last logged message that the list was found to show, -1 for none. ``settled``: open turns
    and entries that need none of their own. ``retraction``: a note that the turn's message stands
    in the place of earlier ones.
    """

    consistent: bool = True
    additions: list[Addition] = field(default_factory=list)
    binds: list[Bind] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    early: Item | None = None
    gap: str = ""
    footing: Footing | None = None
    reached: int = -1
    retraction: str = ""

    @property
    def is_headless(self) -> bool:
        """Whether it begins with words or deeds of the agent's that nobody has asked for."""
        return bool(self.additions) and self.additions[0].entry.kind in ("talk", "tool", "echo")

    @property
    def strangers(self) -> list[Entry]:
        """What the user is to have said, or a report, but no turn was announced with it."""
        entries = (addition.entry for addition in self.additions)
        said = [e for e in entries if e.kind in ("user", "work") and e.tool != STEER]
        return [e for e in said if not e.turn or e.turn.startswith(ROW)]

    @property
    def is_strange(self) -> bool:
        """Whether it holds words that nobody has announced and no open turn could be.

        Where a turn with the same words is left over, it is only not clear which of them it is.
        """
        left = {canon(a.entry.text) for a in self.additions if a.entry.unshown}
        return any(canon(entry.text) not in left for entry in self.strangers)


@dataclass(slots=True)
class New:
    """An item that is not in the log, or what it has gained.

    In the user's role, ``unit``; of the agent, ``text``.

    ``session``: where it was said, if that is known by what stands before it. ``edited``: it has
    other words in the place of a logged message. ``missing``: it stands among what is logged.
    """

    item: Item
    text: str = ""
    names: tuple[str, ...] = ()
    unit: Unit | None = None
    session: str = ""
    edited: bool = False
    missing: bool = False

    @classmethod
    def whole(cls, item: Item, *, named: bool = False) -> New:
        """All of an item."""
        said = item.said and not item.steer
        unit = (
            Unit(
                item.canon,
                parts=item.parts,
                masked=named,
                worded=is_worded(item, named=named),
                stamp=item.stamp,
            )
            if said
            else None
        )
        return cls(item, names=(item.uid, *item.absorbed) if item.uid else (), unit=unit)

    @classmethod
    def gain(cls, item: Item, rest: str, *, named: bool = False) -> New:
        """What an item has gained since it was logged."""
        names = item.absorbed or (item.uid,)
        if item.said:
            return cls(
                item,
                names=names,
                unit=Unit(rest, masked=named, worded=is_worded(item, named=named)),
            )
        return cls(item, text=rest, names=names)


class Reconciliation:
    """One list, while a plan is being made of it.

    ``own``: the running turn's message, if it is logged; ``running``: that turn, while its message
    is not. ``session``: where what the agent says and does at the beginning of the new part
    belongs. ``beyond``: turns whose messages are known to stand further down in the list. ``tail``:
    the user's logged messages after those of the list. ``before``: the logged message right before
    the running turn's own in the list, -1 where that is the first; None: not known.
    """

    def __init__(
        self, items: Sequence[Item], known: SessionRecords, drafts: Sequence[Draft], turn: Turn
    ) -> None:
        self.items = items
        self.known = known
        self.turn = turn
        self.plan = Plan()
        last = known.last_said(turn.session)
        self.drafts = _merged(
            [
                Draft.of(record, superseded=record.id < last)
                for record in known.unshown(turn.session)
            ],
            drafts,
        )
        own = known.by_turn.get(turn.running) if turn.running else None
        self.own = own if own is not None and own.shown else None
        self.running = self.begun if self.own is None else None
        self.named = any(item.uid for item in items)
        self.session = turn.session
        self.beyond: frozenset[str] = frozenset()
        self.tail: list[Record] = []
        self.before: int | None = None

    @property
    def begun(self) -> Draft | None:
        """The turn begun last, while it is open."""
        return next((draft for draft in self.drafts if draft.token == self.turn.running), None)

    def first_open(self, flow: Sequence[Item]) -> int:
        """Where in a list the first message stands that is known to be an open turn's.

        All from there on is new.
        """
        tokens = {draft.token for draft in self.drafts if draft.record is None}
        if self.running is not None:
            tokens.discard(self.running.token)
        places = {item for item, token in self.turn.placed.items() if token in tokens}
        if self.turn.unseen and self.turn.since is not None:
            places.add(id(self.turn.since))
        if not places:
            return len(flow)
        return next((at for at, item in enumerate(flow) if id(item) in places), len(flow))

    @property
    def open(self) -> list[Draft]:
        """The turns that may be among the new messages of the list, but for the running one."""
        if self.running is None:
            drafts = self.drafts if self.own is None else []
        else:
            drafts = list(takewhile(lambda draft: draft is not self.running, self.drafts))
        return [d for d in drafts if d.token not in self.beyond] if self.beyond else drafts

    def is_saved(self, item: Item) -> bool:
        """Whether the host has an item in its database; then its turn was announced before.

        A host without ids dates a message only when it reloads it (host A 0.19, hermes_state.py
        ``_rows_to_conversation``); one with ids dates it at once, and names it when it saves it.
        """
        nameless = not self.named and any(
            not other.said and other.kind != "gap" for other in self.items
        )
        return item.saved or (bool(item.stamp) and nameless)

    def is_last_said(self, item: Item) -> bool:
        """Whether the user has said nothing after an item, but into a running turn."""
        return item is next(
            (other for other in reversed(self.items) if other.said and not other.steer), None
        )


def _merged(logged: Sequence[Draft], drafts: Sequence[Draft]) -> list[Draft]:
    """Turns by when they began: one can be written down before an older one whose instance lives.

    Open ones keep their order.
    """
    times, latest = [draft.time for draft in logged], 0.0
    for draft in drafts:
        # A clock that was put back must not put a turn before those it came after.
        latest = max(latest, draft.time)
        times.append(latest)
    both = [*logged, *drafts]
    return [both[k] for k in sorted(range(len(both)), key=lambda k: times[k])]


def is_worded(item: Item, *, named: bool) -> bool:
    """Whether an item is no message that was announced without words.

    It is text, and did not come out of a database.
    """
    return not (named or item.parts or item.stamp)


def new_after(flow: Sequence[Item], match: Match) -> list[New]:
    """What a match leaves as new."""
    head = [New.gain(flow[match.old - 1], match.rest)] if match.rest and match.old else []
    missing = [New.whole(flow[at]) for at in sorted(match.missing)]
    for one in missing:
        one.edited, one.missing = one.unit is not None, True
    new = (item for at, item in enumerate(flow[match.old :], match.old) if at not in match.later)
    return missing + head + [New.whole(item) for item in new]


def is_blank(draft: Draft | None) -> bool:
    """Whether a turn was opened by white space: joined to another message it leaves no trace."""
    return draft is not None and draft.text is not None and not draft.canon


def unshown(draft: Draft, platform: str) -> Addition:
    """The entry of a turn that no list has shown.

    The user said it, and the host may have lost it.
    """
    entry = Entry(
        kind=draft.kind,
        text=draft.text or "",
        date=draft.date,
        session=draft.session,
        turn=draft.token,
        author=draft.author,
        tool=ASIDE if draft.aside else "",
        platform=platform,
        unshown=draft.said,
    )
    return Addition(entry)
