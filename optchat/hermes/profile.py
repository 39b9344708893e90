"""The profile a piece of work belongs to: its home, its keys, and the host's own context for it.

One process may serve several profiles. The host keeps what tells them apart in context variables,
and a plain thread starts without any: it would read the configuration and the keys of whichever
profile the process was started for. Called by ``model_client.py``.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Profile:
    """One profile, as it was in force where this object was made."""

    def __init__(self, home: str | Path) -> None:
        self.home = Path(home)
        self._context = contextvars.copy_context()

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Within this, in whatever thread, the host reads this profile's configuration and keys."""
        import hermes_constants

        token = hermes_constants.set_hermes_home_override(str(self.home))
        try:
            with self._keys():
                yield
        finally:
            hermes_constants.reset_hermes_home_override(token)

    @property
    def is_foreign(self) -> bool:
        """Whether this is another profile than the one the process was started for, or may be.

        The host serves several.
        """
        import hermes_constants
        from agent import secret_scope

        own = hermes_constants.get_process_hermes_home()
        return bool(secret_scope.is_multiplex_active()) or os.path.realpath(
            own
        ) != os.path.realpath(self.home)

    def spawn(self, run: Callable[[], None], name: str) -> None:
        """Run something in a daemon thread that has a copy of the context this object was made in.

        Newer hosts want it done by a function of theirs, which binds whatever else they may come to
        keep in a context.
        """
        self._context.copy().run(_start, run, name)

    @contextlib.contextmanager
    def _keys(self) -> Iterator[None]:
        """The profile's own keys, read anew: those of the context may be days old.

        In its own process they are the environment's.
        """
        from agent import secret_scope

        if not self.is_foreign:
            yield
            return
        token = secret_scope.set_secret_scope(secret_scope.build_profile_secret_scope(self.home))
        try:
            yield
        finally:
            secret_scope.reset_secret_scope(token)


def key_of(name: str) -> str:
    """A key by the name of its environment variable, as the profile in force has it.

    Empty where it has none.
    """
    from agent import secret_scope

    return str(secret_scope.get_secret(name) or "")


def _start(run: Callable[[], None], name: str) -> None:
    """A thread under a copy of the context in force here."""
    thread: Any
    try:
        from agent.memory_provider import spawn_context_thread
    except ImportError:
        thread = threading.Thread(
            target=contextvars.copy_context().run, args=(run,), name=name, daemon=True
        )
    else:
        thread = spawn_context_thread(run, name=name)
    thread.start()
