"""What an agent could not log yet: notes the disk has refused, and turns that no list has shown.

Tried again with every list, because a disk is full for an hour and a lock held for a minute, and
the words of a person must outlast both. Called by ``capture.py``, which decides what is given up.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ..base.errors import OptchatError, StoreError
from .reconcile import unshown
from .store import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .open_turns import Draft
    from .session_records import SessionRecords
    from .store import CaptureStore

RETRIES_MAX: Final = 20
"""Times a batch is tried anew because other processes have written into its session meanwhile."""


class Spool:
    """Notes and turns of one agent that are still to be written."""

    def __init__(
        self,
        store: CaptureStore,
        platform: str,
        records_of: Callable[[str], tuple[SessionRecords, object]],
    ) -> None:
        """``records_of``: what the log holds of a session, and how much of it was read."""
        self._store = store
        self._platform = platform
        self._records_of = records_of
        self._notes: list[Callable[[], None]] = []
        self._turns: list[tuple[str, Sequence[Draft]]] = []
        # Not the lock of the capture, which may be held for seconds: a turn that begins must not
        # wait for a list that is being logged.
        self._lock = threading.Lock()

    def keep(self, note: Callable[[], None]) -> None:
        """Note something that no list shows, after what the disk has not taken before."""
        with self._lock:
            self._notes.append(note)
        self._write_notes()

    def leave(self, session: str, drafts: Sequence[Draft]) -> None:
        """Write down the turns of a session that is left; tried again where that fails."""
        try:
            self.write_down(session, drafts)
        except OptchatError:
            self._turns.append((session, drafts))
            raise

    def retry(self) -> None:
        """Write what could not be written, the oldest first.

        Raises: OptchatError: the disk still refuses it.
        """
        self._write_notes()
        while self._turns:
            self.write_down(*self._turns[0])
            self._turns.pop(0)

    def write_down(self, session: str, drafts: Sequence[Draft]) -> None:
        """Log turns that no list has shown, as they were announced.

        Raises: StoreError: others keep writing to the session, or the disk refuses it.
        """
        for _ in range(RETRIES_MAX):
            known, mark = self._records_of(session)
            drafts = [draft for draft in drafts if draft.token not in known.settled]
            told = [draft for draft in drafts if draft.text is not None]
            # A picture that was announced without words and never shown has none to write down.
            silent = [draft.token for draft in drafts if draft.text is None]
            entries = [unshown(draft, self._platform).entry for draft in told]
            batch = Batch(entries, settled=silent, listed=False)
            if not batch or self._store.commit(session, batch, mark):
                return
        raise StoreError(
            "cannot log what no list has shown: other processes keep writing to its session"
        )

    def _write_notes(self) -> None:
        with self._lock:
            notes, self._notes = self._notes, []
        while notes:
            try:
                notes[0]()
            except OptchatError:
                with self._lock:
                    self._notes = notes + self._notes
                raise
            notes.pop(0)
