"""One memory directory's lock and its index, kept in step with the day files.

Whatever the index missed (a crash in between, another writer, a disk too full for it) is taken in
at the next lock; an index that cannot be trusted is made anew. ``store.py`` builds on it and knows
what is written; this knows only how it is found again.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ..base.cost import Costs
from ..base.errors import LockTimeoutError, OptchatError, StoreError
from ..base.json_line import BadLineError
from ..base.record import decode_message
from . import files, forks, reads
from .day_files import DayLog, names_near
from .format import UPGRADE, keep_format, why_only_read
from .index import Index
from .loader import CLAIM_BYTES, Loader, id_of
from .sqlite import DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from ..base.address import Place
    from ..base.record import Message
    from .rows import State

LOCK_WAIT_S: Final = 5.0
"""Longest anybody waits for the write lock, unless asked to wait less.

A turn that did not get it is kept aside (``session_notes.py``).
"""
_OPEN_WAIT_S: Final = 1.0
"""The same while the index is opened, which also goes on without the lock."""
_AFTER_MAX: Final = 1 << 20
"""Bytes read behind the newest message that the index knows, to see whether the file holds a newer
one.
"""

T = TypeVar("T")
logger = logging.getLogger(__name__)


class End(NamedTuple):
    """Where an index ends.

    Its generation and messages, and the bytes known of the day file with the newest one ("":
    whatever).
    """

    generation: int
    total: int
    name: str
    known: int


class Upkeep:
    """The lock and the index of a directory. Any number of these, in any process, may share one."""

    def __init__(
        self,
        root: Path,
        *,
        clock: Callable[[], datetime],
        progress: Callable[[str, int, int], None] | None = None,
        costs: Costs | None = None,
    ) -> None:
        self.root = root
        self._costs = costs or Costs()
        self.clock = clock
        self._progress = progress or (lambda _what, _done, _total: None)
        self.main, self.tree = DayLog(root / "main"), DayLog(root / "tree")
        self.read_only = why_only_read(root)
        # What is derived from the truth, and may be made anew at any time.
        self.derived = files.make_scratch() if self.read_only else root
        self._make_dirs()
        self.lock = files.Lock(self.derived / "write.lock")
        self._mutex = threading.Lock()
        self._frozen = False
        self._holder = 0  # the thread that holds the lock
        self._closed = False
        self._suspect = False  # the index was found damaged; it is made anew at the next lock
        # Under the lock: also where the index could not follow, no number is given twice.
        self._next_id = 0
        self._last = ""  # under the lock: the day file the index says was last written to
        self._end = End(0, 0, "", 0)  # how the index stood when it was last seen to end right
        self._near_names = 0, ("", "", "")
        self._torn: dict[
            tuple[str, str], tuple[int, int]
        ] = {}  # (size, known) of day files that end in a torn line
        self._failed: list[Message] = []  # the last batch, if it could not be written
        self._retired: list[Index] = []
        self._texts: dict[Place, str] = {}
        self._texts_of = 0  # how often lines had been rewritten when these were read
        self._index_path = self.derived / "index.sqlite"
        self._generation = 0
        self._index = self._open_index()
        try:
            self._follow_log()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the index; what is acknowledged is on disk already."""
        self._closed = True
        for index in (*self._retired, self._index):
            index.close()
        if self.derived != self.root:
            files.remove_scratch(self.derived)

    def must_be_writable(self) -> None:
        """Guard of everything that adds to the truth or changes it.

        Raises:
            StoreError: this memory is only read here.
        """
        if self.read_only:
            raise StoreError(
                f"cannot write to {self.root}: {self.read_only}", path=self.root, hint=UPGRADE
            )

    def before_fork(self) -> None:
        """Let nobody be in the middle of something when this process forks.

        The child would find it half done for ever.
        """
        self._frozen = self._holder != threading.get_ident() and self._mutex.acquire(
            timeout=forks.WAIT_S
        )
        for index in (*self._retired, self._index):
            index.before_fork()

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent or as the child."""
        for index in (*self._retired, self._index):
            index.after_fork(child=child)
        if child:
            self._mutex, self._holder = threading.Lock(), 0
            self.lock.renew()
        elif self._frozen:
            self._mutex.release()

    @contextlib.contextmanager
    def locked(self, *, timeout_s: float = LOCK_WAIT_S, everything: bool = False) -> Iterator[None]:
        """Hold the write lock, with all that others have written taken in.

        ``everything``: compare every day file, not only those an append can have touched.
        """
        if (
            self._holder == threading.get_ident()
        ):  # a block inside finds the index gone, and would wait for itself
            if everything or self._failed:
                self._catch_up(everything=everything)
            yield
            return
        until = time.monotonic() + timeout_s
        if not self._mutex.acquire(timeout=timeout_s):
            raise LockTimeoutError(
                f"cannot write to {self.root}: another thread has been writing for {timeout_s:g} s",
                path=self.root,
            )
        try:
            with self.lock.held(max(0.0, until - time.monotonic())):
                self._holder = threading.get_ident()
                self._catch_up(everything=everything)
                yield
        finally:
            self._holder = 0
            self._mutex.release()

    def read(self, question: Callable[[Index], T]) -> T:
        """Ask the index, healing it first if it is missing, damaged, or was replaced by another
        process.
        """
        self._must_be_open()
        if (
            reads.identity_of(self._index_path) != self._index.identity
            or not self._index.ok
            or self._suspect
        ):
            with self.locked(everything=True):
                pass
        try:
            return question(self._index)
        except DamagedError as error:
            self.rebuild_if_stale(str(error))
            return question(self._index)

    def total(self) -> int:
        """How many messages the log holds."""
        return self.read(Index.total)

    def update_index(self, write: Callable[[Index], object]) -> None:
        """Describe in the index, under the write lock and as one transaction, what is durable
        already.

        Failing here must not fail the append: the caller would say it again.
        """
        try:
            with self._index.transaction():
                write(self._index)
        except DamagedError as error:
            logger.warning("optchat: %s", error)
            self._suspect = True
        except OptchatError as error:
            logger.warning("optchat: the index is behind and will catch up: %s", error)
        except (
            Exception
        ):  # whatever a damaged index makes us stumble over: the index is made anew from the log
            logger.exception("optchat: the index could not follow and is made anew")
            self._suspect = True

    def rebuild_if_stale(self, why: str) -> None:
        """Rebuild the index, unless another process has just done so and we only remembered its old
        numbers.
        """
        trusted = self._generation
        with self.locked(everything=True):
            if self._generation == trusted:
                logger.warning("optchat: rebuilding %s: %s", self._index_path, why)
                self._rebuild()

    def rebuild_index(self) -> None:
        """Make the index anew from the day files."""
        with self.locked():
            self._rebuild()

    def recost(self) -> None:
        """Give what is ready the costs it has by our settings.

        A backlog would else be bought for kinds that were just taken out of them.

        O(N), but only where they have changed.
        """
        if not self.read(lambda index: index.has_our_costs()):
            with self.locked():
                self.update_index(lambda index: index.rebuild_ready())

    # -- inside

    def _announce(self, name: str) -> None:
        """Before messages are written to another day file than the last: say so to all.

        Should this process die between writing them and telling the index, others look for them
        there, by whatever clock the file was chosen. They would give their numbers to other
        messages else.
        """
        if name != self._last:
            self.update_index(lambda index: index.set_last(name))
            self._last = name

    def _must_be_open(self) -> None:
        if self._closed:
            raise StoreError(f"cannot use {self.root}: this memory is closed", path=self.root)

    def _make_dirs(self) -> None:
        if self.read_only:
            return
        for directory in (self.root, self.main.directory, self.tree.directory):
            files.make_dir(directory)
        keep_format(self.root)

    def _open_index(self) -> Index:
        # Under the lock if it can be had: a damaged index may be in the middle of being replaced.
        if not self.lock.acquire(_OPEN_WAIT_S):
            return Index(self._index_path, self._costs)
        try:
            return self._reopened()
        finally:
            self.lock.release()

    def _follow_log(self) -> None:
        """At open: take in what the day files have beyond the index.

        A lock that is stuck just now is no reason to refuse memory.
        """
        if not self._behind():
            return
        try:
            with self.locked(timeout_s=LOCK_WAIT_S, everything=True):
                pass
        except LockTimeoutError as error:
            logger.warning("optchat: the newest messages are not shown yet: %s", error)

    def _behind(self) -> bool:
        """Whether any day file differs in size from what the index knows."""
        if not self._index.ok:
            return True
        try:
            self._generation = self._index.generation()
            return any(log.sizes() != self._index.known(log.room) for log in (self.main, self.tree))
        except DamagedError:
            self._suspect = True
            return True

    def _catch_up(self, *, everything: bool) -> None:
        """Under the lock: the right index, and in it all that the day files hold."""
        self._must_be_open()
        if reads.identity_of(self._index_path) != self._index.identity:
            self._make_dirs()
            self._retired.append(self._index)  # other threads may be reading from it
            self._index = self._reopened()
        elif not self._index.has_its_log():
            logger.warning("optchat: a part of %s is gone; it is made anew", self._index_path)
            self._replace_index()
        try:
            if (self._index.ok or self._made_by_another()) and not self._suspect:
                state = self._index.state(self._near())
                self._notice(state.generation)
                self._last = state.last
                if self._ends_right(state) and self._take_in(
                    self._sizes(state, everything=everything), state
                ):
                    return
        except DamagedError as error:
            logger.warning("optchat: %s; it is made anew", error)
            self._replace_index()
        self._rebuild()

    def _made_by_another(self) -> bool:
        """Whether an index that was empty when we opened it has been filled since."""
        self._index.ok = self._index.usable()
        return self._index.ok

    def _near(self) -> tuple[str, str, str]:
        now = self.clock()
        if self._near_names[0] != now.toordinal():
            self._near_names = now.toordinal(), names_near(now)
        return self._near_names[1]

    def _notice(self, generation: int) -> None:
        """Forget what was remembered of an index that another process has rebuilt since."""
        if generation != self._generation:
            self._generation = generation
            self._index.forget()
            self._texts = {}

    def _ends_right(self, state: State) -> bool:
        """Whether the newest message is the one the index says.

        If not, the next would get a number that is taken or far away.
        """
        seen = self._end
        if state[:2] == seen[:2] and (
            not seen.name or state.known.get(("main", seen.name)) == seen.known
        ):
            return True
        newest = self._index.newest()
        end_of = ("", 0)
        if newest is None:
            right = not any(known for (room, _), known in state.known.items() if room == "main")
        else:
            id_, spot, known = newest
            path, end = self.main.path(spot.name), spot.offset + spot.length
            claimed = id_of(reads.read_at(path, spot.offset, CLAIM_BYTES))
            if claimed is None:  # not a line of ours: read it whole
                claimed = _id_in(self.main.read(spot))
            after = (
                reads.read_at(path, end, min(known - end, _AFTER_MAX)).splitlines()
                if known > end
                else []
            )
            right = claimed == id_ and not any((_id_in(line) or 0) > id_ for line in after)
            end_of = (spot.name, known)
        if right:
            self._end = End(state.generation, state.total, *end_of)
        else:
            logger.warning(
                "optchat: %s is wrong about the newest message; it is made anew", self._index_path
            )
        return right

    def _sizes(self, state: State, *, everything: bool) -> dict[tuple[str, str], tuple[int, int]]:
        """Bytes on disk and bytes known of the day files (room, name) that matter."""
        if not everything:
            return {
                key: (reads.size_of(f"{self.root}/{key[0]}/{key[1]}"), known)
                for key, known in state.known.items()
            }
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for log in (self.main, self.tree):
            known, sizes = self._index.known(log.room), log.sizes()
            found |= {
                (log.room, name): (sizes.get(name, 0), known.get(name, 0)) for name in known | sizes
            }
        return found

    def _take_in(self, sizes: dict[tuple[str, str], tuple[int, int]], state: State) -> bool:
        """Add what the day files have beyond the index.

        False if the index is ahead of them, that is: wrong.
        """
        if any(size < known for size, known in sizes.values()):
            return False
        more = [
            (key, size, known)
            for key, (size, known) in sizes.items()
            if size > known and self._torn.get(key) != (size, known)
        ]
        self._next_id = state.total
        if more:
            with self._index.transaction():
                loader = Loader(self._index, ready=True)
                for key, size, known in sorted(more):
                    taken = loader.load(self.main if key[0] == "main" else self.tree, key[1], known)
                    # What is left of a torn line is not read again at every append.
                    self._torn[key] = (size, taken)
                loader.fill_lost(state.total)
            self._next_id = self._index.total()
        return True

    def _reopened(self) -> Index:
        try:
            return Index(self._index_path, self._costs)
        except DamagedError:
            self._remove_index()
            return Index(self._index_path, self._costs)

    def _replace_index(self) -> None:
        self._retired.append(self._index)
        self._remove_index()
        self._index = Index(self._index_path, self._costs)

    def _remove_index(self) -> None:
        """Safe while others have it open: they notice the new inode at their next step."""
        files.remove_files(
            self._index_path,
            *(self._index_path.with_name(f"index.sqlite{end}") for end in ("-wal", "-shm")),
        )

    def _rebuild(self) -> None:
        try:
            self._fill_index()
        except DamagedError:
            self._replace_index()
            self._fill_index()
        self._suspect = False
        self._generation = self._index.generation()
        self._next_id = self._index.total()
        self._end = End(self._generation, self._next_id, "", 0)
        self._last = ""
        self._texts = {}
        self._torn.clear()

    def _fill_index(self) -> None:
        everything = [
            (log, name, size)
            for log in (self.main, self.tree)
            for name, size in log.sizes().items()
        ]
        total, done = sum(size for _, _, size in everything), 0
        with self._index.transaction():
            self._index.wipe()
            loader = Loader(self._index, ready=False)
            for log, name, size in everything:
                loader.load(
                    log,
                    name,
                    0,
                    lambda at, base=done: self._progress("index", base + at, total),  # type: ignore[misc]
                )
                done += size
            loader.fill_lost(0)
            self._index.rebuild_ready()
        if total:
            self._progress("index", total, total)


def _id_in(line: bytes) -> int | None:
    try:
        return decode_message(line).id
    except BadLineError:
        return None
