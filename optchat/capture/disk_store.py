"""Capture's store on the real disk: the message log, and the notes beside it.

Joins ``log/store.py`` and ``log/session_notes.py`` into what ``Capture`` asks for. One per memory;
safe to use from several threads.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.canon import canon
from ..base.errors import LockTimeoutError
from ..base.json_line import clean
from ..log.loader import said_name
from .open_turns import Draft
from .reconcile import Bind
from .session_records import Fork
from .store import News

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..log.index import Index
    from ..log.session_notes import NoteLog
    from ..log.store import Store
    from .store import Batch

_WHOLE = -1
"""In a fork: all of the parent, whatever comes, and not a copy of it as it was."""


class Mark(NamedTuple):
    """How much of a family was read.

    Everything below message ``messages`` and note ``notes`` of one making of the index.
    """

    family: frozenset[str]
    messages: int
    notes: int
    generation: int


class DiskStore:
    """What ``CaptureStore`` promises, durable and shared between processes."""

    def __init__(self, store: Store, notes: NoteLog, warn: Callable[[str], None]) -> None:
        """``warn`` is told, in words for the user, when something could not be written in time."""
        self._store = store
        self._notes = notes
        self._warn = warn

    def now(self) -> datetime:
        """Local time with zone."""
        return self._store.clock()

    # -- for capture

    def begin(self, draft: Draft) -> None:
        """Keep a turn that has begun; durable when this returns. Waits for no other process."""
        names = ("token", "text", "date", "author", "owner")
        fields = {name: getattr(draft, name) for name in names}
        if draft.aside:
            fields |= {"aside": True, "clue": draft.clue}
        self._notes.append_pending(
            {"type": "draft", "session": draft.session, "kind": draft.kind} | fields
        )

    def fork(
        self, child: str, parent: str, turns: Sequence[str], *, whole: bool, at: int | None = None
    ) -> None:
        """Note that a session goes on from another."""
        if whole:
            at = _WHOLE
        elif at is None:
            at = self._store.total()
        self._notes.append_pending(
            {"type": "from", "session": child, "parent": parent, "at": at, "turns": list(turns)}
        )

    def sessions_with(self, uids: Sequence[str], texts: Sequence[str]) -> list[str]:
        """Sessions that hold messages with these host ids or words of the user's, most first."""

        def read(index: Index) -> list[str]:
            ids = {id_ for uid in uids if (id_ := index.id_of(uid)) is not None and id_ >= 0}
            for text in texts:
                ids.update(index.ids_under(said_name(text)))
            found: dict[str, int] = {}
            # Of sessions that hold as many of them the newest: a list mostly comes from there.
            for _, session in sorted(index.sessions_of(ids).items(), reverse=True):
                found[session] = found.get(session, 0) + 1
            return sorted(found, key=found.__getitem__, reverse=True)

        forms = {canon(text) for text in texts}
        drafts = (_draft(note) for note in self._notes.notes("draft"))
        return self._store.read(read) + [draft.session for draft in drafts if draft.canon in forms]

    def news(self, session: str, since: object | None) -> News:
        """What the log and the notes hold about a session's family, beyond what ``since``
        covers.
        """
        forks = self._forks(session)
        family = _family(session, forks)
        mark = Mark(
            family,
            self._store.total(),
            self._notes.last_seq(),
            self._store.read(lambda index: index.generation()),
        )
        fresh = not isinstance(since, Mark) or (since.family, since.generation) != (
            family,
            mark.generation,
        )
        first, after = (
            (since.messages, since.notes) if isinstance(since, Mark) and not fresh else (0, 0)
        )
        messages = [
            message for name in family for message in self._store.session_messages(name, first)
        ]
        messages.sort(key=lambda message: message.id)
        binds = [
            note for name in family for note in self._notes.notes("bind", session=name, after=after)
        ]
        # Of all sessions at once: only then do they come as they were noted, and one session after
        # another has no order in a set. One whose note the disk refused and kept all the same was
        # noted again.
        drafts = {
            note["token"]: note for note in self._notes.notes("draft") if note["session"] in family
        }
        gaps = self._notes.notes("gap", session=session)
        return News(
            mark=mark,
            fresh=fresh,
            messages=messages,
            binds=[
                Bind(note["id"], note["uid"], note["turn"])
                for note in sorted(binds, key=lambda note: note["seq"])
            ],
            forks=[fork for fork in forks if fork.child in family],
            drafts=_in_order([_draft(note) for note in drafts.values()]),
            gap=gaps[-1]["gap"] if gaps else "",
        )

    def commit(self, session: str, batch: Batch, since: object) -> bool:
        """Write a batch under the write lock, unless others have written of the family since the
        mark: then nothing, and False.

        Where the lock cannot be had in time the batch is kept by this process and written by
        whoever next has it.
        """
        assert isinstance(since, Mark)
        notes: list[dict[str, Any]] = [
            {"type": "bind", "session": session} | asdict(bind) for bind in batch.binds
        ]
        notes += [{"type": "settled", "session": session, "turn": token} for token in batch.settled]
        if batch.gap:
            notes.append({"type": "gap", "session": session, "gap": batch.gap})
        try:
            return (
                self._notes.commit(
                    session,
                    batch.entries,
                    notes,
                    still=lambda: self._is_still(session, since),
                    listed=batch.listed,
                )
                is not None
            )
        except LockTimeoutError as error:
            self._warn(
                f"{error}. What was said is kept aside and logged as soon as the lock is free"
            )
            if batch.entries:
                entries = [asdict(entry) for entry in batch.entries]
                self._notes.append_pending(
                    {
                        "type": "batch",
                        "session": session,
                        "first": since.messages,
                        "entries": entries,
                    }
                )
            return True

    def overdue(self, before: datetime) -> list[Draft]:
        """Turns begun before a moment, of any session, that are not in the log."""
        drafts = [_draft(note) for note in self._notes.notes("draft")]
        return [draft for draft in drafts if datetime.fromisoformat(draft.date) < before]

    # -- inside

    def _is_still(self, session: str, since: Mark) -> bool:
        """Whether nothing has come into the log of the family since the mark."""
        family = _family(session, self._forks(session))
        if (
            family != since.family
            or self._store.read(lambda index: index.generation()) != since.generation
        ):
            return False
        return not any(
            self._store.read(lambda index, name=name: index.session_spots(name, since.messages))  # type: ignore[misc]
            for name in family
        )

    def _forks(self, session: str) -> list[Fork]:
        """All forks among the sessions that hang together with this one."""
        seen: set[str] = set()
        forks: dict[tuple[str, str], Fork] = {}
        todo = {clean(session)}
        while todo:
            name = todo.pop()
            seen.add(name)
            for note in [
                *self._notes.notes("from", session=name),
                *self._notes.notes("from", key=name),
            ]:
                forks[note["session"], note["parent"]] = Fork(
                    note["session"], note["parent"], note["at"], frozenset(note["turns"])
                )
                todo |= {note["session"], note["parent"]} - seen
        return list(forks.values())


def _family(session: str, forks: list[Fork]) -> frozenset[str]:
    return frozenset({session} | {fork.child for fork in forks} | {fork.parent for fork in forks})


def _in_order(drafts: list[Draft]) -> list[Draft]:
    """Turns as they were begun.

    Those of one instance as they were noted, whatever its clock did; among instances by their
    dates.
    """
    times: dict[str, float] = {}
    last: dict[str, float] = {}
    for draft in drafts:
        times[draft.token] = last[draft.owner] = max(last.get(draft.owner, 0.0), draft.time)
    return sorted(drafts, key=lambda draft: times[draft.token])


def _draft(note: dict[str, Any]) -> Draft:
    names = ("token", "session", "text", "date", "author", "owner", "kind", "aside", "clue")
    return Draft(**{name: note[name] for name in names if name in note})
