"""Reads a whole memory and says what is damaged in it, and where derived files disagree with the
truth. Changes nothing.

Others may log and build meanwhile: what is compared is the log up to where one snapshot of the
index says it has been taken in.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Any, Final

from ..base.address import Place
from ..base.errors import OptchatError
from ..base.json_line import BadLineError, is_as_written, is_cut, is_whole, load_line
from ..base.record import BUILDERS, MAX_LEVEL, decode_message, decode_node
from ..capture.copies import CopyFinder
from ..log import reads
from ..log.day_files import Spot
from ..log.loader import ID_JUMP_MAX, message_row, names_of, node_row
from ..log.ready import number_of
from ..tree import saved_view
from .check_notes import NotesCheck
from .check_words import WordsCheck
from .findings import Report
from .snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..base.record import Message, Node
    from ..log.day_files import DayLog
    from ..log.fulltext import Search
    from ..log.reads import Piece
    from ..log.session_notes import NoteLog
    from ..log.store import Store

_CLAIM: Final = re.compile(rb'\{"l":(\d{1,2}),"i":(\d{1,14}),')
_PRINT: Final = (1 << 62) - 1


def check(
    store: Store,
    search: Search,
    views: Sequence[Path],
    progress: Callable[[str, int, int], None] | None = None,
    *,
    notes: NoteLog,
    usage: tuple[Path, Callable[[bytes], object]] | None = None,
) -> dict[str, Any]:
    """Counts, damage to the truth, disagreements of derived files, and notes on what is odd.

    ``copies``: stretches that repeat others, which is no damage. ``views``: saved views. ``usage``:
    a file of lines beside the log, and what gives None for a line that is damaged.
    """
    checker = _Checker(store, progress or (lambda _what, _done, _total: None))
    report = checker.report
    store.total()
    # Both can only lag behind the log: looked at before it, they cannot seem to be ahead of it.
    saved = [
        (path.name, view) for path in views if (view := checker.look_at_view(path)) is not None
    ]
    searchable = checker.look_at_search(search)
    checker.catch_up(store.locked(everything=True))
    checker.catch_up(notes.caught_up())
    with (
        Snapshot(store.derived / "index.sqlite") as snapshot,
        WordsCheck(search.path, searchable) as words,
    ):
        checker.look_at_index(snapshot)
        noted = NotesCheck(notes.log, report)
        noted.read(checker.known, checker.remembered)
        checker.read_messages(snapshot, words, noted)
        checker.read_nodes()
        checker.compare_index(snapshot, noted)
        checker.compare_search(words)
    for name, view in saved:
        checker.compare_view(name, view)
    if usage is not None:
        checker.read_usage(*usage)
    return {
        "messages": checker.total,
        "nodes": sum(checker.nodes_found.values()),
        "damage": report.damage.listed(),
        "disagreements": report.disagreements.listed(),
        "notes": report.notes.listed(),
        "copies": checker.copies.find(),
    }


class _Checker:
    def __init__(self, store: Store, progress: Callable[[str, int, int], None]) -> None:
        self.store = store
        self.progress = progress
        self.report = Report()
        # None: the index does not say, so all there is counts.
        self.known: dict[tuple[str, str], int] | None = None
        self.remembered: list[str] = []  # damage the index has noted
        # By message id, a print of what the index should say of it; -1 where there is none.
        self.logged = array("q")
        self.indexed = array("q")  # the same, of what it says
        self.built: dict[int, array[int]] = {}  # by level, then index: the same of nodes
        self.nodes_found: dict[int, int] = {}
        self.copies = CopyFinder()
        self.total = 0
        self._broken: dict[
            Place | None, list[str]
        ] = {}  # node lines that cannot be read, by the place they still name
        self._uids = 0  # of those in the log, how many the index finds
        # A message is there twice, so that nobody can count what is known of it.
        self._doubled = False
        self._unchecked = 0  # lines of the day file being read no checksum covers as a whole
        self._todo = sum(sum(log.sizes().values()) for log in (store.main, store.tree))
        self._done = 0

    def catch_up(self, taking_in: AbstractContextManager[None]) -> None:
        """Have the index take in all that is logged, so that what it still lacks afterwards is a
        finding.
        """
        try:
            with taking_in:
                pass
        except OptchatError as error:
            self.report.notes.add(f"the index may be behind: {error}")

    def look_at_index(self, snapshot: Snapshot) -> None:
        """Load what the index says of the messages, and how much of each day file it stands for."""
        try:
            for fault in snapshot.faults():
                self.report.disagreements.add(f"index.sqlite is damaged: {fault}")
            self.known = snapshot.known()
            self.remembered = snapshot.damage()
            for id_, lost, said in snapshot.messages():
                if id_ > len(self.indexed) + ID_JUMP_MAX:
                    self.report.disagreements.add(
                        f"index.sqlite has a message {id_}, far beyond the log"
                    )
                    break
                _extend(self.indexed, id_ + 1)
                self.indexed[id_] = -1 if lost else _print(said)
        except OptchatError as error:
            self.report.disagreements.add(f"index.sqlite cannot be read: {error}")

    # -- the truth

    def read_messages(self, snapshot: Snapshot, words: WordsCheck, noted: NotesCheck) -> None:
        """Decode every message line.

        Find lost ids, doubled ids and lines that cannot be read or have other faults.
        """
        for name, piece, bad in self._lines(self.store.main):
            where = f"main/{name}, byte {piece.offset}"
            try:
                message = decode_message(piece.line)
            except BadLineError as error:
                bad.append((f"{where}: {error}", piece.ended))
                continue
            if message.id >= len(self.logged):
                if message.id > len(self.logged) + ID_JUMP_MAX:
                    self.report.damage.add(f"{where}: message {message.id} is far beyond the log")
                    continue
                _extend(self.logged, message.id + 1)
            elif self.logged[message.id] >= 0:
                self.report.damage.add(
                    f"{where}: message {message.id} is there a second time; the first one counts"
                )
                self._doubled = True
                continue
            # A line cut by a crash was never acknowledged: it is harmless if the ids around it have
            # no gap.
            self._settle(bad, harmless=message.id == 0 or self.logged[message.id - 1] >= 0)
            self.logged[message.id] = _print(
                _index_row(message, Spot(name, piece.offset, len(piece.line)))
            )
            self._unchecked += not _is_covered(piece.line)
            words.holds(message.id, message.text, message.date)
            self.copies.add(message)
            self._look_up(message, snapshot, noted)
        self.total = max(len(self.logged), len(self.indexed))
        _extend(self.logged, self.total)
        for id_, said in enumerate(self.logged):
            if said < 0:
                self.report.damage.add(f"message {id_} is lost")

    def read_nodes(self) -> None:
        """Decode every node line.

        Find nodes without their halves, and nodes of messages that were never logged.
        """
        # Built without the model it was meant for: a later line of one takes its place.
        provisional: set[Place] = set()
        for name, piece, _ in self._lines(self.store.tree):
            where = f"tree/{name}, byte {piece.offset}"
            try:
                node = decode_node(piece.line)
            except BadLineError as error:
                self._add_broken(f"{where}: {error}", piece)
                continue
            place = Place(node.level, node.index)
            if place.end > self.total:
                self.report.damage.add(
                    f"{where}: line {place.address} covers messages that are not in the log"
                )
            elif self._said(place) < 0 or (place in provisional and node.by == "model"):
                self._found(
                    place,
                    _print(_index_row_of_node(node, Spot(name, piece.offset, len(piece.line)))),
                )
                self._unchecked += not _is_covered(piece.line)
                (provisional.add if node.by == "fallback" else provisional.discard)(place)
            else:
                self.report.damage.add(
                    f"{where}: line {place.address} is there a second time; the first one counts"
                )
        self._judge_broken()
        for level, known in self.built.items():
            for index, said in enumerate(known):
                if said >= 0 and level and not self._halves_built(level, index):
                    self.report.damage.add(
                        f"line {Place(level, index).address} stands on a line that is "
                        "missing; it is built again"
                    )

    def read_usage(self, path: Path, decode: Callable[[bytes], object]) -> None:
        """Find lines on model calls that cannot be read."""
        try:
            for piece in reads.scan(path):
                if piece.line.strip() and decode(piece.line) is None:
                    cut = is_cut(piece.line)
                    found, what = (
                        (self.report.notes, "was cut by a crash")
                        if cut
                        else (self.report.damage, "cannot be read")
                    )
                    found.add(f"{path.name}, byte {piece.offset}: a line {what}; stepped over")
        except OptchatError as error:
            self.report.damage.add(str(error))

    def _found(self, place: Place, said: int) -> None:
        level = self.built.get(place.level)
        if level is None:
            level = self.built[place.level] = array("q", [-1]) * (self.total >> place.level)
        if level[place.index] < 0:
            self.nodes_found[place.level] = self.nodes_found.get(place.level, 0) + 1
        level[place.index] = said
        for text in self._broken.pop(place, ()):
            self.report.notes.add(f"{text}; it was built again")

    def _add_broken(self, text: str, piece: Piece) -> None:
        if is_cut(piece.line):
            self.report.notes.add(
                f"{text} (cut by a crash before it was acknowledged; stepped over)"
            )
            return
        claim = _CLAIM.match(piece.line)
        place = (
            Place(int(claim[1]), int(claim[2])) if claim and int(claim[1]) <= MAX_LEVEL else None
        )
        self._broken.setdefault(place, []).append(text)

    def _judge_broken(self) -> None:
        """A damaged line of the tree costs nothing once another stands in its place.

        Where that is not known, once all are built.
        """
        complete = sum(self.nodes_found.values()) == sum(
            self.total >> level for level in range(self.total.bit_length())
        )
        for texts in self._broken.values():
            for text in texts:
                if complete:
                    self.report.notes.add(f"{text}; it was built again")
                else:
                    self.report.damage.add(text)

    def _lines(self, log: DayLog) -> Iterator[tuple[str, Piece, list[tuple[str, bool]]]]:
        """Every line of a room with its day file, and a list for the bad ones not judged yet."""
        for name, size in log.sizes().items():
            bad: list[tuple[str, bool]] = []
            self._unchecked = 0
            for piece in log.scan(name):
                if self.known is not None and piece.offset >= self.known.get((log.room, name), 0):
                    if not piece.ended and piece.line.strip():
                        self._add_tail(f"{log.room}/{name}, byte {piece.offset}", piece)
                    break  # logged since, or being written this moment
                if piece.line.strip():
                    yield name, piece, bad
                elif (
                    not piece.line and bad
                ):  # an empty line is put behind one that was cut, before anything else is written
                    self._settle([bad.pop()], harmless=True)
                self.progress("check", min(self._done + piece.offset, self._todo), self._todo)
            self._done += size
            self._settle(bad, harmless=False)
            if self._unchecked:
                self.report.notes.add(
                    f"{log.room}/{name}: {self._unchecked} lines have no checksum that covers "
                    "all of them, so that damage in them may not show"
                )
        self.progress("check", min(self._done, self._todo), self._todo)

    def _add_tail(self, where: str, piece: Piece) -> None:
        """What no newline ends.

        In the log the ids show whether it was ever acknowledged, in the tree nothing but its form.
        """
        if where.startswith("tree/") and not is_cut(piece.line):
            self._broken.setdefault(None, []).append(f"{where}: is not JSON")
        else:
            self.report.notes.add(
                f"{where}: a line cut by a crash before it was acknowledged; stepped over"
            )

    def _settle(self, bad: list[tuple[str, bool]], *, harmless: bool) -> None:
        for text, ended in bad:
            if harmless or not ended:
                self.report.notes.add(
                    f"{text} (cut by a crash before it was acknowledged; stepped over)"
                )
            else:
                self.report.damage.add(text)
        bad.clear()

    # -- what is derived from it

    def _look_up(self, message: Message, snapshot: Snapshot, noted: NotesCheck) -> None:
        for uid in names_of(message):
            try:
                found = snapshot.id_of(uid)
            except OptchatError:
                continue  # said once by whoever else reads the index
            if found is None:
                self.report.disagreements.add(
                    f"index.sqlite does not know the host's id of message {message.id}"
                )
            self._uids += found in (message.id, -1)
        noted.forget_turn(message.turn)

    def compare_index(self, snapshot: Snapshot, noted: NotesCheck) -> None:
        """The index must say what a full scan finds.

        Messages, nodes, the nodes ready to be built, host ids and notes.
        """
        try:
            self._compare_messages()
            self._compare_nodes(snapshot)
            self._compare_ready(snapshot)
            noted.compare(snapshot)
            if snapshot.count_uids() != self._uids + noted.turns_left and not self._doubled:
                self.report.disagreements.add(
                    "index.sqlite knows other ids of the host than the log and capture/"
                )
        except OptchatError as error:
            self.report.disagreements.add(f"index.sqlite cannot be read: {error}")

    def _compare_messages(self) -> None:
        for id_, said in enumerate(self.indexed):
            if self.logged[id_] != said:
                self.report.disagreements.add(
                    f"index.sqlite has message {id_} in another place than the log, or as another"
                )
        if len(self.indexed) != self.total:
            self.report.disagreements.add(
                f"index.sqlite holds {len(self.indexed)} messages, the log {self.total}"
            )

    def _compare_nodes(self, snapshot: Snapshot) -> None:
        counted = 0
        for level, index, said in snapshot.nodes():
            place = Place(level, index)
            if place.end <= self.total:
                counted += 1
                if self._said(place) != _print(said):
                    self.report.disagreements.add(
                        f"index.sqlite and the tree differ in line {place.address}"
                    )
        if counted != sum(self.nodes_found.values()):
            self.report.disagreements.add(
                f"index.sqlite holds {counted} lines, the tree {sum(self.nodes_found.values())}"
            )

    def _compare_ready(self, snapshot: Snapshot) -> None:
        ready = {level: bytearray(self.total >> level) for level in range(self.total.bit_length())}
        for last, level in snapshot.ready():
            if last < self.total and level in ready:
                ready[level][((last + 1) >> level) - 1] = 1
        for level, marks in ready.items():
            for index, mark in enumerate(marks):
                built = level in self.built and self.built[level][index] >= 0
                if mark != (not built and (level == 0 or self._halves_built(level, index))):
                    self.report.disagreements.add(
                        "index.sqlite is wrong on whether line "
                        f"{Place(level, index).address} can be built"
                    )
        for last, level in snapshot.wrongly_ready():
            address = Place(level, ((last + 1) >> level) - 1).address
            self.report.disagreements.add(
                f"index.sqlite is wrong on what line {address} is to be built from"
            )

    def look_at_view(self, path: Path) -> saved_view.SavedView | None:
        """Load a saved view; one that cannot be read is a finding."""
        saved = saved_view.load(path)
        if saved is None and path.exists():
            self.report.disagreements.add(f"{path.name} cannot be used; the view is folded anew")
        return saved

    def compare_view(self, name: str, saved: saved_view.SavedView) -> None:
        """A saved view must be made of built lines."""
        for place in saved.lines:
            if self._said(place) < 0:
                self.report.disagreements.add(
                    f"{name} shows line {place.address}, which the tree does not hold"
                )

    def look_at_search(self, search: Search) -> int:
        """Ask the full text how far it is."""
        try:
            return search.indexed()
        except OptchatError as error:
            self.report.disagreements.add(f"search.sqlite cannot be read: {error}")
        return 0

    def compare_search(self, words: WordsCheck) -> None:
        """The full text may be behind, never ahead, and must hold the words of the messages
        it has.
        """
        try:
            if words.indexed > self.total:
                self.report.disagreements.add(
                    f"search.sqlite holds {words.indexed} messages, the log {self.total}"
                )
            elif not words.agrees(lambda id_: 0 <= id_ < self.total and self.logged[id_] >= 0):
                self.report.disagreements.add("search.sqlite holds other words than the messages")
        except OptchatError as error:
            self.report.disagreements.add(f"search.sqlite cannot be read: {error}")

    def _said(self, place: Place) -> int:
        known = self.built.get(place.level)
        return known[place.index] if known is not None and place.index < len(known) else -1

    def _halves_built(self, level: int, index: int) -> bool:
        below = self.built.get(level - 1)
        return below is not None and below[2 * index] >= 0 and below[2 * index + 1] >= 0


def _index_row(message: Message, spot: Spot) -> tuple[Any, ...]:
    """What the index should say of a message, as ``Snapshot.messages`` gives it."""
    row = message_row(message, spot)
    return (*spot, row.bytes, row.session or None, number_of(row.kind))


def _index_row_of_node(node: Node, spot: Spot) -> tuple[Any, ...]:
    """The same of a node, as ``Snapshot.nodes`` gives it."""
    row = node_row(node, spot)
    return (
        *spot,
        row.bytes,
        row.chars,
        BUILDERS.index(row.by if row.by in BUILDERS else "model"),
        int(row.spare),
    )


def _is_covered(line: bytes) -> bool:
    return is_as_written(line) or is_whole(line, load_line(line))


def _print(said: tuple[Any, ...]) -> int:
    return hash(said) & _PRINT


def _extend(prints: array[int], length: int) -> None:
    if length == len(prints) + 1:
        prints.append(-1)
    elif length > len(prints):
        prints.extend(array("q", [-1]) * (length - len(prints)))
