"""The background thread that grows the tree.

Takes nodes that can be built, builds them, commits them in batches.

Knows neither files nor models: what to build comes from ``work.py``, the lines of a model come from
``model_calls.py``. One compactor works per memory directory; the others wait for its lock and take
over when its owner is gone. It gives way to turns: in the same process a busy thread would make
each step of an append wait for the interpreter.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from ..base.cost import ALL
from ..base.errors import OptchatError
from .local import local_node

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..base.cost import Cost
    from ..base.record import Node
    from ..log.files import Lock
    from .model_calls import ModelCalls
    from .work import StoreWork

POLL_S: Final = 1.0
"""Longest sleep: what other processes log is not told to this one, and is seen when it looks again.
"""
LEAST_S: Final = 0.02
"""Shortest sleep: what is due may not be possible yet, and must not be looked for in circles."""
QUIET_S: Final = 0.1
"""A turn is over when nothing was logged for this long."""
PATIENCE_S: Final = 2.0
"""Longest the compactor gives way to a stream of turns that never pauses."""
SLICE_S: Final = 0.05
"""Longest it works before it looks again whether a turn has begun, or whether it has to stop."""
URGENT_SLICE_S: Final = 1.0
"""The same while somebody waits for the tree: longer, so that one fsync serves more nodes."""
NODES_AT_ONCE: Final = 2_048
BYTES_AT_ONCE: Final = 16 << 20
"""Most nodes and bytes of sources in one batch while somebody waits for the tree.

Otherwise an eighth of it.
"""
RETRY_S: Final = (1.0, 5.0, 15.0, 60.0)
"""Waits after one failure, two in a row, and so on; the last one for all that follow."""
URGENT_RETRY_S: Final = 0.2
"""The wait after a failure while somebody waits for the tree."""

logger = logging.getLogger(__name__)


class Compactor:
    """Builds nodes until none is ready; then sleeps until something is logged."""

    def __init__(
        self,
        work: StoreWork,
        lock: Lock,
        node_bytes: int = 512,
        costs: Collection[Cost] = ALL,
        *,
        on_lock_acquired: Callable[[], None] = lambda: None,
        release_when_idle: bool = False,
    ) -> None:
        """``costs``: of the lines made here, in this thread, and not by model calls.

        ``on_lock_acquired``: told whenever the work is ours. ``release_when_idle``: without the
        model that others may have, the work is never kept from them for long.
        """
        self._work = work
        self._lock = lock
        self._node_bytes = node_bytes
        self._costs = costs
        self._model_calls: ModelCalls | None = None
        self._on_lock_acquired, self._release_when_idle = on_lock_acquired, release_when_idle
        self._written: list[Node] = []  # by the model, and not on disk yet
        self._wake = threading.Condition()
        self._awake = False
        self._stopping = False
        self._urgent = 0
        self._last_logged = 0.0
        self._thread: threading.Thread | None = None
        self.owner = False
        self.last_error = ""
        self.failures = 0  # in a row

    # -- called by the memory

    def write_by(self, model_calls: ModelCalls | None) -> None:
        """Have the lines that cost a model's words written by these calls; None: by nobody here."""
        self._model_calls = model_calls

    def start(self) -> None:
        """Start the thread, or start it again if it has died."""
        with self._wake:
            if self._stopping or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._run, name="optchat-compactor", daemon=True)
            self._thread.start()

    def nudge(self) -> None:
        """Something was logged: there will be work once the turn is over."""
        self._last_logged = time.monotonic()
        with self._wake:
            if not self._awake:
                self._awake = True
                self._wake.notify_all()
        if self._thread is None or not self._thread.is_alive():
            self.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread; a node being built is left for the next process."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def wake(self) -> None:
        """A model's call is back."""
        with self._wake:
            self._awake = True
            self._wake.notify_all()

    def after_fork(self) -> None:
        """In a forked child.

        There is no thread yet; it starts with the first message the child has to say.
        """
        self._wake = threading.Condition()
        self._awake, self._urgent, self.owner = False, 0, False
        self._written = []
        self._thread = None

    def set_urgent(self, *, on: bool) -> None:
        """Give way to nobody while someone waits for the tree."""
        with self._wake:
            self._urgent += 1 if on else -1
            self._awake = True
            self._wake.notify_all()

    def run_here(
        self, keep_on: Callable[[], bool], *, on_step: Callable[[], None] = lambda: None
    ) -> bool:
        """Do the work in the caller's thread until none is left.

        False if ``keep_on`` ended it or another process has the lock.
        """
        if not self._lock.acquire(0.0):
            return False
        self.set_urgent(on=True)
        try:
            self._on_lock_acquired()
            while keep_on():
                self._awake = False
                if not self.step():
                    if not (self._model_calls and self._model_calls.busy):
                        self._work.rest()
                        return True
                    self._sleep(max(LEAST_S, min(URGENT_RETRY_S, self._due_in())))
                on_step()
            return False
        finally:
            self.set_urgent(on=False)
            self._leave()

    # -- the thread

    def _run(self) -> None:
        seen: object = None
        try:
            while not self._stopping:
                try:
                    if not self.owner and self._lock.acquire(0.0):
                        self.owner = True
                        self._on_lock_acquired()
                    if self.owner and (
                        self._awake or self._work.version() != seen or self._due_in() <= 0
                    ):
                        seen = self._work_off()
                    if self.owner and self._release_when_idle:
                        self._leave()
                    # Without the lock there is nothing to be awake for.
                    self._awake = self._awake and self.owner
                    self.failures = 0
                except (
                    Exception
                ) as error:  # the thread must live: it reports, waits, and tries again
                    seen = None
                    self._report(error)
                    self.failures += 1
                    self._pause(RETRY_S[min(self.failures, len(RETRY_S)) - 1])
                    continue
                # the thread ends; till the next message starts another, only this says why
                except BaseException as error:
                    self._report(error)
                    raise
                self._sleep(max(LEAST_S, min(POLL_S, self._due_in())))
        finally:
            if self.owner:
                self._leave()

    def _work_off(self) -> object:
        """Build until nothing is ready.

        The version at which there was nothing, so that what came later is seen as new.
        """
        while True:
            self._yield_to_turns()
            self._awake = False
            version = self._work.version()
            if self._stopping:
                return version
            if not self.step():
                self._work.rest()
                return version

    def _leave(self) -> None:
        """Give the work up.

        What calls have brought back since the last step is kept: it is paid for.
        """
        try:
            self._keep_written()
        # nobody is left here to try again; whoever is next has these lines written once more
        except Exception as error:
            logger.warning("optchat: lines that a model wrote are lost: %s", error)
        self.owner = False
        self._lock.release()

    def _due_in(self) -> float:
        return self._model_calls.due_in() if self._model_calls and self.owner else POLL_S

    def _sleep(self, seconds: float) -> None:
        with self._wake:
            if not self._stopping and not self._awake:
                self._wake.wait(seconds)

    def _pause(self, seconds: float) -> None:
        """Wait after a failure.

        New messages do not cut it short, or a full disk would be tried at each; someone who waits
        does.
        """
        until = time.monotonic() + seconds
        with self._wake:
            while not self._stopping and (rest := until - time.monotonic()) > 0:
                self._wake.wait(min(rest, URGENT_RETRY_S) if self._urgent else rest)
                if self._urgent:
                    return

    def _yield_to_turns(self) -> None:
        """Wait until the turn in progress is over, within reason."""
        until = time.monotonic() + PATIENCE_S
        while not self._stopping and not self._urgent:
            now = time.monotonic()
            rest = min(self._last_logged + QUIET_S, until) - now
            if rest <= 0:
                return
            with self._wake:
                self._wake.wait(rest)

    def _report(self, error: BaseException) -> None:
        text = f"{error}" if str(error) else type(error).__name__
        if text != self.last_error:
            logger.warning(
                "optchat: building lines failed and is tried again: %s",
                text,
                exc_info=not self.last_error,
            )
        self.last_error = text

    # -- one step

    def step(self) -> bool:
        """Build and commit one batch, keep what the model has written, and make some messages
        searchable; whether anything was done.
        """
        share = 1 if self._urgent else 8
        # raises before a call is begun: with a full disk the same lines would be bought without end
        written = self._keep_written()
        made = self._made(share)
        if made:
            self._work.commit(made)
        built = bool(made) or written
        if self._model_calls:
            self._model_calls.start()
        if built:
            self.last_error = ""
        searchable = self._searchable(BYTES_AT_ONCE // share // 4, built=built)
        if searchable:
            self.last_error = ""
        return built or searchable

    def _keep_written(self) -> bool:
        """Commit what the model has written; whether there was anything.

        What the disk refuses is kept here until it does not.
        """
        if self._model_calls:
            self._written += self._model_calls.collect()
        if not self._written:
            return False
        try:
            # A commit of its own: its tokens are spent, and must not be lost with a local line that
            # fails.
            self._work.commit(self._written)
        except OptchatError:
            raise
        except (
            BaseException
        ):  # not the disk's fault: tried again without end, they would stop the tree
            self._written = []
            raise
        self._written = []
        return True

    def _made(self, share: int) -> list[Node]:
        """The lines made here.

        As many as there is time for before someone may want the interpreter.
        """
        jobs = self._work.take(NODES_AT_ONCE // share, BYTES_AT_ONCE // share, self._costs)
        until = time.monotonic() + (URGENT_SLICE_S if self._urgent else SLICE_S)
        nodes: list[Node] = []
        for job in jobs:
            if nodes and (time.monotonic() > until or self._stopping):
                break
            nodes.append(local_node(job, self._node_bytes))
        return nodes

    def _searchable(self, bytes_: int, *, built: bool) -> bool:
        try:
            return self._work.extend_search(bytes_)
        except OptchatError as error:
            if not built:
                raise
            self._report(error)  # the tree goes on being built; once it is done, this is raised
            return False
