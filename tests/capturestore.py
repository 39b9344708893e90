"""A store for capture that keeps everything in memory.

What the real one promises, with none of its files.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple

from optchat.base.canon import canon
from optchat.base.errors import StoreError
from optchat.base.record import Entry, Message
from optchat.capture.session_records import Fork
from optchat.capture.store import Batch, News

if TYPE_CHECKING:
    from optchat.capture.open_turns import Draft


class Mark(NamedTuple):
    family: frozenset[str]
    messages: int
    binds: int


class MemoryStore:
    """One memory shared by all the captures it is given to."""

    def __init__(self) -> None:
        self.log: list[Message] = []
        self.drafts: list[Draft] = []
        self.forks: list[Fork] = []
        self.binds: list[tuple[str, object]] = []
        self.settled: set[str] = set()
        self.gaps: dict[str, str] = {}
        self.time = datetime(2026, 5, 1, 9, 0, tzinfo=timezone(timedelta(hours=2)))
        self.broken = False
        self.intruder = None

    def now(self) -> datetime:
        self.time += timedelta(seconds=2)
        return self.time

    def begin(self, draft: Draft) -> None:
        if self.broken:
            raise StoreError("cannot append: the disk is full")
        self.drafts.append(draft)

    def fork(self, child, parent, turns, *, whole, at=None):
        at = -1 if whole else len(self.log) if at is None else at
        self.forks.append(Fork(child, parent, at, frozenset(turns)))

    def sessions_with(self, uids, texts):
        forms = {canon(text) for text in texts}
        bound = {bind.id for _, bind in self.binds if bind.uid in set(uids)}
        found = Counter()
        for m in reversed(self.log):
            said = m.kind == "user" and canon(m.text) in forms
            found[m.session] += bool(said or m.id in bound or (m.uid and m.uid in uids))
        logged = {m.turn for m in self.log} | self.settled
        begun = [d.session for d in self.drafts if d.canon in forms and d.token not in logged]
        return [session for session, count in found.most_common() if count] + begun

    def family(self, session: str) -> frozenset[str]:
        found = {session}
        while more := {f.child for f in self.forks if f.parent in found} | {
            f.parent for f in self.forks if f.child in found
        }:
            if more <= found:
                break
            found |= more
        return frozenset(found)

    def news(self, session: str, since: object) -> News:
        family = self.family(session)
        fresh = since is None or since.family != family
        first, bound = (0, 0) if fresh else (since.messages, since.binds)
        tokens = {message.turn for message in self.log} | self.settled
        return News(
            mark=Mark(family, len(self.log), len(self.binds)),
            fresh=fresh,
            messages=[m for m in self.log[first:] if m.session in family],
            binds=[bind for name, bind in self.binds[bound:] if name in family],
            forks=[f for f in self.forks if f.child in family],
            drafts=[d for d in self.drafts if d.session in family and d.token not in tokens],
            gap=self.gaps.get(session, ""),
        )

    def commit(self, session: str, batch: Batch, since: object) -> bool:
        if self.broken:
            raise StoreError("cannot append: the disk is full")
        if self.intruder is not None:
            intruder, self.intruder = self.intruder, None
            intruder()
        if (
            any(m.session in since.family for m in self.log[since.messages :])
            or self.family(session) != since.family
        ):
            return False
        for entry in batch.entries:
            fields = {name: getattr(entry, name) for name in Entry.__slots__}
            fields["date"] = entry.date or self.now().isoformat(timespec="seconds")
            self.log.append(Message(id=len(self.log), **fields))
        self.binds += [(session, bind) for bind in batch.binds]
        self.settled |= set(batch.settled) | {bind.turn for bind in batch.binds if bind.turn}
        if batch.gap:
            self.gaps[session] = batch.gap
        return True

    def overdue(self, before: datetime) -> list[Draft]:
        tokens = {message.turn for message in self.log} | self.settled
        return [
            d
            for d in self.drafts
            if d.token not in tokens and datetime.fromisoformat(d.date) < before
        ]
