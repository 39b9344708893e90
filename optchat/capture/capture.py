"""The object a provider tells what its host does.

It sees to it that every real message is logged once, in order.

One for each agent. Holds no message that is not on disk or in the host's list; what is already
logged is asked of the log at every call, because another instance or process may have written it.
Decides nothing about lists: ``capture/reconcile.py`` does.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ..base.canon import canon
from ..base.errors import StoreError
from ..base.json_line import clean
from .begun_turns import Begun, Early, hosts_own, is_its, placed, turns_of
from .host_messages import STEER, read_message
from .host_text import user_text
from .list_reader import Reader
from .open_turns import Draft, seconds
from .origin import candidates, find_origin
from .reconcile import EARLY, Addition, Footing, Plan, Turn, reconcile
from .session_records import UNDO_NOTE, SessionRecords
from .spool import RETRIES_MAX, Spool
from .store import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..base.record import Entry
    from .host_messages import Item
    from .origin import Origin
    from .store import CaptureStore

OVERDUE: Final = timedelta(days=1)
"""A session whose process died usually comes back within the day, and then its list shows what
became of the turn.
"""

_TURNS_KEPT: Final = 64
"""The newest turns begun that are remembered here; the disk knows all that are open."""
_LEFT_KEPT: Final = 8
"""Sessions an agent has left that are remembered, the last ones."""
_CONTINUES: Final = ("compression", "branch", "")
"""Reasons of a switch to a session that goes on from its parent.

A resumed session has only come after it.
"""


class Capture:
    """Captures the session of one agent."""

    def __init__(
        self,
        store: CaptureStore,
        *,
        session: str,
        platform: str = "",
        owner: str = "",
        parent_of: Callable[[str], str] | None = None,
    ) -> None:
        """``parent_of``: which session the host says another came from, "" where it does not."""
        # As it comes back from the disk, or nothing would be known of it.
        self.session = clean(session)
        self.platform = platform
        self.owner = owner or uuid4().hex[:12]
        self._store = store
        self._parent_of = parent_of or (lambda _session: "")
        self._left: list[str] = []  # sessions this agent was in before
        self._reader = Reader()
        self._known = SessionRecords()
        self._footing: Footing | None = None
        self._mark: object | None = None
        self._drafts: list[Draft] = []
        self._gap = ""
        self._adopted: set[str] = set()
        self._rewound = False
        self._seen_to = -1
        self._ended_with: Item | None = None
        self._lock = threading.RLock()
        # Separate from the lock above, which may be held for seconds while a batch waits for the
        # disk: a turn must not.
        self._turns_lock = threading.Lock()
        self._turns: list[Begun] = []
        self._early: Early | None = None
        self._spool = Spool(store, platform, self._records_of)

    # -- what the host tells

    def initialized(self) -> None:
        """A session begins, or goes on after whatever ended it.

        Take charge of its open turns, and of those nobody came back to.
        """
        with self._lock:
            self._refresh()
            self._adopt()
            # What was answered the host has saved; what was not may be gone from its list.
            shown = reversed(self._known.shown(self.session))
            self._seen_to = next((record.id for record in shown if not record.said), -1)
            for draft in self._store.overdue(self._store.now() - OVERDUE):
                if draft.token not in self._adopted:
                    self._spool.write_down(draft.session, [draft])

    def turn_started(
        self, text: str, author: str = "", length: int = 0, last: object = None
    ) -> None:
        """A turn begins with this text; empty where the host announces a picture without words.

        Waits for nobody.

        ``length``: messages of the list it begins with, where that is known; ``last``: the last of
        them, which should be its own.
        """
        if not text and last is not None:
            # Told without words: a picture, whose words the list has, or a row that is none of the
            # user's.
            own = next((item for item in read_message(last) if item.said), None)
            text = own.text if own is not None else text
            if own is None:
                self._begin_hosts_own(length, last)
                return
        what = user_text(text)
        if what is None:
            self._begin_hosts_own(length, last)
            return
        form, date = canon(what.text), self._date()
        with self._turns_lock:
            token = uuid4().hex[:16]
            if self._early is not None and self._early.is_it(form):
                token = self._early.token
            self._early = None
            turn = Begun(token, form, not text, seconds(date))
            if length and is_its(last, turn):
                turn.length, turn.message = length, last
                # A host that sends a message again cuts the old one off its list. A list with these
                # words is then the new turn's, and only this tells it from one whose list is late.
                self._cut_off(length)
            self._begin(turn)
            session = self.session
        author = what.author or author
        draft = Draft(
            token, session, what.text if text else None, date, author, self.owner, kind=what.kind
        )
        # Without it the turn's list would show words that nobody has announced.
        self._spool.keep(lambda: self._store.begin(draft))
        if turn.shown:
            # The disk took so long that the turn was over first: what its list brought is logged,
            # and nobody looks for this any more.
            with self._lock:
                if turn.over:
                    self._spool.write_down(session, [replace(draft, text=None)])

    def delegated(self, task: str, result: str) -> None:
        """A subagent has reported. Waits for nobody."""
        self._put_aside("work", f"{task}\n\n{result}", result.strip() or task.strip())

    def noted(self, text: str, content: str) -> None:
        """The host's memory tool has put down, replaced or struck ``content``. Waits for nobody."""
        self._put_aside("note", text, content.strip())

    def turn_ended(
        self, messages: Sequence[object], user_content: str | None = None, author: str = ""
    ) -> None:
        """The turn is over.

        ``messages`` is the host's whole list, ``user_content`` what opened the turn.
        """
        with self._lock:
            items = self._reader.read(messages)
            turn = self._turn_of(items, user_content)
            if turn is not None and turn.token:
                turn.shown = True
            self._take(items, turn, author=author)
            if turn is not None:
                with self._turns_lock:
                    # The hooks after turns come in the order of the turns: an older one that was
                    # broken off gets no list any more, and must not be taken for a younger one
                    # with the same words.
                    for older in self._turns[: self._turns.index(turn) + 1]:
                        older.over = True

    def list_seen(self, messages: Sequence[object]) -> None:
        """The host shows its list at some other moment, perhaps in the middle of a turn, perhaps
        before it has announced one.
        """
        with self._lock:
            self._take(self._reader.read(messages), None)
            with self._turns_lock:
                for turn in self._turns:
                    turn.shown = turn.shown or not turn.token

    def ended(self, messages: Sequence[object]) -> None:
        """The session may be over, or is being compressed and goes on: no turn is given up yet."""
        self.list_seen(messages)

    def switched(
        self,
        new_session: str,
        parent: str = "",
        *,
        reset: bool = False,
        rewound: bool = False,
        reason: str = "",
    ) -> None:
        """The agent goes on in another session, or at an earlier point of this one."""
        with self._lock:
            old, new_session, parent = self.session, clean(new_session), clean(parent)
            if rewound:
                self._rewound = True
                with self._turns_lock:
                    for turn in self._turns:
                        turn.undone = True
                note = Draft(
                    uuid4().hex[:16], old, UNDO_NOTE, self._date(), owner=self.owner, kind="note"
                )
                self._store.begin(note)
            if reason == "compression":
                with self._turns_lock:
                    for turn in self._turns:
                        turn.length = 0  # the list is shorter for it
            if new_session == old:
                return
            parent, goes_on = parent or old, not reset and reason in _CONTINUES
            try:
                if goes_on:
                    self._go_on_as(new_session, parent, whole=reason == "compression")
                else:
                    self._give_up()
            finally:  # the agent is there, whatever the disk refused
                self._go_to(new_session, goes_on=goes_on)

    def shutdown(self) -> None:
        """The agent is gone: what it was told and no list has shown is logged as it is."""
        with self._lock:
            self._give_up()
            self._reader.forget()

    # -- inside

    def _go_on_as(self, child: str, parent: str, *, whole: bool) -> None:
        """Note that a session goes on from another, with what was last said there and may
        show yet.
        """
        try:
            self._refresh()
        finally:
            turns = [draft.token for draft in self._drafts if draft.session == parent]
            turns.append(self._known.last_turn(parent))
            last = self._known.last_said(parent)
            turns += [record.turn for record in self._known.unshown(parent) if record.id > last]
            self._spool.keep(lambda: self._store.fork(child, parent, turns, whole=whole))

    def _go_to(self, session: str, *, goes_on: bool) -> None:
        """Follow the agent to another session, which goes on from this one or not."""
        old = self.session
        if old in self._left:
            self._left.remove(old)
        self._left = [*self._left[-_LEFT_KEPT:], old]
        with self._turns_lock:
            self.session = session
            if not goes_on:  # no list of the other session can belong to them
                self._turns.clear()
                self._early = None
        self._mark, self._rewound = None, False
        if not goes_on:
            self._seen_to, self._ended_with = -1, None
        self._refresh()
        self._adopt()

    def _begin_hosts_own(self, length: int, message: object) -> None:
        """A turn the host opens by a row of its own: what it brings is no older turn's."""
        with self._turns_lock:
            self._early = None
            self._cut_off(length)
            turn = Begun("", "", textless=False, time=seconds(self._date()), length=length)
            turn.message = message
            self._begin(turn)

    def _begin(self, turn: Begun) -> None:
        self._turns.append(turn)
        del self._turns[:-_TURNS_KEPT]

    def _cut_off(self, length: int) -> None:
        for older in self._turns:
            older.cut = older.cut or 0 < length <= older.length

    def _put_aside(self, kind: str, text: str, clue: str) -> None:
        """Keep what stands in no list until a list shows where it belongs.

        Logged at once it would stand before the very request it came of: the messages of a turn
        are logged when the turn is over.
        """
        with self._turns_lock:
            session = self.session
        token, date = uuid4().hex[:16], self._date()
        draft = Draft(
            token, session, text, date, owner=self.owner, kind=kind, aside=True, clue=clue
        )
        self._spool.keep(lambda: self._store.begin(draft))

    def _turn_of(self, items: Sequence[Item], user_content: str | None) -> Begun | None:
        """Which of our turns a list belongs to.

        Its hook may come late, when the next turn has begun.
        """
        with self._turns_lock:
            # A list is at least as long as what its turn began with, or holds its very message.
            place_of, count = self._reader.place_of, self._reader.count
            waiting = [turn for turn in self._turns if not turn.over]
            waiting = [t for t in waiting if place_of(t.message, t.length - 1) < count]
        if (hosts := hosts_own(waiting, user_content)) is not None:
            return hosts
        waiting = [turn for turn in waiting if turn.token]
        fitting = turns_of(items, user_content, waiting, self._reader, self._refreshed)
        return (
            fitting[0]
            if len(fitting) == 1
            else self._likeliest(items, fitting)
            if fitting
            else None
        )

    def _likeliest(self, items: Sequence[Item], fitting: list[Begun]) -> Begun:
        """Of several turns with the same words the first that leaves no message of the list
        unexplained and no other one of them lost.

        One that needs a message long given up to explain the list comes after all others.
        """
        self._refresh()
        fitting = [turn for turn in fitting if not self._passed_over(turn)] or fitting
        tokens = {turn.token for turn in fitting}
        late = {
            record.id
            for record in self._known.unshown(self.session)
            if record.id < self._known.last_said(self.session)
        }
        second: Begun | None = None
        for turn in fitting:
            plan = reconcile(
                items,
                self._known,
                self._open(before=turn.token),
                self._facts(turn.token, is_own_list=True),
            )
            entries = [addition.entry for addition in plan.additions]
            strange = any(
                entry.kind == "user" and not entry.turn and entry.tool != STEER for entry in entries
            )
            if (
                plan.consistent
                and not strange
                and not any(entry.unshown and entry.turn in tokens for entry in entries)
            ):
                if not any(bind.id in late for bind in plan.binds):
                    return turn
                second = second or turn
        return second or fitting[-1]

    def _passed_over(self, turn: Begun) -> bool:
        """Whether younger turns were shown and this one was not.

        Then no list of its own will come.
        """
        record = self._known.by_turn.get(turn.token)
        return (
            record is not None
            and not record.shown
            and record.id < self._known.last_said(self.session)
        )

    def _take(self, items: Sequence[Item], turn: Begun | None, author: str = "") -> None:
        """Log what a list has and the log lacks."""
        self._spool.retry()
        hosts_own, turn = (turn, None) if turn is not None and not turn.token else (None, turn)
        is_own_list, reserve_token, likely = turn is not None, "", False
        token = turn.token if turn is not None else ""
        if turn is None and hosts_own is None:
            reserve_token = EARLY + uuid4().hex[:16]
            with self._turns_lock:
                last = self._turns[-1] if self._turns else None
                likely = last is not None and bool(last.token) and not last.over and not last.undone
                token = last.token if last is not None and likely else ""
        marked = self._reader.marked()
        for _ in range(RETRIES_MAX):
            self._refresh()
            drafts = self._open(before=token if is_own_list else "")
            facts = self._facts(
                token, is_own_list=is_own_list, reserve_token=reserve_token, author=author
            )
            if hosts_own is not None:
                facts.hosts_own, facts.began = True, hosts_own.time
                place = self._reader.place_of(hosts_own.message, hosts_own.length - 1)
                facts.since = self._reader.first_from(place) if place >= 0 else None
                facts.unseen = not hosts_own.shown
            facts.rewound = facts.rewound or any(
                draft.text == UNDO_NOTE and draft.kind == "note" for draft in drafts
            )
            # A message that ends a list may be one whose turn is not announced yet; one that
            # something follows is the newest turn's.
            facts.likely = likely and (
                facts.rewound or (bool(items) and (items[-1].steer or not items[-1].said))
            )
            hosts = [d.token for d in drafts if d.said and d.kind == "user" and d.canon in marked]
            drafts = [draft for draft in drafts if draft.token not in hosts]
            plan, origin = self._planned(items, drafts, facts)
            plan.settled += hosts  # the host has announced as a turn what it marks as its own
            session, mark = self.session, self._mark
            if origin is not None and origin.copy is not None:
                fork = origin.copy
                self._store.fork(fork.child, fork.parent, [*fork.turns], whole=False, at=fork.at)
                continue
            if origin is not None and origin.plan is not None:
                plan, session, mark = origin.plan, origin.session, origin.mark
            self._footing = plan.footing if session == self.session else None
            batch = self._batch(plan)
            if not batch or self._store.commit(session, batch, mark):
                break
        else:
            raise StoreError(
                "cannot log a turn: other processes keep writing to its session",
                hint="It is logged with the next turn",
            )
        if plan.early is not None:
            with self._turns_lock:
                self._early = Early(reserve_token, plan.early.canon, plan.early.parts)
        if is_own_list or hosts_own is not None:
            self._rewound = False
        self._ended_with = next((item for item in reversed(items) if not item.steer), None)

    def _planned(
        self, items: Sequence[Item], drafts: Sequence[Draft], facts: Turn
    ) -> tuple[Plan, Origin | None]:
        """The plan for a list; and where it comes from, if that is another session."""
        plan = reconcile(items, self._known, drafts, facts)
        strange = plan.is_headless and not (facts.hosts_own or self._known.shown(self.session))
        if plan.is_strange:
            # What a copy's list has brought is logged under the ids of the copy.
            other = reconcile(items, self._known, drafts, replace(facts, elsewhere=True))
            plan = other if len(other.strangers) < len(plan.strangers) else plan
            strange = plan.is_strange
        # A list shown before anything was begun here may be of the session that was left, and a
        # message that comes from a database is hardly about to be announced.
        idle = bool(self._left and plan.additions) and not self._turns
        idle = idle or (plan.early is not None and bool(plan.early.stamp))
        if not (strange or idle):
            return plan, None
        names = candidates(
            self._store, plan, self.session, left=self._left, parent_of=self._parent_of
        )
        return plan, find_origin(
            self._store, items, plan, facts, drafts, names=names, whole=not strange
        )

    def _last_shown(self) -> int:
        """The last logged message that this agent's lists have shown; -1 for none."""
        last, self._ended_with = self._ended_with, None
        if last is not None and last.kind != "gap":
            shown = reversed(self._known.shown(self.session))
            found = (record.id for record in shown if record.key == last.key)
            self._seen_to = next(found, self._seen_to)
        return self._seen_to

    def _facts(
        self, token: str, *, is_own_list: bool, reserve_token: str = "", author: str = ""
    ) -> Turn:
        with self._turns_lock:
            begun = [turn for turn in self._turns if turn.token]
            places = {
                id(item): turn.token
                for item, turn in placed(begun, self._reader)
                if item.canon == turn.canon
            }
            waiting = frozenset(
                turn.token
                for turn in begun
                if not (turn.over or turn.undone or turn.cut) and turn.token != token
            )
        return Turn(
            self.session,
            token,
            is_own_list=is_own_list,
            rewound=self._rewound,
            reserve_token=reserve_token,
            platform=self.platform,
            author=author,
            unfinished_turns=waiting,
            footing=self._footing,
            seen_to=self._last_shown(),
            placed=places,
        )

    def _open(self, before: str = "") -> list[Draft]:
        """The open turns of the family.

        Without those that began after ``before``, which a list that belongs to it cannot show.
        """
        drafts = [draft for draft in self._drafts if draft.token not in self._known.settled]
        drafts = [
            d
            for d in drafts
            if d.owner == self.owner or self._known.reaches(self.session, d.session, d.token)
        ]
        waiting = False
        for draft in drafts:
            draft.mine = draft.owner == self.owner
            # No list is awaited for the note of an undo, so that whoever is next may write it down.
            is_undo = draft.kind == "note" and not draft.aside and not waiting
            draft.other_owner = not (draft.mine or is_undo or draft.token in self._adopted)
            waiting = waiting or draft.other_owner
        # What was found open when the session was opened, and what came along from the one it is a
        # copy of, is older than what was begun here, though a clock may say otherwise.
        older = self._adopted
        drafts.sort(key=lambda d: d.token not in older and (d.mine or d.session == self.session))
        at = next((k for k, draft in enumerate(drafts) if draft.token == before), None)
        if at is None:
            return drafts
        return drafts[: at + 1] + [draft for draft in drafts[at + 1 :] if draft.aside]

    def _adopt(self) -> None:
        """Take charge of what others have begun in this session.

        When it is opened anew, they are gone or idle.
        """
        others = (draft for draft in self._drafts if draft.owner != self.owner)
        self._adopted |= {
            draft.token
            for draft in others
            if self._known.reaches(self.session, draft.session, draft.token)
        }

    def _batch(self, plan: Plan) -> Batch:
        gap = plan.gap if plan.gap != self._gap else ""
        entries = [self._dated(addition) for addition in plan.additions]
        return Batch(entries, plan.binds, plan.settled, gap)

    def _dated(self, addition: Addition) -> Entry:
        entry = addition.entry
        if entry.date or not addition.stamp:
            return entry
        try:
            date = datetime.fromtimestamp(addition.stamp, self._store.now().tzinfo).isoformat(
                timespec="seconds"
            )
        except (ValueError, OverflowError, OSError):
            return entry  # a host's clock may hold anything; the time of writing is near enough
        return replace(entry, date=date)

    def _refreshed(self) -> SessionRecords:
        self._refresh()
        return self._known

    def _refresh(self) -> None:
        news = self._store.news(self.session, self._mark)
        if news.fresh:  # what was found out about lists was found out by what is no longer so
            self._known = SessionRecords()
            self._footing = None
            self._reader.forget()
        for fork in news.forks:
            self._known.fork(fork)
        self._known.add(news.messages)
        for bind in news.binds:
            self._known.bind(bind.id, bind.uid, bind.turn)
        self._drafts = [draft for draft in news.drafts if draft.token not in self._known.settled]
        self._gap, self._mark = news.gap, news.mark

    def _give_up(self) -> None:
        """Write down the turns that are ours and that no list has shown, also those that came along
        from an older session.
        """
        self._spool.retry()
        self._refresh()
        drafts = [draft for draft in self._open() if not draft.other_owner]
        self._spool.leave(self.session, drafts)

    def _records_of(self, session: str) -> tuple[SessionRecords, object]:
        """What the log holds of a session, and how much of it was read."""
        if session == self.session:
            self._refresh()
            return self._known, self._mark
        news = self._store.news(session, None)
        known = SessionRecords()
        known.add(news.messages)
        for bind in news.binds:
            known.bind(bind.id, bind.uid, bind.turn)
        return known, news.mark

    def _date(self) -> str:
        return self._store.now().isoformat(timespec="milliseconds")
