"""The memories open in this process, shared by the providers that use them.

A host builds a provider for every agent and may drop one without a word; a gateway keeps hundreds.
Holds one ``Memory`` for each directory and way of use, counted by who has borrowed it, and closes
it when the last one is done. Nothing depends on there being only one: the package may be imported
under two names, and then there are two of these.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from ..memory import Memory


class _Key(NamedTuple):
    """What makes two providers share a memory.

    The process id: a forked child must not use its parent's threads and handles.
    """

    root: str
    compact: bool
    pid: int


class _Shared:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.borrowers = 0


_shared: dict[_Key, _Shared] = {}
_lock = threading.Lock()
_dropped: deque[Loan] = deque()


class Loan:
    """A memory as long as it is borrowed."""

    def __init__(self, key: _Key, memory: Memory) -> None:
        self.memory = memory
        self._key = key
        self._returned = False

    def give_back(self) -> None:
        """Return it; the last one to do so closes it. Again does nothing."""
        with _lock:
            finished = [self.count_back(), *_collect()]
        _close(finished)

    def count_back(self) -> Memory | None:
        """Take it off the count, under the lock; the memory if nobody has it any more."""
        if self._returned:
            return None
        self._returned = True
        shared = _shared[self._key]
        shared.borrowers -= 1
        if shared.borrowers:
            return None
        del _shared[self._key]
        return shared.memory


def borrow(root: Path, borrower: object, *, compact: bool) -> Loan:
    """The memory of a directory, until the loan is given back or ``borrower`` is gone.

    Raises:
        OptchatError: the memory cannot be opened.

    """
    key = _Key(os.path.realpath(root), compact, os.getpid())
    with _lock:
        finished = _collect()
        shared = _shared.get(key)
        if shared is None:
            shared = _shared[key] = _Shared(open_memory(root, compact=compact))
        shared.borrowers += 1
        loan = Loan(key, shared.memory)
    _close(finished)
    # Eviction drops a provider without shutdown. Its finalizer may run in any thread, in the middle
    # of anything, this lock held included: it only leaves a note for the next who passes.
    weakref.finalize(borrower, _dropped.append, loan).atexit = False
    return loan


def open_memory(root: Path, *, compact: bool) -> Memory:
    """The memory of a directory, with the model its profile has for lines.

    Raises:
        OptchatError: it cannot be opened.

    """
    from ..memory import Memory, load_settings
    from .model_client import model_of

    # The first to borrow decides for all: they have the directory, and so the profile, in common.
    return Memory.open(root, compact=compact, model=model_of(load_settings(root)[0], root.parent))


def _collect() -> list[Memory | None]:
    found: list[Memory | None] = []
    while _dropped:
        found.append(_dropped.popleft().count_back())
    return found


def _close(memories: list[Memory | None]) -> None:
    """Outside the lock: closing waits for a compactor's thread."""
    for memory in memories:
        if memory is not None:
            memory.close()
