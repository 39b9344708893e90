"""What the log already holds of a session and its branches, in the form in which a host's list can show it again.

Pure bookkeeping, filled from the log piece by piece and never from what was merely planned. Which records one session can see is
decided here; whether a list shows them is ``alignment``'s to say.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .hostlist import STEER, key_of
from .hosttext import canon

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .records import Message

_SHOWABLE: Final = ("user", "talk", "tool", "echo")


@dataclass(slots=True)
class Record:
    """A logged message. ``shown``: a list of the host has shown it; ``size``: characters of its text without outer space."""

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
    text: str = ""

    @classmethod
    def of(cls, message: Message) -> Record | None:
        """The record of a message; None for one that no list can show: a note, or a report that came by a way of its own."""
        said = message.kind == "user" or (message.kind in ("work", "echo") and bool(message.turn))
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
            text=message.text if message.unshown else "",
        )


@dataclass(frozen=True, slots=True)
class Fork:
    """A session that began as a copy of another: what the parent logged before ``at``, and the open turns that went along, are its own."""

    child: str
    parent: str
    at: int
    turns: frozenset[str] = frozenset()


class Known:
    """The records of one family of sessions, in log order."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.by_uid: dict[str, list[Record]] = defaultdict(list)
        self.by_turn: dict[str, Record] = {}
        self.settled: set[str] = set()
        self._by_id: dict[int, Record] = {}
        self._forks: dict[str, Fork] = {}
        self._views: dict[str, list[Record]] = {}

    def add(self, messages: Iterable[Message]) -> None:
        """Take in messages the log has gained, in their order."""
        for message in messages:
            if message.turn:
                self.settled.add(message.turn)
            record = Record.of(message)
            if record is None or record.id in self._by_id:
                continue
            self.records.append(record)
            self._by_id[record.id] = record
            if record.uid:
                self.by_uid[record.uid].append(record)
            if record.turn:
                self.by_turn[record.turn] = record
            self._see(record)

    def bind(self, id_: int | None, uid: str, turn: str) -> None:
        """A message got the host's id or was shown after all (``id_``), or an open turn was settled by it (``turn``)."""
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

    def fork(self, fork: Fork) -> None:
        """A session of the family is a copy of another one."""
        if self._forks.get(fork.child) != fork:
            self._forks[fork.child] = fork
            self._views.clear()

    def unshown(self, session: str) -> list[Record]:
        """Records of turns no list has shown yet that this session's lists may show."""
        return [record for record in self._visible(session) if record.said and record.turn and not record.shown]

    def last_said(self, session: str) -> int:
        """The id of what the user said last in what a session has shown; -1 if that is nothing."""
        return next((record.id for record in reversed(self.shown(session)) if record.said), -1)

    def shown(self, session: str) -> list[Record]:
        """What this session's lists have shown, in order. The result is kept and grows: it is not to be changed."""
        view = self._views.get(session)
        if view is None:
            view = self._views[session] = [record for record in self._visible(session) if record.shown and not record.steer]
        return view

    def last_turn(self, session: str) -> str:
        """The turn a session has shown last; what it brought may be shown yet."""
        return next((record.turn for record in reversed(self.shown(session)) if record.said), "")

    def reaches(self, session: str, begun_in: str, turn: str) -> bool:
        """Whether a turn begun in one session of the family can show in the lists of another."""
        limits, turns = self._lineage(session)
        limit = limits.get(begun_in)
        return limit is not None and (limit < 0 or turn in turns)

    def steers(self, key: str) -> int:
        """How many messages in the middle of a turn have this key."""
        return sum(1 for record in self.records if record.steer and record.key == key)

    def _see(self, record: Record) -> None:
        """Let kept views grow where that is all a new record does."""
        if not self._forks:
            for session, view in self._views.items():
                if record.session == session and record.shown and not record.steer:
                    view.append(record)
        else:
            self._views.clear()

    def _visible(self, session: str) -> list[Record]:
        if not self._forks:
            return [record for record in self.records if record.session == session]
        limits, turns = self._lineage(session)
        seen, along = [], ""
        for record in self.records:
            limit = limits.get(record.session)
            if record.said and not record.steer:
                along = record.session if record.turn and record.turn in turns else ""
            if limit is not None and (limit < 0 or record.id < limit or along == record.session):
                seen.append(record)
        return seen

    def _lineage(self, session: str) -> tuple[dict[str, int], set[str]]:
        """How far into each ancestor a session sees (-1: all of it), and which turns came along when it began."""
        limits: dict[str, int] = {session: -1}
        turns: set[str] = set()
        while fork := self._forks.get(session):
            if fork.parent in limits:
                break
            limits[fork.parent] = fork.at
            turns |= fork.turns
            session = fork.parent
        return limits, turns
