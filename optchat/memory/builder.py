"""How one memory's tree grows.

Joins the compactor to the store, the full text, and a model where there is one.

Decides, from the settings, which lines are made here and which a model writes; what is done when,
the compactor decides.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from ..base.cost import ALL, CHEAP, Cost
from ..base.errors import OptchatError, StoreError
from ..compaction.scheduler import BYTES_AT_ONCE, Compactor
from ..compaction.usage import Usage
from ..compaction.work import StoreWork
from ..log import files
from ..log.sqlite import DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime
    from pathlib import Path

    from ..base.settings import Settings
    from ..compaction.context import Context
    from ..compaction.model import Model
    from ..compaction.model_calls import ModelCalls
    from ..log.fulltext import Search
    from ..log.hidden import Hidden
    from ..log.store import Store
    from .reports import BuilderReport

NO_MODEL: Final = (
    "no model can be reached from here; lines are written while Hermes runs (summarizer: model)"
)

logger = logging.getLogger(__name__)


def costs_built(settings: Settings, *, model: bool) -> Collection[Cost]:
    """Which lines are made here.

    All without a model, the cheap ones beside one, and only free ones with compaction off.
    """
    if not settings.compact_enabled:
        return [Cost.FREE]
    return (
        CHEAP
        if settings.summarizer != "local" and (model or settings.summarizer == "model")
        else ALL
    )


class TreeBuilder:
    """The compactor of one memory, whether or not its thread runs."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        store: Store,
        search: Search,
        *,
        rested: Callable[[], None],
        clock: Callable[[], datetime],
        model: Model | None,
        threaded: bool,
        hidden: Callable[[], Hidden],
    ) -> None:
        self._root, self._settings, self._store, self._search = root, settings, store, search
        self._hidden = hidden
        self._threaded = threaded
        self._closed = threading.Event()
        self.costs = costs_built(settings, model=model is not None)
        # The lines that are not cheap are a model's to write, whether or not it is there.
        self._for_model = self.costs is CHEAP
        self._model = model if self._for_model else None
        self._lock = files.Lock(store.derived / "compactor.lock")
        self._usage = Usage(root, clock, redact=model.redact) if model else Usage(root, clock)
        self._work = StoreWork(store, search, rested, self._context(), hidden)
        self.compactor = Compactor(
            self._work,
            self._lock,
            settings.node_bytes,
            self.costs,
            on_lock_acquired=self._take_over,
            release_when_idle=self._for_model and self._model is None,
        )
        self._model_calls = self._new_model_calls()
        self.compactor.write_by(self._model_calls)

    def start(self) -> None:
        """Start the thread, where there is to be one."""
        if self._threaded:
            self.compactor.start()

    def make_searchable(self) -> None:
        """Build the full text that is missing here and now."""
        while self._search.indexed() < self._store.total():
            self._work.extend_search(BYTES_AT_ONCE)

    def nudge(self) -> None:
        """Something was logged."""
        if self._threaded:
            self.compactor.nudge()

    def close(self) -> None:
        """Stop the thread; calls in flight are left to themselves."""
        self._closed.set()
        self.compactor.stop()
        self._usage.close()

    def after_fork(self) -> None:
        """In a forked child: there is no compactor until it has something to say."""
        self._closed = threading.Event()
        self._lock.renew()
        self._usage.after_fork()
        self.compactor.after_fork()
        self._model_calls = self._new_model_calls()
        self.compactor.write_by(self._model_calls)

    def settle(
        self, timeout_s: float | None, progress: Callable[[str, int, int], None] | None
    ) -> bool:
        """See ``Memory.settle``."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        report = _Reporter(self._store, progress)

        def keep_on() -> bool:
            return not self._closed.is_set() and (until is None or time.monotonic() < until)

        self.compactor.set_urgent(on=True)
        failed = self.compactor.failures  # before anybody waited; what failed then may work now
        try:
            while keep_on():
                report()
                if self._settled():
                    return True
                failed = min(failed, self.compactor.failures)
                if self.compactor.failures > failed + 1:
                    raise StoreError(
                        f"cannot build lines: {self.compactor.last_error}", path=self._root
                    )
                ours = self._threaded and self.compactor.owner
                if ours:
                    self._closed.wait(0.01)
                elif not (ours := self.compactor.run_here(keep_on, on_step=report)):
                    self._closed.wait(0.05)  # another process is at work, or time is up
                if self._waits(ours=ours):
                    return False
        finally:
            self.compactor.set_urgent(on=False)
        return self._settled()

    @property
    def troubles(self) -> list[str]:
        """Why what the model costs is not on disk just now, if it is not."""
        return [self._usage.trouble] if self._usage.trouble else []

    def facts(self, messages: int) -> BuilderReport:
        """What ``Memory.status`` tells of it."""
        # Who only asks may not have the model that another process has.
        local = self._settings.summarizer == "local" or not self._settings.compact_enabled
        backlog = 0 if local else self._backlog(messages)
        name = self._model.name if self._model else ""
        model = self._usage.facts(
            name=name, backlog=backlog, jobs=self._settings.compact_jobs, messages=messages
        )
        if local:
            model["paused"] = ""
        elif self._for_model and self._model is None:
            model["paused"] = model["paused"] or NO_MODEL
        return {
            "summarizer": f"model {name}".strip() if self._for_model else "local",
            "compactor": self._place(),
            "last_error": self.compactor.last_error
            or (self._model_calls.last_error if self._model_calls else "")
            or model["last_error"],
            "model": model,
        }

    # -- inside

    def _backlog(self, messages: int) -> int:
        """Lines a model has still to write.

        Those that can be written now, and the merges above them, which cost as much again.
        """
        read = self._store.read
        if not read(lambda index: index.waiting(Cost.MODEL)):
            return 0
        missing = _whole(messages) - read(lambda index: index.count("nodes"))
        return max(1, missing - sum(read(lambda index, c=cost: index.waiting(c)) for cost in CHEAP))  # type: ignore[misc]

    def _context(self) -> Context | None:
        if self._model is None:
            return None
        from .model import context_of

        return context_of(self._store, self._root, self._model, self._hidden)

    def _new_model_calls(self) -> ModelCalls | None:
        if self._model is None:
            return None
        from .model import model_calls_of

        return model_calls_of(
            self._store,
            self._settings,
            self._work,
            self._model,
            self._usage,
            wake=self.compactor.wake,
            stopping=self._closed.is_set,
        )

    def _settled(self) -> bool:
        ready = self._store.read(
            lambda index: index.ready(1, ALL if self._for_model else self.costs)
        )
        busy = self._model_calls is not None and self._model_calls.busy
        return not ready and not busy and self._all_searchable()

    def _all_searchable(self) -> bool:
        """False also where the full text is damaged.

        The compactor makes it anew, and where it cannot, says why.
        """
        try:
            return self._search.indexed() >= self._store.total()
        except DamagedError:
            return False

    def _waits(self, *, ours: bool) -> bool:
        """Whether all that is left waits for a model that cannot be had.

        Waiting for the tree would be in vain.

        ``ours``: whether the work is done in this process, and not by another that may have a model
        of its own.
        """
        if self._store.read(lambda index: index.ready(1, CHEAP)) or not self._all_searchable():
            return False
        if self._for_model and self._model_calls is None:
            return True
        if not ours:
            return bool(self._usage.paused)
        return (
            self._model_calls is not None
            and bool(self._model_calls.paused)
            and not self._model_calls.busy
        )

    def _take_over(self) -> None:
        """Leave nothing as another process left it."""
        if self._model_calls is not None:
            # One of a process that has ended would be told for ever.
            self._usage.pause(self._model_calls.paused)
        try:
            self._store.recost()
        except (
            OptchatError
        ) as error:  # the lines are built all the same, by the settings there were
            logger.warning(
                "optchat: what waits to be summed up keeps the cost it had by older settings: %s",
                error,
            )

    def _place(self) -> str:
        if self.compactor.owner:
            return "this process"
        if not self._lock.acquire(0.0):
            return "another process"
        self._lock.release()
        return "none"


class _Reporter:
    """Tells how many lines are built of those the log will have."""

    def __init__(self, store: Store, progress: Callable[[str, int, int], None] | None) -> None:
        self._store = store
        self._progress = progress
        self._next = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if self._progress is None or now < self._next:
            return
        self._next = now + 0.2
        total = self._store.total()
        self._progress("lines", self._store.read(lambda index: index.count("nodes")), _whole(total))


def _whole(total: int) -> int:
    """The nodes of a whole tree over so many messages."""
    return sum(total >> level for level in range(total.bit_length()))
