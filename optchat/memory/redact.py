"""Redacts one message of a memory.

The order of the steps, so that it can be cut anywhere and be finished by doing it again.

The message's own line goes last of all that holds its words, because from it the words are known
that have to go; then a note says that it was done, which is how the next attempt knows that nothing
is left to do. Called by ``Memory.redact``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..base.errors import OptchatError
from ..base.record import Entry, Message
from ..log.redact import Redactor, clean_index
from ..log.redacted import NOTE, REDACTED
from ..tree import saved_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ..log.fulltext import Search
    from ..log.session_notes import NoteLog
    from ..log.store import Store
    from .mark import LogMark
    from .reports import RedactReport

logger = logging.getLogger(__name__)


def redact(
    id_: int, store: Store, notes: NoteLog, search: Search, *, mark: LogMark, views: Iterable[Path]
) -> RedactReport:
    """Take the words of message ``id_`` out of every file of the memory, and say what was done.

    ``mark``: what ``search`` tells the log by. ``views``: files of saved views.

    Raises:
        LockTimeoutError: another process kept the lock; nothing was done.
        StoreError: the disk refused; the same call may be made again.
    """
    redactor = Redactor(store, notes, id_)
    # Most of a long log is looked through while others may go on writing.
    redactor.scan(locked=False)
    lines = 0
    with store.locked(everything=True):
        notes.commit(
            "",
            [],
            [],
            # what processes that died had to keep back is logged first, or it would be logged
            # afterwards
        )
        redactor.scan(locked=True)
        before, after = redactor.message, redactor.redacted_message()
        already = redactor.noted and (before is None or REDACTED.startswith(before.text))
        if not already:
            _replace(search, id_, before, after)
            old_mark = mark()
            for path in views:
                saved_view.open_at(path, id_)
            lines = redactor.erase()
            if mark() != old_mark:
                search.follow_log(old_mark)
            # A compactor may have added the message between the two.
            _replace(search, id_, before, after)
            store.record([Entry(kind="note", text=NOTE.format(id_))])
    return {
        "id": id_,
        "already": already,
        "lines": lines,
        "same_words": redactor.others,
        "left_in": _left_in(store, search),
    }


def _replace(search: Search, id_: int, before: Message | None, after: Message | None) -> None:
    known = before is not None and not (before.text and REDACTED.startswith(before.text))
    search.replace(
        id_,
        before.text if before is not None and known else None,
        after.text if after else "",
        before.date if before else "",
    )


def _left_in(store: Store, search: Search) -> list[str]:
    """Names of the derived files that could not be rid of what was deleted in them."""
    cleanings: dict[str, Callable[[], bool]] = {
        "index.sqlite": lambda: clean_index(store),
        "search.sqlite": search.clean,
    }
    left = []
    for name, clean in cleanings.items():
        try:
            done = clean()
        except (
            OptchatError
        ) as error:  # the redaction itself is done; the user is told what to delete
            logger.warning("optchat: %s", error)
            done = False
        if not done:
            left.append(name)
    return left
