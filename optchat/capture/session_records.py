"""What the log already holds of a session and its branches, in the form in which a host's list can
show it again.

Pure bookkeeping, filled from the log piece by piece and never from what was merely planned. Which
records one session can see is decided here; whether a list shows them is ``alignment``'s to say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..base.canon import canon, key_of
from ..log.redacted import is_redacted
from .host_messages import ASIDE, STEER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..base.record import Message
    from .host_messages import Item

UNDO_NOTE: Final = "(the user took back what was said last: /undo)"
RETRY_NOTE: Final = "(the user took back what was said last, to say it again: /retry)"
REWORD_NOTE: Final = "(the user took back what was said last, to say this instead)"
EDIT_NOTE: Final = "(the user put this in place of an earlier message)"
"""Notes that what was said before them no longer stands in the host's conversation."""
_RETRACTIONS: Final = (UNDO_NOTE, RETRY_NOTE, REWORD_NOTE)

_SHOWABLE: Final = ("user", "talk", "tool", "echo")


@dataclass(slots=True)
class Record:
    """A logged message.

    ``shown``: a list of the host has shown it; ``size``: characters of its text without outer
    space.

    ``text``: only of one that was not shown when it was logged. ``date``: of those, and of the
    user's that have no host's id. ``redacted``: its words are gone, and no list has shown yet by
    which it goes there.
    """

    id: int
    kind: str
    key: str
    canon: str
    session: str
    turn: str
    uid: str
    said: bool
    steer: bool
    shown: bool
    size: int
    call: str = ""
    text: str = ""
    date: str = ""
    redacted: bool = False

    @classmethod
    def of(cls, message: Message) -> Record | None:
        """The record of a message.

        None for one that no list can show: a note, or a report that came by a way of its own.
        """
        told = message.kind in ("work", "echo") and bool(message.turn) and message.tool != ASIDE
        said = message.kind == "user" or told
        if not said and message.kind not in _SHOWABLE:
            return None
        steer = said and message.tool == STEER
        return cls(
            id=message.id,
            kind=message.kind,
            key=key_of(message.kind, message.text, call=message.call, said=said, steer=steer),
            canon=canon(message.text) if said else "",
            session=message.session,
            turn=message.turn,
            uid=message.uid,
            said=said,
            steer=steer,
            shown=not message.unshown,
            size=len(message.text.strip()),
            call=message.call,
            text=message.text if message.unshown else "",
            date=message.date if message.unshown or (said and not message.uid) else "",
            redacted=is_redacted(message.text),
        )


@dataclass(frozen=True, slots=True)
class Fork:
    """A session that began as a copy of another.

    What the parent logged before ``at``, and the open turns that went along, are its own.
    """

    child: str
    parent: str
    at: int
    turns: frozenset[str] = frozenset()


class _View:
    """What one session's lists can show of a family.

    The session itself, and of its ancestors what there was when it began.
    """

    def __init__(self, limits: dict[str, int], turns: set[str]) -> None:
        """``limits``: how far it sees into each session (-1: all of it).

        ``turns``: open turns that came along from an ancestor.
        """
        self.limits = limits
        self.turns = turns
        self.shown: list[Record] = []
        self.unshown: list[Record] = []
        self._along: set[str] = set()

    def add(self, record: Record) -> None:
        limit = self.limits.get(record.session)
        if record.said and not record.steer:
            came_along = bool(record.turn) and record.turn in self.turns
            (self._along.add if came_along else self._along.discard)(record.session)
        if (
            limit is None
            or not (limit < 0 or record.id < limit or record.session in self._along)
            or record.steer
        ):
            return
        if record.shown:
            self.shown.append(record)
        elif record.said and record.turn:
            self.unshown.append(record)


class SessionRecords:
    """The records of one family of sessions, in log order.

    ``steers``: how many messages in the middle of a turn have a key. ``calls``: keys of all calls.
    ``redacted``: those that no list has shown since their words are gone.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.by_uid: dict[str, list[Record]] = defaultdict(list)
        self.by_turn: dict[str, Record] = {}
        self.settled: set[str] = set()
        self.steers: Counter[str] = Counter()
        self.calls: set[str] = set()
        self.redacted: list[Record] = []
        self._retracted: dict[str, int] = {}
        self._by_id: dict[int, Record] = {}
        self._forks: dict[str, Fork] = {}
        self._views: dict[str, _View] = {}

    def add(self, messages: Iterable[Message]) -> None:
        """Take in messages the log has gained, in their order."""
        for message in messages:
            if message.turn:
                self.settled.add(message.turn)
            record = self._record_of(message)
            if record is None or record.id in self._by_id:
                continue
            self.records.append(record)
            self._by_id[record.id] = record
            if record.redacted:
                self.redacted.append(record)
            if record.uid:
                self.by_uid[record.uid].append(record)
            if record.turn:
                self.by_turn[record.turn] = record
            if record.steer:
                self.steers[record.key] += 1
            elif record.kind == "tool":
                self.calls.add(record.key)
            for view in self._views.values():
                view.add(record)

    def _record_of(self, message: Message) -> Record | None:
        if message.kind == "note" and message.text in _RETRACTIONS:
            self._retracted[message.session] = message.id
        return Record.of(message)

    def bind(self, id_: int | None, uid: str, turn: str) -> None:
        """A message got the host's id or was shown after all (``id_``), or an open turn was settled
        by it (``turn``).
        """
        record = self._by_id.get(id_) if id_ is not None else None
        if turn:
            self.settled.add(turn)
        if record is None:
            return
        if turn:
            self.by_turn.setdefault(turn, record)
        if uid and record not in self.by_uid.get(uid, ()):
            self.by_uid[uid].append(record)
            record.uid = record.uid or uid
        if not record.shown:
            record.shown = True
            self._views.clear()

    def recognized(self, record: Record, item: Item) -> None:
        """A redacted message was found in a list: it goes by what is shown there."""
        record.redacted = False
        self.redacted.remove(record)
        record.key, record.canon, record.size = item.key, item.canon, len(item.text.strip())
        record.text = record.text and item.text
        if record.steer:
            self.steers[record.key] += 1
        elif record.kind == "tool":
            self.calls.add(record.key)

    def fork(self, fork: Fork) -> None:
        """A session of the family is a copy of another one."""
        if self._forks.get(fork.child) != fork:
            self._forks[fork.child] = fork
            self._views.clear()

    def gained(self, session: str, key: str, *, unseen_by: str) -> bool:
        """Whether a session has a message of a key, and only one, that one which began as its copy
        does not see.
        """
        seen = {record.id for record in self.shown(unseen_by) if record.key == key}
        here = [r.id for r in self.records if r.session == session and r.key == key]
        return len(here) == 1 and here[0] not in seen

    def unshown(self, session: str) -> list[Record]:
        """Records of turns no list has shown yet that this session's lists may show.

        Not to be changed.
        """
        return self._view(session).unshown

    def shown(self, session: str) -> list[Record]:
        """What this session's lists have shown, in order.

        The result is kept and grows: it is not to be changed.
        """
        return self._view(session).shown

    def last_said(self, session: str) -> int:
        """The id of what the user said last in what a session has shown; -1 if that is nothing."""
        return next((record.id for record in reversed(self.shown(session)) if record.said), -1)

    def left_out(self, session: str, after: int, up_to: int) -> list[Record]:
        """What the user said between two messages of a session and did not take back since."""
        after = max(after, self.retracted(session))
        found: list[Record] = []
        for record in reversed(self.shown(session)):
            if record.id <= after:
                break
            if record.said and record.id <= up_to:
                found.append(record)
        return found

    def retracted(self, session: str) -> int:
        """The last note that the user took something back in a session; -1 for none."""
        return self._retracted.get(session, -1)

    def last_turn(self, session: str, before: int | None = None) -> str:
        """The turn a session has shown last (before a message).

        What it brought may be shown yet.
        """
        shown = reversed(self.shown(session))
        said = (r for r in shown if r.said and (before is None or r.id < before))
        return next((record.turn for record in said), "")

    def reaches(self, session: str, begun_in: str, turn: str) -> bool:
        """Whether a turn begun in one session of the family can show in the lists of another."""
        limits, turns = self._lineage(session)
        limit = limits.get(begun_in)
        return limit is not None and (limit < 0 or turn in turns)

    def _view(self, session: str) -> _View:
        view = self._views.get(session)
        if view is None:
            view = self._views[session] = _View(*self._lineage(session))
            for record in self.records:
                view.add(record)
        return view

    def _lineage(self, session: str) -> tuple[dict[str, int], set[str]]:
        """How far into each ancestor a session sees, -1 for all of it.

        And which turns came along when it began.
        """
        limits: dict[str, int] = {session: -1}
        turns: set[str] = set()
        while fork := self._forks.get(session):
            if fork.parent in limits:
                break
            limits[fork.parent] = fork.at
            turns |= fork.turns
            session = fork.parent
        return limits, turns
