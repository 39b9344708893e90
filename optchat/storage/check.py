"""Reads a whole memory and says what is damaged in the day files, and where derived files disagree with them. Changes nothing."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import OptchatError
from ..core.records import BadLineError, decode_message, decode_node
from ..core.tree import Place
from . import viewfile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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
    checker.read_messages()
    checker.read_nodes()
    checker.compare_index()
    checker.compare_view(view_path)
    checker.compare_search(search)
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
        self.offsets = array("q")  # by message id; -1 where there is none
        self.chars: dict[int, array[int]] = {}  # by level, then index; -1 where there is no node
        self.nodes_found: dict[int, int] = {}
        self._todo = sum(sum(log.sizes().values()) for log in (store.main, store.tree))
        self._done = 0
        self.total = 0

    # -- the truth

    def read_messages(self) -> None:
        """Decode every message line; find lost ids, doubled ids and unreadable lines."""
        for where, offset, line, ended, bad in self._lines(self.store.main):
            try:
                message = decode_message(line)
            except BadLineError as error:
                bad.append((f"{where}, byte {offset}: {error}", ended))
                continue
            if message.id >= len(self.offsets):
                if message.id > len(self.offsets) + 10_000_000:
                    self.damage.add(f"{where}, byte {offset}: message {message.id} is far beyond the log")
                    continue
                missing = message.id + 1 - len(self.offsets)
                self.offsets.extend([-1] * missing)
            elif self.offsets[message.id] >= 0:
                self.damage.add(f"{where}, byte {offset}: message {message.id} is there a second time; the first one counts")
                continue
            # A line cut by a crash was never acknowledged: it is harmless if the ids around it have no gap.
            self._settle(bad, harmless=message.id == 0 or self.offsets[message.id - 1] >= 0)
            self.offsets[message.id] = offset
        self.total = max(len(self.offsets), self.store.total())
        self.offsets.extend([-1] * (self.total - len(self.offsets)))
        for id_, offset in enumerate(self.offsets):
            if offset < 0:
                self.damage.add(f"message {id_} is lost")

    def read_nodes(self) -> None:
        """Decode every node line; find nodes without their halves, and nodes of messages that were never logged."""
        for where, offset, line, ended, bad in self._lines(self.store.tree):
            try:
                node = decode_node(line)
            except BadLineError as error:
                bad.append((f"{where}, byte {offset}: {error}", ended))
                continue
            self._settle(bad, harmless=True)
            place = Place(node.level, node.index)
            if place.end > self.total:
                self.damage.add(f"{where}, byte {offset}: line {place.address} covers messages that are not in the log")
                continue
            level = self.chars.setdefault(node.level, array("l", [-1]) * (self.total >> node.level))
            if level[node.index] < 0:
                self.nodes_found[node.level] = self.nodes_found.get(node.level, 0) + 1
            level[node.index] = len(node.text)
        for level_number, level in self.chars.items():
            below = self.chars.get(level_number - 1)
            for index, chars in enumerate(level):
                if chars >= 0 and level_number and (below is None or below[2 * index] < 0 or below[2 * index + 1] < 0):
                    self.damage.add(f"line {Place(level_number, index).address} stands on a line that is missing; it is built again")

    def _lines(self, log: DayLog) -> Iterator[tuple[str, int, bytes, bool, list[tuple[str, bool]]]]:
        """Every line of a room with where it stands, and a list for the bad ones not judged yet."""
        for name, size in log.sizes().items():
            bad: list[tuple[str, bool]] = []
            for piece in log.scan(name):
                if piece.line:
                    yield f"{log.room}/{name}", piece.offset, piece.line, piece.ended, bad
                self.progress("check", self._done + piece.offset, self._todo)
            self._done += size
            self._settle(bad, harmless=False)
        self.progress("check", self._done, self._todo)

    def _settle(self, bad: list[tuple[str, bool]], *, harmless: bool) -> None:
        for text, ended in bad:
            if harmless or not ended:
                self.notes.add(f"{text} (cut by a crash before it was acknowledged; stepped over)")
            else:
                self.damage.add(text)
        bad.clear()

    # -- what is derived from it

    def compare_index(self) -> None:
        """The index must say what a full scan finds: messages, nodes, and the nodes ready to be built."""
        try:
            seen = 0
            for id_, offset in self.store.read(lambda index: index.all_messages()):
                seen += 1
                if id_ >= self.total or (self.offsets[id_] != offset):
                    self.disagreements.add(f"index.sqlite has message {id_} in another place than the log")
            if seen != self.total:
                self.disagreements.add(f"index.sqlite holds {seen} messages, the log {self.total}")
            counted = 0
            for level, index, _, chars in self.store.read(lambda index: index.all_nodes()):
                counted += 1
                if self._chars(level, index) != chars:
                    self.disagreements.add(f"index.sqlite and the tree differ in line {Place(level, index).address}")
            if counted != sum(self.nodes_found.values()):
                self.disagreements.add(f"index.sqlite holds {counted} lines, the tree {sum(self.nodes_found.values())}")
            ready = set(self.store.read(lambda index: index.all_ready()))
            expected = set(self._expected_ready())
            for last, level in sorted(ready ^ expected):
                place = Place(level, ((last + 1) >> level) - 1)
                self.disagreements.add(f"index.sqlite is wrong on whether line {place.address} can be built")
        except OptchatError as error:
            self.disagreements.add(f"index.sqlite cannot be read: {error}")

    def compare_view(self, path: Path) -> None:
        """view.json must be readable and made of built lines."""
        if not path.exists():
            return
        saved = viewfile.load(path)
        if saved is None:
            self.disagreements.add("view.json cannot be used; the view is folded anew")
            return
        for place in saved.lines:
            if self._chars(place.level, place.index) < 0:
                self.disagreements.add(f"view.json shows line {place.address}, which the tree does not hold")

    def compare_search(self, search: Search) -> None:
        """The full text may be behind, never ahead."""
        try:
            if search.indexed() > self.total:
                self.disagreements.add(f"search.sqlite holds {search.indexed()} messages, the log {self.total}")
        except OptchatError as error:
            self.disagreements.add(f"search.sqlite cannot be read: {error}")

    def _chars(self, level: int, index: int) -> int:
        known = self.chars.get(level)
        return known[index] if known is not None and index < len(known) else -1

    def _expected_ready(self) -> Iterator[tuple[int, int]]:
        leaves = self.chars.get(0)
        for id_ in range(self.total):
            if leaves is None or leaves[id_] < 0:
                yield id_, 0
        for level, known in self.chars.items():
            for index in range(len(known) // 2):
                if known[2 * index] >= 0 and known[2 * index + 1] >= 0 and self._chars(level + 1, index) < 0:
                    yield Place(level + 1, index).end - 1, level + 1
