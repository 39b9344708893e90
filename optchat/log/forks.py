"""Forks of this process.

Whoever holds databases or locks is told before and after, so that a child can go on with what it
inherits.

A child that simply used them would hang on a mutex of a thread it does not have, or damage a
database: SQLite remembers in memory which locks a process holds, and a child holds none of them.
Programs started afresh (``subprocess``) are not concerned.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final, Protocol

WAIT_S: Final = 5.0
"""Longest a fork waits for what another thread is just doing with one of our locks."""


class Forkable(Protocol):
    """What wants to be told."""

    def before_fork(self) -> None:
        """Close what cannot be inherited, and let nobody open it again."""

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent or as the child, where no other thread is left."""


class _Watched:
    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.all: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self.paused: list[Forkable] = []

    def before(self) -> None:
        self.mutex.acquire()
        self.paused = list(self.all)
        for one in self.paused:
            one.before_fork()

    def after(self, *, child: bool) -> None:
        paused, self.paused = self.paused, []
        for one in paused:
            one.after_fork(child=child)
        if child:
            self.mutex = threading.Lock()
        else:
            self.mutex.release()


_watched: Final = _Watched()


def watch(one: Forkable) -> None:
    """Tell it of forks from now on, for as long as it lives."""
    with _watched.mutex:
        _watched.all.add(one)


def forget(one: Forkable) -> None:
    """Tell it no more."""
    with _watched.mutex:
        _watched.all.discard(one)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_watched.before,
        after_in_parent=lambda: _watched.after(child=False),
        after_in_child=lambda: _watched.after(child=True),
    )
