"""Reads a whole memory and says what is damaged in the day files, and where derived files disagree with them. Changes nothing.

Others may log and build meanwhile: what is compared is the log up to where one snapshot of the index says it has been taken in.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import OptchatError
from ..core.records import BadLineError, decode_message, decode_node
from ..core.tree import Place
from . import viewfile
from .loader import ID_JUMP_MAX
from .snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .files import Piece
    from .log import DayLog
    from .search import Search
    from .store import Store

_SHOWN: Final = 50
"""Findings of one kind that are listed one by one; the rest are counted."""


class Findings:
    """A list that stays short whatever is wrong."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.more = 0

    def add(self, line: str) -> None:
        """Note one finding."""
        if len(self.lines) < _SHOWN:
            self.lines.append(line)
        else:
            self.more += 1

    def listed(self) -> list[str]:
        """All findings, the uncounted ones summed up."""
        return [*self.lines, f"and {self.more} more"] if self.more else self.lines


def check(
    store: Store, search: Search, view_path: Path, progress: Callable[[str, int, int], None] | None = None
) -> dict[str, Any]:
    """Counts, damage to the truth, disagreements of derived files, and notes on what is odd but harmless."""
    checker = _Checker(store, progress or (lambda _what, _done, _total: None))
    store.total()
    # Both can only lag behind the log: looked at before it, they cannot seem to be ahead of it.
    checker.look_at_view(view_path)
    checker.look_at_search(search)
    checker.catch_up()
    with Snapshot(store.root / "index.sqlite") as snapshot:
        checker.look_at_index(snapshot)
        checker.read_messages()
        checker.read_nodes()
        checker.compare_index(snapshot)
    checker.compare_view()
    checker.compare_search()
    return {
        "messages": checker.total,
        "nodes": sum(checker.nodes_found.values()),
        "damage": checker.damage.listed(),
        "disagreements": checker.disagreements.listed(),
        "notes": checker.notes.listed(),
    }


class _Checker:
    def __init__(self, store: Store, progress: Callable[[str, int, int], None]) -> None:
        self.store = store
        self.progress = progress
        self.damage, self.disagreements, self.notes = Findings(), Findings(), Findings()
        self.known: dict[tuple[str, str], int] | None = None  # None: the index does not say, so all there is counts
        self.offsets = array("q")  # by message id; -1 where there is none
        self.indexed = array("q")  # the same, as the index has it
        self.chars: dict[int, array[int]] = {}  # by level, then index; -1 where there is no node
        self.nodes_found: dict[int, int] = {}
        self.total = 0
        self._saved: viewfile.SavedView | None = None
        self._searchable = 0
        self._todo = sum(sum(log.sizes().values()) for log in (store.main, store.tree))
        self._done = 0

    def catch_up(self) -> None:
        """Have the index take in all that is logged, so that what it still lacks afterwards is a finding."""
        try:
            with self.store.locked(everything=True):
                pass
        except OptchatError as error:
            self.notes.add(f"the index may be behind: {error}")

    def look_at_index(self, snapshot: Snapshot) -> None:
        """Load what the index says of the messages, and how much of each day file it stands for."""
        try:
            self.known = snapshot.known()
            for id_, offset in snapshot.messages():
                if id_ > len(self.indexed) + ID_JUMP_MAX:
                    self.disagreements.add(f"index.sqlite has a message {id_}, far beyond the log")
                    break
                self._extend(self.indexed, id_ + 1)
                self.indexed[id_] = offset
        except OptchatError as error:
            self.disagreements.add(f"index.sqlite cannot be read: {error}")

    # -- the truth

    def read_messages(self) -> None:
        """Decode every message line; find lost ids, doubled ids and unreadable lines."""
        for where, piece, bad in self._lines(self.store.main):
            try:
                message = decode_message(piece.line)
            except BadLineError as error:
                bad.append((f"{where}: {error}", piece.ended))
                continue
            if message.id >= len(self.offsets):
                if message.id > len(self.offsets) + ID_JUMP_MAX:
                    self.damage.add(f"{where}: message {message.id} is far beyond the log")
                    continue
                self._extend(self.offsets, message.id + 1)
            elif self.offsets[message.id] >= 0:
                self.damage.add(f"{where}: message {message.id} is there a second time; the first one counts")
                continue
            # A line cut by a crash was never acknowledged: it is harmless if the ids around it have no gap.
            self._settle(bad, harmless=message.id == 0 or self.offsets[message.id - 1] >= 0)
            self.offsets[message.id] = piece.offset
        self.total = max(len(self.offsets), len(self.indexed))
        self._extend(self.offsets, self.total)
        for id_, offset in enumerate(self.offsets):
            if offset < 0:
                self.damage.add(f"message {id_} is lost")

    def read_nodes(self) -> None:
        """Decode every node line; find nodes without their halves, and nodes of messages that were never logged."""
        provisional: set[Place] = set()  # built without the model it was meant for: a later line takes its place
        for where, piece, bad in self._lines(self.store.tree):
            try:
                node = decode_node(piece.line)
            except BadLineError as error:
                bad.append((f"{where}: {error}", piece.ended))
                continue
            self._settle(bad, harmless=True)
            place = Place(node.level, node.index)
            if place.end > self.total:
                self.damage.add(f"{where}: line {place.address} covers messages that are not in the log")
            elif self._chars(place) < 0 or place in provisional:
                self._found(place, len(node.text))
                (provisional.add if node.by == "fallback" else provisional.discard)(place)
            else:
                self.damage.add(f"{where}: line {place.address} is there a second time; the first one counts")
        for level, known in self.chars.items():
            for index, chars in enumerate(known):
                if chars >= 0 and level and not self._halves_built(level, index):
                    self.damage.add(f"line {Place(level, index).address} stands on a line that is missing; it is built again")

    def _found(self, place: Place, chars: int) -> None:
        level = self.chars.get(place.level)
        if level is None:
            level = self.chars[place.level] = array("i", [-1]) * (self.total >> place.level)
        if level[place.index] < 0:
            self.nodes_found[place.level] = self.nodes_found.get(place.level, 0) + 1
        level[place.index] = chars

    def _lines(self, log: DayLog) -> Iterator[tuple[str, Piece, list[tuple[str, bool]]]]:
        """Every line of a room with where it stands, and a list for the bad ones not judged yet."""
        for name, size in log.sizes().items():
            bad: list[tuple[str, bool]] = []
            for piece in log.scan(name):
                where = f"{log.room}/{name}, byte {piece.offset}"
                if self.known is not None and piece.offset >= self.known.get((log.room, name), 0):
                    if not piece.ended:
                        self.notes.add(f"{where}: a line cut by a crash before it was acknowledged; stepped over")
                    break  # logged since, or being written this moment
                if piece.line:
                    yield where, piece, bad
                self.progress("check", min(self._done + piece.offset, self._todo), self._todo)
            self._done += size
            self._settle(bad, harmless=False)
        self.progress("check", min(self._done, self._todo), self._todo)

    def _settle(self, bad: list[tuple[str, bool]], *, harmless: bool) -> None:
        for text, ended in bad:
            if harmless or not ended:
                self.notes.add(f"{text} (cut by a crash before it was acknowledged; stepped over)")
            else:
                self.damage.add(text)
        bad.clear()

    # -- what is derived from it

    def compare_index(self, snapshot: Snapshot) -> None:
        """The index must say what a full scan finds: messages, nodes, and the nodes ready to be built."""
        try:
            self._compare_messages()
            self._compare_nodes(snapshot)
            self._compare_ready(snapshot)
        except OptchatError as error:
            self.disagreements.add(f"index.sqlite cannot be read: {error}")

    def _compare_messages(self) -> None:
        for id_, offset in enumerate(self.indexed):
            if self.offsets[id_] != offset:
                self.disagreements.add(f"index.sqlite has message {id_} in another place than the log")
        if len(self.indexed) != self.total:
            self.disagreements.add(f"index.sqlite holds {len(self.indexed)} messages, the log {self.total}")

    def _compare_nodes(self, snapshot: Snapshot) -> None:
        counted = 0
        for level, index, chars in snapshot.nodes():
            place = Place(level, index)
            if place.end <= self.total:
                counted += 1
                if self._chars(place) != chars:
                    self.disagreements.add(f"index.sqlite and the tree differ in line {place.address}")
        if counted != sum(self.nodes_found.values()):
            self.disagreements.add(f"index.sqlite holds {counted} lines, the tree {sum(self.nodes_found.values())}")

    def _compare_ready(self, snapshot: Snapshot) -> None:
        ready = {level: bytearray(self.total >> level) for level in range(self.total.bit_length())}
        for last, level in snapshot.ready():
            if last < self.total and level in ready:
                ready[level][((last + 1) >> level) - 1] = 1
        for level, marks in ready.items():
            for index, mark in enumerate(marks):
                built = level in self.chars and self.chars[level][index] >= 0
                if mark != (not built and (level == 0 or self._halves_built(level, index))):
                    self.disagreements.add(f"index.sqlite is wrong on whether line {Place(level, index).address} can be built")

    def look_at_view(self, path: Path) -> None:
        """Load view.json; one that cannot be read is a finding."""
        self._saved = viewfile.load(path)
        if self._saved is None and path.exists():
            self.disagreements.add("view.json cannot be used; the view is folded anew")

    def compare_view(self) -> None:
        """view.json must be made of built lines."""
        for place in self._saved.lines if self._saved else ():
            if self._chars(place) < 0:
                self.disagreements.add(f"view.json shows line {place.address}, which the tree does not hold")

    def look_at_search(self, search: Search) -> None:
        """Ask the full text how far it is."""
        try:
            self._searchable = search.indexed()
        except OptchatError as error:
            self.disagreements.add(f"search.sqlite cannot be read: {error}")

    def compare_search(self) -> None:
        """The full text may be behind, never ahead."""
        if self._searchable > self.total:
            self.disagreements.add(f"search.sqlite holds {self._searchable} messages, the log {self.total}")

    def _chars(self, place: Place) -> int:
        known = self.chars.get(place.level)
        return known[place.index] if known is not None and place.index < len(known) else -1

    def _halves_built(self, level: int, index: int) -> bool:
        below = self.chars.get(level - 1)
        return below is not None and below[2 * index] >= 0 and below[2 * index + 1] >= 0

    @staticmethod
    def _extend(offsets: array[int], length: int) -> None:
        if length == len(offsets) + 1:
            offsets.append(-1)
        elif length > len(offsets):
            offsets.extend(array("q", [-1]) * (length - len(offsets)))
