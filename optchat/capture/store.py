"""What capture needs of the disk, as a protocol.

``disk.py`` is the real one; tests bring a simple one of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ..base.record import Entry, Message
    from .open_turns import Draft
    from .reconcile import Bind
    from .session_records import Fork


@dataclass(slots=True)
class News:
    """What has come about a session and its branches since a mark.

    ``fresh``: not since the mark but altogether, because what was read before no longer holds.
    ``drafts``: all turns begun and not known to be settled; those the log holds are among them.
    ``gap``: the last summary noted. ``mark``: to be given the next time.
    """

    mark: object
    fresh: bool
    messages: list[Message] = field(default_factory=list)
    binds: list[Bind] = field(default_factory=list)
    forks: list[Fork] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    gap: str = ""


@dataclass(slots=True)
class Batch:
    """Entries and capture lines that belong together.

    ``settled``: turns that leave no entry of their own. ``listed``: they come of a host's list,
    which shows again what could not be written before.
    """

    entries: list[Entry] = field(default_factory=list)
    binds: list[Bind] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    gap: str = ""
    listed: bool = True

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.entries or self.binds or self.settled or self.gap)


class CaptureStore(Protocol):
    """The disk, as capture sees it. Any number of these, in any process, may work on one memory."""

    def now(self) -> datetime:
        """Local time with zone."""
        ...

    def begin(self, draft: Draft) -> None:
        """Keep a turn that has begun; durable when this returns. Waits for no other process.

        Raises:
            StoreError: it could not be kept.

        """
        ...

    def fork(
        self, child: str, parent: str, turns: Sequence[str], *, whole: bool, at: int | None = None
    ) -> None:
        """Note that a session goes on from another.

        From a copy of it as it is now or as it was before message ``at``, or (``whole``) from all
        of it, whatever comes.
        """
        ...

    def sessions_with(self, uids: Sequence[str], texts: Sequence[str]) -> list[str]:
        """Sessions that hold messages with these host ids or words of the user's, most first.

        Then those in which a turn that is open yet began with such words.
        """
        ...

    def news(self, session: str, since: object | None) -> News:
        """What the log and the capture lines hold about a session's family, beyond what ``since``
        covers.
        """
        ...

    def commit(self, session: str, batch: Batch, since: object) -> bool:
        """Write a batch under the write lock, unless others have written of the family since the
        mark: then nothing, and False.

        Where the lock cannot be had in time the batch is kept by this process and written by
        whoever next has it.

        Raises:
            StoreError: nothing was written; the same call may be made again.
        """
        ...

    def overdue(self, before: datetime) -> list[Draft]:
        """Turns begun before a moment, of any session, that are not in the log."""
        ...
