"""The background thread that grows the tree: takes nodes that can be built, builds them, commits them in batches.

Knows neither files nor models: what to build comes from a ``Work``, how a costly line is written from a function. One compactor
works per memory directory; the others wait for its lock and take over when its owner is gone. It gives way to turns: in the same
process a busy thread would make each step of an append wait for the interpreter.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ..core.errors import OptchatError
from ..core.records import Node
from .local import leaf_line, merge_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.tree import Place

POLL_S: Final = 1.0
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
RETRY_S: Final = (1.0, 5.0, 15.0, 60.0)
URGENT_RETRY_S: Final = 0.2

logger = logging.getLogger(__name__)


class Job(NamedTuple):
    """One node to build. A leaf has its message's kind and text; a merge has no kind and the texts of its two halves."""

    place: Place
    kind: str
    sources: tuple[str, ...]
    source_bytes: int

    @property
    def source(self) -> str:
        """What stands for itself as a line, if it is short enough."""
        return "\n".join(self.sources) if self.place.level else f"{self.kind}: {self.sources[0]}"


class Work(Protocol):
    """What the compactor needs of a memory. Every method may raise ``OptchatError``: it is reported and tried again later."""

    def take(self, nodes: int, bytes_: int, *, free_only: bool) -> list[Job]:
        """The next jobs that can be done now, at most so many nodes and bytes of sources (but at least one if any)."""

    def commit(self, nodes: list[Node]) -> None:
        """Make nodes durable and visible."""

    def extend_search(self, bytes_: int) -> bool:
        """Make a few more messages searchable; whether there were any."""

    def rest(self) -> None:
        """Nothing is left to build for now."""

    def version(self) -> object:
        """Changes whenever any process has logged or built something."""


class LockLike(Protocol):
    """``storage.files.Lock``, as far as it is needed here."""

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock; whether it was had in time."""

    def release(self) -> None:
        """Give it back."""


class Options(NamedTuple):
    """How lines are made. ``summarize`` writes a line with a model; without it, or where it gives None, the line is local."""

    node_bytes: int = 512
    free_only: bool = False
    jobs: int = 4
    summarize: Callable[[Job], str | None] | None = None


class Compactor:
    """Builds nodes until none is ready; then sleeps until something is logged."""

    def __init__(self, work: Work, lock: LockLike, options: Options) -> None:
        self._work = work
        self._lock = lock
        self._options = options
        self._wake = threading.Condition()
        self._awake = False
        self._stopping = False
        self._urgent = 0
        self._last_logged = 0.0
        self._pool: ThreadPoolExecutor | None = None
        self._thread: threading.Thread | None = None
        self.owner = False
        self.last_error = ""
        self.failures = 0  # in a row

    # -- called by the memory

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
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def after_fork(self) -> None:
        """In a forked child: there is no thread yet; it starts with the first message the child has to say."""
        self._wake = threading.Condition()
        self._awake, self._urgent, self.owner = False, 0, False
        self._thread, self._pool = None, None

    def hurry(self, *, on: bool) -> None:
        """Give way to nobody while someone waits for the tree."""
        with self._wake:
            self._urgent += 1 if on else -1
            self._awake = True
            self._wake.notify_all()

    def run_here(self, keep_on: Callable[[], bool], *, on_step: Callable[[], None] = lambda: None) -> bool:
        """Do the work in the caller's thread until none is left; False if ``keep_on`` ended it or another process has the lock."""
        if not self._lock.acquire(0.0):
            return False
        self.hurry(on=True)
        try:
            while keep_on():
                if not self.step():
                    self._work.rest()
                    return True
                on_step()
            return False
        finally:
            self.hurry(on=False)
            self._lock.release()

    # -- the thread

    def _run(self) -> None:
        seen: object = None
        try:
            while not self._stopping:
                try:
                    self.owner = self.owner or self._lock.acquire(0.0)
                    if self.owner and (self._awake or self._work.version() != seen):
                        seen = self._work_off()
                    self._awake = self._awake and self.owner  # without the lock there is nothing to be awake for
                    self.failures = 0
                except Exception as error:  # the thread must live: it reports, waits, and tries again
                    seen = None
                    self._report(error)
                    self.failures += 1
                    self._pause(RETRY_S[min(self.failures, len(RETRY_S)) - 1])
                    continue
                self._sleep(POLL_S)
        finally:
            if self.owner:
                self.owner = False
                self._lock.release()

    def _work_off(self) -> object:
        """Build until nothing is ready; the version at which there was nothing, so that what came later is seen as new."""
        while True:
            self._give_way()
            self._awake = False
            version = self._work.version()
            if self._stopping:
                return version
            if not self.step():
                self._work.rest()
                return version

    def _sleep(self, seconds: float) -> None:
        with self._wake:
            if not self._stopping and not self._awake:
                self._wake.wait(seconds)

    def _pause(self, seconds: float) -> None:
        """Wait after a failure. New messages do not cut it short, or a full disk would be tried at each; someone who waits does."""
        until = time.monotonic() + seconds
        with self._wake:
            while not self._stopping and (rest := until - time.monotonic()) > 0:
                self._wake.wait(min(rest, URGENT_RETRY_S) if self._urgent else rest)
                if self._urgent:
                    return

    def _give_way(self) -> None:
        """Wait until the turn in progress is over, within reason."""
        until = time.monotonic() + PATIENCE_S
        while not self._stopping and not self._urgent:
            now = time.monotonic()
            rest = min(self._last_logged + QUIET_S, until) - now
            if rest <= 0:
                return
            with self._wake:
                self._wake.wait(rest)

    def _report(self, error: Exception) -> None:
        text = f"{error}" if str(error) else type(error).__name__
        if text != self.last_error:
            logger.warning("optchat: building lines failed and is tried again: %s", text, exc_info=not self.last_error)
        self.last_error = text

    # -- one step

    def step(self) -> bool:
        """Build and commit one batch, and make some messages searchable; whether anything was done."""
        share = 1 if self._urgent else 8
        jobs = self._work.take(NODES_AT_ONCE // share, BYTES_AT_ONCE // share, free_only=self._options.free_only)
        until = time.monotonic() + (URGENT_SLICE_S if self._urgent else SLICE_S)
        nodes: list[Node] = []
        costly: list[Job] = []
        for job in jobs:
            if nodes and (time.monotonic() > until or self._stopping):
                break
            if self._is_costly(job):
                costly.append(job)
            else:
                nodes.append(self._cheap(job))
        if nodes:
            self._work.commit(nodes)
        written = self._written(costly[: self._options.jobs])  # a call that fails must not take the others' lines with it
        if written:
            self._work.commit(written)
        built = bool(nodes or written)
        if built:
            self.last_error = ""
        searchable = self._searchable(BYTES_AT_ONCE // share // 4, built=built)
        if searchable:
            self.last_error = ""
        return built or searchable

    def _searchable(self, bytes_: int, *, built: bool) -> bool:
        try:
            return self._work.extend_search(bytes_)
        except OptchatError as error:
            if not built:
                raise
            self._report(error)  # the tree goes on being built; once it is done, this is raised
            return False

    def _is_costly(self, job: Job) -> bool:
        return self._options.summarize is not None and job.source_bytes > self._options.node_bytes

    def _cheap(self, job: Job) -> Node:
        """A free node, where the source is short enough to stand for itself, or a local line."""
        limit = self._options.node_bytes
        source = job.source
        if len(source) <= limit and len(source.encode()) <= limit:
            text, by = source, "free"
        else:
            text, by = self._local(job, limit)
        return Node(level=job.place.level, index=job.place.index, text=text, by=by)

    def _local(self, job: Job, limit: int) -> tuple[str, str]:
        try:
            if job.place.level == 0:
                return leaf_line(job.kind, job.sources[0], limit), "local"
            return merge_lines(job.sources[0], job.sources[1], limit), "local"
        except Exception:  # our own bug, met by one text: without this, nothing after that text would ever be built
            logger.exception("optchat: line %s was cut instead of summed up", job.place.address)
            return job.source[:limit].encode()[:limit].decode(errors="ignore"), "fallback"

    def _written(self, jobs: Sequence[Job]) -> list[Node]:
        """Lines written by the model, at most ``jobs`` calls at once."""
        if not jobs or self._options.summarize is None:
            return []
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._options.jobs, thread_name_prefix="optchat-line")
        texts = self._pool.map(self._options.summarize, jobs)
        return [
            self._cheap(job) if text is None else Node(level=job.place.level, index=job.place.index, text=text, by="model")
            for job, text in zip(jobs, texts, strict=True)
        ]
