"""What one agent's session is to us: which memory, whether it may write, and what it is shown.

Holds the decisions made of what the host says about an agent, and the memory borrowed for it. Opens
it again where that failed before: one lock held at a bad moment must not cost a whole session.
Called by the provider.
"""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from ..base.errors import OptchatError
from . import config_json, shared_memories, state_db

if TYPE_CHECKING:
    from ..base.settings import Settings
    from ..capture.capture import Capture
    from ..memory import Memory

READ_ONLY: Final = frozenset({"cron", "subagent", "flush"})
"""Contexts and platforms whose words are a program's own: they may look, and leave nothing behind.
"""


class Session:
    """One agent, from ``initialize`` to ``shutdown``."""

    def __init__(self, session_id: str, options: dict[str, Any]) -> None:
        from ..memory import load_settings

        home = options.get("hermes_home")
        if not home:
            # Never a guess: with several profiles in one process the ambient one may be somebody
            # else's.
            raise OptchatError(
                "cannot tell where the memory is: the host did not say which profile this is "
                "(hermes_home)"
            )
        # A host that names no session still has one agent, whose lists go on from each other.
        self.id = f"unnamed-{uuid4().hex[:12]}"
        self.id = self.named(session_id)
        self.home = Path(home)
        self.root = config_json.memory_root(home)
        self.platform = str(options.get("platform") or "")
        self.author = str(options.get("user_name") or options.get("user_id") or "")
        self.settings: Settings = load_settings(self.root)[0]
        self.off = self.platform.lower() in {name.lower() for name in self.settings.platforms_off}
        # Host 0.19 calls every context primary, so that the platform must be asked as well.
        context = str(options.get("agent_context") or "primary")
        self.writes = not self.off and READ_ONLY.isdisjoint((context, self.platform))
        self._loan: shared_memories.Loan | None = None
        self._capture: Capture | None = None
        self._seen_to = self._compressed_to = 0
        self._closed = False
        self._lock = threading.Lock()

    def named(self, session_id: str) -> str:
        """The session a hook names, as it is written on disk, or this one.

        Half a character in its name would fail every question.
        """
        from ..base.json_line import clean

        return (clean(session_id) if isinstance(session_id, str) else "") or self.id

    @property
    def shows_view(self) -> bool:
        """Whether the view is put in front of the model."""
        return not self.off and self.settings.memory_mode != "tools"

    @property
    def has_tools(self) -> bool:
        """Whether the model may look closer."""
        return not self.off and self.settings.memory_mode != "context"

    def memory(self) -> Memory:
        """The memory, borrowed when first needed.

        Raises:
            OptchatError: it cannot be opened, or the session is over.

        """
        with self._lock:
            if self._closed:
                raise OptchatError("the memory was closed: this session has been shut down")
            if self._loan is None:
                self._loan = shared_memories.borrow(self.root, self, compact=self.writes)
            return self._loan.memory

    def capture(self) -> Capture:
        """What gets the host's lists into the memory, each message once."""
        from ..capture.capture import Capture

        memory = self.memory()
        with self._lock:
            if self._capture is None:
                parent_of = functools.partial(state_db.parent_of, self.home)
                self._capture = Capture(
                    memory.capture_store(),
                    session=self.id,
                    platform=self.platform,
                    parent_of=parent_of,
                )
            return self._capture

    def lines(self, max_chars: int) -> str:
        """Lines for what this session has said since its last compression, in at most ``max_chars``
        characters.
        """
        memory = self.memory()
        self._seen_to = int(memory.status()["messages"])
        return memory.lines(self._compressed_to, self._seen_to, max_chars, self.id)

    def compressed(self) -> None:
        """A compression is over: the next one is about what comes from here on.

        A new process begins at the session's start.
        """
        self._compressed_to = self._seen_to

    def close(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._closed, loan, self._loan = True, self._loan, None
        if loan is not None:
            loan.give_back()
