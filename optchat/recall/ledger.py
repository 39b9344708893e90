"""What stands in front of the model already, session by session, so that nothing is sent twice.

The host keeps every block a provider returns in that turn's user message and sends it again with each later request: a view a turn
is five views after five turns. So a context (a session between two compressions) is shown the view once. What we handed over is not
yet what the model has: the host may drop a block (a time-out, an interrupted turn merged with the next). The message list it shows
after a turn is the only proof, and corrects what is kept here.
"""

from __future__ import annotations

import logging
import re
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ..core.errors import OptchatError
from ..core.render import HEAD
from .added import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..storage.notes import NoteLog
    from .added import Added

PROOF_WAIT_S: Final = 0.3
"""Longest a turn waits for the list of the turn before, where a block without proof may have been dropped by the host."""

_FIRST_LINE: Final = HEAD.partition("\n")[0]
_LAST_ADDRESS: Final = re.compile(r"^(\d{1,15})\+(\d{1,15})\|", re.MULTILINE)


logger = logging.getLogger(__name__)


class Shown(NamedTuple):
    """The view a session has in front of it: of the log up to message ``up_to``; ``undone`` turns were taken back since."""

    up_to: int
    undone: int = 0


class ShownLog(Protocol):
    """Where the ledger outlives a process."""

    def shown(self, session: str) -> Shown | None:
        """What this session had in front of it when this was last noted; None for nothing."""

    def note_shown(self, session: str, shown: Shown | None) -> None:
        """Note it, for whoever goes on with the session."""


class ShownNotes:
    """The ledger's share of the notes on disk."""

    def __init__(self, notes: NoteLog) -> None:
        self._notes = notes

    def shown(self, session: str) -> Shown | None:
        """The last that was noted of this session."""
        noted = self._notes.notes("shown", session=session)
        return Shown(noted[-1]["up_to"], noted[-1]["undone"]) if noted and noted[-1]["up_to"] is not None else None

    def note_shown(self, session: str, shown: Shown | None) -> None:
        """Jot it down. Should it be lost, a session is shown its view once more, or once too late: no reason to disturb a turn."""
        note = {"type": "shown", "session": session, "up_to": shown.up_to if shown else None, "undone": shown.undone if shown else 0}
        try:
            self._notes.jot(note)
        except OptchatError as error:
            logger.warning("optchat: cannot note what was shown: %s", error)


class AddedNotes:
    """The share of the notes on disk of what later turns have added."""

    def __init__(self, notes: NoteLog) -> None:
        self._notes = notes

    def added(self, session: str) -> Standing:
        """The last that was noted of this session."""
        noted = self._notes.notes("added", session=session)
        return Standing(noted[-1]["spent"], noted[-1]["news_to"], frozenset(noted[-1]["ids"])) if noted else Standing()

    def note_added(self, session: str, standing: Standing) -> None:
        """Jot it down. Should it be lost, a message may be shown a second time: no reason to disturb a turn."""
        note = {"type": "added", "session": session, "spent": standing.spent, "news_to": standing.news_to, "ids": sorted(standing.ids)}
        try:
            self._notes.jot(note)
        except OptchatError as error:
            logger.warning("optchat: cannot note what was shown: %s", error)


class _Context:
    """One session as this process knows it."""

    def __init__(self, shown: Shown | None) -> None:
        self.shown = shown
        self.offered: int | None = None
        self.floor = 0  # views of an older log than this are remains of what the host has compressed
        self.proof = threading.Event()


class Ledger:
    """Decides whether a session is due the view. Safe to use from several threads."""

    def __init__(self, log: ShownLog, added: Added | None = None) -> None:
        """``added``: what the later turns of a context have put in front of the model, which follows the same lists."""
        self._log = log
        self._added = added
        self._contexts: dict[str, _Context] = {}
        self._mutex = threading.Lock()

    def is_due(self, session: str, *, kept: bool) -> bool:
        """Whether the view has to be shown now.

        ``kept``: this host keeps the block of a turn that broke off. The other one merges such a turn with the next and drops
        it, so that a block without proof is given a moment for the proof to come, and is then taken for lost.
        """
        context = self._context(session)
        if context.offered is not None and not kept:
            context.proof.wait(PROOF_WAIT_S)
        with self._mutex:
            if context.offered is not None:
                return not kept
            return context.shown is None

    def offered(self, session: str, up_to: int) -> None:
        """The view of the log up to ``up_to`` was handed to the host."""
        context = self._context(session)
        with self._mutex:
            context.offered = up_to
            context.proof.clear()

    def seen(self, session: str, messages: Iterable[Any]) -> None:
        """The host's list after a turn: what is in it is in front of the model, what is not is not."""
        messages = list(messages)
        if self._added is not None:
            self._added.seen(session, texts_in(messages))
        context = self._context(session)
        with self._mutex:
            found = max((up_to for up_to in views_in(messages) if up_to >= context.floor), default=None)
            before = context.shown
            if found is None:
                context.shown = None
            elif before is None or before.up_to != found:
                context.shown = Shown(found)
            context.offered = None
            context.proof.set()
            after = context.shown
        if after != before:
            self._log.note_shown(session, after)

    def compressed(self, session: str, total: int) -> None:
        """The host has summed up its list: the next turn needs a view that holds what went."""
        if self._added is not None:
            self._added.compressed(session)
        self._set(session, None, floor=total)

    def undone(self, session: str, turns_since: int) -> None:
        """The last turn was taken back; ``turns_since`` user messages of this session were logged since its view was rendered.

        Only if no turn is left since then was the view taken back with it.
        """
        shown = self._context(session).shown
        if shown is not None:
            left = turns_since - shown.undone - 1
            self._set(session, Shown(shown.up_to, shown.undone + 1) if left > 0 else None)

    def branched(self, parent: str, session: str) -> None:
        """A session begins with the messages of another, the view among them."""
        if self._added is not None:
            self._added.branched(parent, session)
        self._set(session, self._context(parent).shown)

    def shown(self, session: str) -> Shown | None:
        """The view this session has in front of it."""
        return self._context(session).shown

    def up_to(self, session: str) -> int:
        """The messages before this one are in the view the session was shown, or was last offered."""
        context = self._context(session)
        with self._mutex:
            return max(context.shown.up_to if context.shown else 0, context.offered or 0)

    # -- inside

    def _context(self, session: str) -> _Context:
        with self._mutex:
            if session in self._contexts:
                return self._contexts[session]
        shown = self._log.shown(session)
        with self._mutex:
            return self._contexts.setdefault(session, _Context(shown))

    def _set(self, session: str, shown: Shown | None, floor: int | None = None) -> None:
        context = self._context(session)
        with self._mutex:
            before, context.shown, context.offered = context.shown, shown, None
            if floor is not None:
                context.floor = floor
        if shown != before:
            self._log.note_shown(session, shown)


def views_in(messages: Iterable[Any]) -> Iterator[int]:
    """For every whole view in a host's message list, up to which message of the log it reaches."""
    for text in texts_in(messages):
        for block in text.split(_FIRST_LINE)[1:]:
            addresses = _LAST_ADDRESS.findall(block.partition("\n</chat>")[0])
            if addresses:
                yield int(addresses[-1][0]) + int(addresses[-1][1])


def texts_in(messages: Iterable[Any]) -> Iterator[str]:
    """What a host sends to the model of its list where blocks of ours may stand: with the messages of the user."""
    for message in messages:
        if isinstance(message, dict) and message.get("role") == "user":
            yield from _texts(message)


def _texts(message: dict[str, Any]) -> Iterator[str]:
    """What is sent to the model for one message, as far as it is text."""
    sent = message.get("api_content") or message.get("content")
    if isinstance(sent, str):
        yield sent
    elif isinstance(sent, list):
        for part in sent:
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str):
                yield text
