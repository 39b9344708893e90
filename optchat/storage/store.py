"""One memory directory's truth under its lock: message log, tree log and the index that knows where everything lies.

Disk before memory, always: a record is acknowledged once its line is synced, and the index follows. Whatever the index missed
(a crash in between, another writer, a disk too full for it) is taken in from the day files at the next lock. Used by
``memory.py``; knows nothing of views, summaries or sessions' meaning.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Final, TypeVar

from ..core.errors import LockTimeoutError, OptchatError
from ..core.records import (
    BadLineError,
    Entry,
    Message,
    Node,
    decode_message,
    decode_node,
    encode_message,
    encode_node,
    message_size,
)
from ..core.tree import Place
from . import files
from .index import Index, IndexDamagedError, MessageRow, NodeRow, State
from .log import DayLog, Spot, day_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

LOCK_WAIT_S: Final = 5.0
_ROWS_AT_ONCE: Final = 5_000
_TEXTS_KEPT: Final = 4_096
_ID_JUMP_MAX: Final = 10_000_000
"""A line without checksum whose id lies further ahead than this is damage, not a log with ten million messages missing."""

_CLAIM: Final = re.compile(rb'\{"i":(\d{1,14}),"kind"')
LOST_BYTES: Final = 64
LOST_TEXT: Final = "(message {} is lost: the log was damaged there)"
"""What stands for a message that existed and cannot be read any more; with it the tree goes on."""
_ENTRY_FIELDS: Final = tuple(field.name for field in fields_of(Entry))

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Store:
    """Messages and nodes on disk. Any number of stores, in any process, may share one directory."""

    def __init__(self, root: Path, *, clock: Callable[[], datetime], progress: Callable[[str, int, int], None] | None = None) -> None:
        self.root = root
        self.clock = clock
        self._progress = progress or (lambda _what, _done, _total: None)
        self.main, self.tree = DayLog(root / "main"), DayLog(root / "tree")
        for directory in (root, self.main.directory, self.tree.directory):
            files.make_dir(directory)
        self.lock = files.Lock(root / "write.lock")
        self._mutex = threading.Lock()
        self._retired: list[Index] = []
        self._texts: dict[Place, str] = {}
        self._index_path = root / "index.sqlite"
        self._index = self._open_index()
        self._generation = self._index.generation() if self._index.ok else 0
        if self._behind():
            with self.locked(everything=True):
                pass

    def close(self) -> None:
        """Close the index; what is acknowledged is on disk already."""
        for index in (*self._retired, self._index):
            index.close()

    # -- writing

    def record(self, entries: list[Entry], *, timeout_s: float = LOCK_WAIT_S) -> list[Message]:
        """Append entries as one write and one fsync; durable when this returns.

        Raises:
            LockTimeoutError: another process kept the lock; nothing was written.
            StoreError: the disk refused; nothing was written.

        """
        if not entries:
            return []
        with self.locked(timeout_s=timeout_s):
            now = self.clock()
            stamp, first = now.isoformat(timespec="seconds"), self._index.total()
            messages = [_placed(entry, first + k, stamp) for k, entry in enumerate(entries)]
            spots = self.main.append([encode_message(message) for message in messages], now)
            with self._index_follows():
                self._index.add_messages([_message_row(m, s) for m, s in zip(messages, spots, strict=True)], "main")
                self._index.set_known("main", spots[-1].name, spots[-1].offset + spots[-1].length + 1)
        return messages

    def commit(self, nodes: list[Node], *, timeout_s: float = LOCK_WAIT_S) -> list[Node]:
        """Append nodes as one write and one fsync; those that were not built before, in the meantime perhaps by another process."""
        with self.locked(timeout_s=timeout_s):
            built = self._index.node_spots(Place(node.level, node.index) for node in nodes)
            fresh = list({Place(node.level, node.index): node for node in nodes if Place(node.level, node.index) not in built}.values())
            if not fresh:
                return []
            now = self.clock()
            spots = self.tree.append([encode_node(node) for node in fresh], now)
            with self._index_follows():
                self._index.add_nodes([_node_row(n, s) for n, s in zip(fresh, spots, strict=True)], "tree")
                self._index.set_known("tree", spots[-1].name, spots[-1].offset + spots[-1].length + 1)
        return fresh

    @contextlib.contextmanager
    def locked(self, *, timeout_s: float = LOCK_WAIT_S, everything: bool = False) -> Iterator[None]:
        """Hold the write lock, with all that others have written taken in.

        ``everything``: compare every day file, not only those an append can have touched.
        """
        if not self._mutex.acquire(timeout=timeout_s):
            raise LockTimeoutError(f"cannot write to {self.root}: another thread has been writing for {timeout_s:g} s", path=self.root)
        try:
            with self.lock.held(timeout_s):
                self._catch_up(everything=everything)
                yield
        finally:
            self._mutex.release()

    def rebuild_index(self) -> None:
        """Make the index anew from the day files."""
        with self.locked():
            self._rebuild()

    # -- reading

    def read(self, question: Callable[[Index], T]) -> T:
        """Ask the index, healing it first if it is missing, damaged, or was replaced by another process."""
        if files.identity_of(self._index_path) != self._index.identity or not self._index.ok:
            with self.locked(everything=True):
                pass
        try:
            return question(self._index)
        except IndexDamagedError:
            self.rebuild_index()
            return question(self._index)

    def total(self) -> int:
        """How many messages the log holds."""
        return self.read(Index.total)

    def messages(self, first: int, end: int) -> Iterator[Message | None]:
        """Messages [first, end) in order, read in bounded portions; None for one that is lost."""
        for start in range(first, end, 256):
            stop = min(end, start + 256)
            yield from self._load_messages(lambda index, a=start, b=stop: index.message_spots(a, b))  # type: ignore[misc]

    def message(self, id_: int) -> Message | None:
        """One message, or None if it is lost."""
        return next(self.messages(id_, id_ + 1), None)

    def session_messages(self, session: str, first: int = 0) -> Iterator[Message]:
        """The messages of one session from id ``first`` on, in order."""
        spots = self.read(lambda index: index.session_spots(session, first))
        for start in range(0, len(spots), 256):
            for message in self._load_messages(lambda _index, part=spots[start : start + 256]: part):  # type: ignore[misc]
                if message is not None:
                    yield message

    def texts(self, places: list[Place]) -> dict[Place, str]:
        """The texts of the nodes among ``places`` that are built; the most recent few thousand are kept in memory."""
        found = {place: self._texts[place] for place in places if place in self._texts}
        missing = [place for place in places if place not in found]
        if missing:
            spots = self.read(lambda index: index.node_spots(missing))
            lines = self.tree.read_many(spots.values())
            for place, line in zip(spots, lines, strict=True):
                try:
                    node = decode_node(line)
                except BadLineError:
                    node = None
                if node is not None and (node.level, node.index) == place:
                    found[place] = node.text
                    self._keep(place, node.text)
            if any(place not in found for place in spots):
                self._mistrust("a line of the tree is not where the index says")
        return found

    # -- inside

    def _load_messages(self, where: Callable[[Index], list[tuple[int, Spot | None]]]) -> list[Message | None]:
        spots = self.read(where)
        messages, wrong = self._decode_messages(spots)
        if wrong:
            self._mistrust("a message is not where the index says")
            again = self.read(lambda index: [row for id_, _ in spots for row in index.message_spots(id_, id_ + 1)])
            messages, _ = self._decode_messages(again)
        return messages

    def _decode_messages(self, spots: list[tuple[int, Spot | None]]) -> tuple[list[Message | None], bool]:
        lines = iter(self.main.read_many(spot for _, spot in spots if spot))
        messages: list[Message | None] = []
        wrong = False
        for id_, spot in spots:
            message = None
            if spot is not None:
                with contextlib.suppress(BadLineError):
                    message = decode_message(next(lines))
                if message is None or message.id != id_:
                    message, wrong = None, True
            messages.append(message)
        return messages, wrong

    def _keep(self, place: Place, text: str) -> None:
        while len(self._texts) >= _TEXTS_KEPT:
            with contextlib.suppress(StopIteration, KeyError, RuntimeError):  # another thread may be dropping the same one
                del self._texts[next(iter(self._texts))]
        self._texts[place] = text

    def _mistrust(self, why: str) -> None:
        """Rebuild the index, unless another process has just done so and we only remembered its old numbers."""
        trusted = self._generation
        with self.locked(everything=True):
            if self._generation == trusted:
                logger.warning("optchat: rebuilding %s: %s", self._index_path, why)
                self._rebuild()

    @contextlib.contextmanager
    def _index_follows(self) -> Iterator[None]:
        """Describe in the index what is durable already. Failing here must not fail the append: the caller would say it again."""
        try:
            with self._index.transaction():
                yield
        except IndexDamagedError:
            self._index.ok = False  # rebuilt at the next lock
        except OptchatError as error:
            logger.warning("optchat: the index is behind and will catch up: %s", error)

    def _open_index(self) -> Index:
        try:
            return Index(self._index_path)
        except IndexDamagedError:  # not a database at all
            with self.lock.held(LOCK_WAIT_S):
                return self._reopened()

    def _behind(self) -> bool:
        """Whether any day file differs in size from what the index knows."""
        if not self._index.ok:
            return True
        try:
            return any(log.sizes() != self._index.known(log.room) for log in (self.main, self.tree))
        except IndexDamagedError:
            self._index.ok = False
            return True

    def _catch_up(self, *, everything: bool) -> None:
        """Under the lock: the right index, and in it all that the day files hold."""
        if files.identity_of(self._index_path) != self._index.identity:
            self._retired.append(self._index)  # other threads may be reading from it
            self._index = self._reopened()
        try:
            if self._index.ok:
                state = self._index.state(self._today())
                self._notice(state.generation)
                if self._take_in(self._sizes(state, everything=everything), state):
                    return
        except IndexDamagedError as error:
            logger.warning("optchat: %s is damaged (%s) and is made anew", self._index_path, error)
            self._replace_index()
        self._rebuild()

    def _today(self) -> str:
        return day_name(self.clock())

    def _notice(self, generation: int) -> None:
        """Forget what was remembered of an index that another process has rebuilt since."""
        if generation != self._generation:
            self._generation = generation
            self._index.forget()
            self._texts.clear()

    def _sizes(self, state: State, *, everything: bool) -> dict[tuple[str, str], tuple[int, int]]:
        """Bytes on disk and bytes known of the day files (room, name) that matter."""
        if not everything:
            return {key: (files.size_of(f"{self.root}/{key[0]}/{key[1]}"), known) for key, known in state.known.items()}
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for log in (self.main, self.tree):
            known, sizes = self._index.known(log.room), log.sizes()
            found |= {(log.room, name): (sizes.get(name, 0), known.get(name, 0)) for name in known | sizes}
        return found

    def _take_in(self, sizes: dict[tuple[str, str], tuple[int, int]], state: State) -> bool:
        """Add what the day files have beyond the index; False if the index is ahead of them, that is: wrong."""
        if any(size < known for size, known in sizes.values()):
            return False
        more = [(key, known) for key, (size, known) in sizes.items() if size > known]
        if more:
            with self._index.transaction():
                loader = _Loader(self._index, ready=True)
                for (room, name), known in more:
                    loader.load(self.main if room == "main" else self.tree, name, known)
                loader.fill_lost(state.total)
        return True

    def _reopened(self) -> Index:
        try:
            return Index(self._index_path)
        except IndexDamagedError:
            self._remove_index()
            return Index(self._index_path)

    def _replace_index(self) -> None:
        self._retired.append(self._index)
        self._remove_index()
        self._index = Index(self._index_path)

    def _remove_index(self) -> None:
        """Safe while others have it open: they notice the new inode at their next step."""
        files.remove_files(self._index_path, *(self._index_path.with_name(f"index.sqlite{end}") for end in ("-wal", "-shm")))

    def _rebuild(self) -> None:
        try:
            self._fill_index()
        except IndexDamagedError:
            self._replace_index()
            self._fill_index()
        self._generation = self._index.generation()
        self._texts.clear()

    def _fill_index(self) -> None:
        everything = [(log, name, size) for log in (self.main, self.tree) for name, size in log.sizes().items()]
        total, done = sum(size for _, _, size in everything), 0
        with self._index.transaction():
            self._index.wipe()
            loader = _Loader(self._index, ready=False)
            for log, name, size in everything:
                loader.load(log, name, 0, lambda at, base=done: self._progress("index", base + at, total))  # type: ignore[misc]
                done += size
            loader.fill_lost(0)
            self._index.rebuild_ready()
        if total:
            self._progress("index", total, total)


class _Loader:
    """Reads day files into the index, inside the caller's transaction."""

    def __init__(self, index: Index, *, ready: bool) -> None:
        self.index = index
        self.ready = ready
        self.claimed = 0
        self.top = index.tops()[0]

    def load(self, log: DayLog, name: str, offset: int, progress: Callable[[int], None] | None = None) -> None:
        """Take in one day file from an offset on. A torn last line stays outside until somebody appends after it."""
        read = self._message_row if log.room == "main" else self._node_row
        add = self.index.add_messages if log.room == "main" else self.index.add_nodes
        rows: list[MessageRow] | list[NodeRow] = []
        known = offset
        for piece in log.scan(name, offset):
            try:
                if piece.line:
                    rows.append(read(piece.line, Spot(name, piece.offset, len(piece.line))))  # type: ignore[arg-type]
            except BadLineError as error:
                if not piece.ended:
                    break
                self._claim(piece.line, error)
                self.index.note_damage(log.room, name, piece.offset, str(error))
            known = piece.offset + len(piece.line) + piece.ended
            if len(rows) >= _ROWS_AT_ONCE:
                add(rows, log.room, ready=self.ready)  # type: ignore[arg-type]
                rows.clear()
                if progress:
                    progress(known)
        add(rows, log.room, ready=self.ready)  # type: ignore[arg-type]
        self.index.set_known(log.room, name, known)

    def fill_lost(self, first: int) -> None:
        """Give a place to every message from ``first`` on that existed and cannot be read, so that ids never shift."""
        messages, leaves = self.index.tops()
        total = max(messages, min(max(leaves, self.claimed), messages + _ID_JUMP_MAX))
        lost = [MessageRow(id_, None, LOST_BYTES, "", "") for id_ in self.index.lost_ids(first, total)]
        self.index.add_messages(lost, "main", ready=self.ready)

    def _message_row(self, line: bytes, spot: Spot) -> MessageRow:
        message = decode_message(line)
        if message.id > self.top + _ID_JUMP_MAX:
            raise BadLineError(f"message {message.id}: its number is far beyond the log")
        self.top = max(self.top, message.id + 1)
        return _message_row(message, spot)

    def _claim(self, line: bytes, error: BadLineError) -> None:
        """Keep the id a damaged line still shows: its message was acknowledged, and nodes may cover it."""
        shown = _CLAIM.match(line)
        claimed = int(shown[1]) if shown and error.id is None else error.id
        if claimed is not None and claimed <= self.top:
            self.top = self.claimed = max(self.top, claimed + 1)

    def _node_row(self, line: bytes, spot: Spot) -> NodeRow:
        return _node_row(decode_node(line), spot)


def _placed(entry: Entry, id_: int, stamp: str) -> Message:
    fields = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    return Message(id=id_, **(fields | {"date": entry.date or stamp}))


def _message_row(message: Message, spot: Spot) -> MessageRow:
    return MessageRow(message.id, spot, message_size(message.kind, message.text), message.session, message.uid)


def _node_row(node: Node, spot: Spot) -> NodeRow:
    return NodeRow(Place(node.level, node.index), spot, len(node.text.encode()), len(node.text), node.by)
