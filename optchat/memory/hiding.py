"""Messages out of sight on disk: notes that say which, and the lines above them that are dropped.

Decides no order of steps; each may be done again. The log's own lines stay as they are, so that
nothing is lost and all of it can be undone. Called by ``memory/copies.py``; ``HiddenNotes`` is
asked by all who make lines or look for messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base.address import Place
from ..base.record import BUILDERS, Node
from ..capture.copies import CopyFinder
from ..log.hidden import NOTE, NOTHING, Hidden, Piece
from ..log.redacted import blank, is_line_of
from ..log.sought import Sought

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..capture.copies import Stretch
    from ..log.index import Index
    from ..log.session_notes import NoteLog
    from ..log.store import Store

_COPY: Final = BUILDERS.index("copy")
_NODES_AT_ONCE: Final = 5_000
_VERSION: Final = (
    "SELECT (SELECT value FROM meta WHERE key = 'generation'), "
    "(SELECT max(seq) FROM notes WHERE type = ?)"
)
"""Changes when another such note has come in, or the index was made anew."""


class HiddenNotes:
    """What is out of sight, as the notes in the day files have it now. Cheap to ask."""

    def __init__(self, store: Store, notes: NoteLog) -> None:
        self._store = store
        self._notes = notes
        self._known: tuple[tuple[int, int | None], Hidden] = (-1, None), NOTHING

    def __call__(self) -> Hidden:
        """What is out of sight now, whoever noted it."""
        version, hidden = self._known
        ((generation, last),) = self._store.read(lambda index: index.rows(_VERSION, (NOTE,)))
        if version == (generation, last):
            return hidden
        found = self._notes.notes(NOTE)  # takes in those that an index just made anew lacks
        hidden = Hidden.of_notes(found)
        self._known = (generation, found[-1]["seq"] if found else None), hidden
        return hidden

    def note(
        self, *, pieces: list[Piece] | None = None, shown: tuple[int, int] | None = None
    ) -> None:
        """Note that these are out of sight, or messages [first, end) in sight again; durable."""
        said = {"pieces": pieces or []} if shown is None else {"shown": shown}
        self._notes.commit("", [], [{"type": NOTE, "session": ""} | said])


class Dropping:
    """Drops the lines above messages that go out of sight or come back."""

    def __init__(self, store: Store, area: Hidden) -> None:
        """``area``: the messages, whichever way they go."""
        self.area = area
        self._store = store
        self._sought = Sought(store.tree, lambda line: is_line_of(line, area.touches))

    def scan(self, *, locked: bool) -> None:
        """Look for them. Most of it can be done before the lock is held."""
        self._sought.scan(locked=locked)

    def drop(self) -> int:
        """Write over all of them and tell the index; how many there were. Under the lock.

        Those of single messages go last: as long as one of them says what it said, what stands
        above may do so too.
        """
        self._sought.write_over(lambda _, line: line if is_line_of(line, _is_leaf) else blank(line))
        self._sought.write_over(lambda _, line: blank(line))
        gone = [("tree", spot.name, spot.offset) for spot in self._sought.spots]
        places = list(_above(self.area, self._store.total()))
        self._store.update_index(lambda index: _describe(index, places, gone))
        return len(self._sought.spots)


def add_lines(store: Store, hidden: Hidden, area: Hidden) -> None:
    """Write the lines of all nodes in ``area`` that are copies alone. Under the lock."""
    nodes: list[Node] = []
    for place in _above(area, store.total()):
        if hidden.covers(place):
            nodes.append(
                Node(
                    level=place.level,
                    index=place.index,
                    text=hidden.line(place),
                    by="copy",
                    spare=True,
                )
            )
        if len(nodes) >= _NODES_AT_ONCE:
            store.commit(nodes)
            nodes = []
    store.commit(nodes)


def saying_words(store: Store, area: Hidden) -> int:
    """How many messages of ``area`` have lines with their words: hiding them was cut."""
    sql = "SELECT count(*) FROM nodes WHERE level = 0 AND idx >= ? AND idx < ? AND by != ?"
    ranges = [(piece.first, piece.first + piece.length, _COPY) for piece in area.pieces]
    counts = store.read(lambda index: [index.rows(sql, values)[0][0] for values in ranges])
    return sum(counts)


def saying_none(store: Store, first: int, end: int) -> Hidden:
    """Those of messages [first, end) whose lines say that they are copies."""
    sql = "SELECT idx FROM nodes WHERE level = 0 AND idx >= ? AND idx < ? AND by = ?"
    found = store.read(lambda index: index.rows(sql, (first, end, _COPY)))
    return Hidden(Piece(id_, 0, 1) for (id_,) in found)


def find_copies(store: Store, progress: Callable[[str, int, int], None]) -> list[Stretch]:
    """The copies in a whole log, whether out of sight or not."""
    finder, total = CopyFinder(), store.total()
    for at, message in enumerate(store.messages(0, total)):
        if message is not None:
            finder.add(message)
        if not at % 1_000:
            progress("copies", at, total)
    progress("copies", total, total)
    return finder.find()


def _above(area: Hidden, total: int) -> Iterator[Place]:
    """All nodes that touch the area, children before parents."""
    for level in range(total.bit_length()):
        last = -1
        for piece in area.pieces:
            first, end = (
                piece.first >> level,
                min((piece.first + piece.length - 1) >> level, (total >> level) - 1),
            )
            for index in range(max(first, last + 1), end + 1):
                yield Place(level, index)
            last = max(last, end)


def _is_leaf(place: Place) -> bool:
    return place.level == 0


def _describe(index: Index, places: list[Place], gone: list[tuple[str, str, int]]) -> None:
    index.unbuild(places)
    index.write("DELETE FROM damage WHERE room = ? AND name = ? AND offset = ?", gone)
