"""The view of a memory as it stands.

Loaded from ``view.json``, extended to the end of the log, merged in batches and saved.

Only merges are saved. Whoever merges holds the write lock and starts from the saved lines, so all
processes show the same view. Showing it waits for nobody: what could not be merged in time is
merged for that one rendering. A batch waits until no node is ready to be built: while parents of
old lines are still missing, only the newest pairs could merge, and merges are never undone. For
lines that wait for a model it does not wait, and merges nothing that would not have merged with
them (``tree/view.py: merge_in_time``).
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from ..base.address import Place
from ..base.cost import ALL, Cost
from ..base.errors import LockTimeoutError, StoreError
from ..log import forks, reads
from ..log.hidden import NOTHING
from . import saved_view
from .lines import EXPECTED, LINES_MAX, Lines, with_said
from .render import FRAME_CHARS, render, weigh
from .view import Line, Marks, View, parents_within, tile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ..log.hidden import Hidden
    from ..log.store import Store

LOW_MARK: Final = 0.75
"""Share of the budget a batch of merges goes down to.

A cached prefix then lasts for a quarter of the budget of new lines.
"""
_SMALL_GAP: Final = 8
"""Messages of a gap that are looked for one by one."""

logger = logging.getLogger(__name__)


class LiveView:
    """One memory's view. Safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        path: Path,
        budget: int,
        *,
        awaited: Collection[Cost] = ALL,
        expected: int = EXPECTED,
        hidden: Callable[[], Hidden] = lambda: NOTHING,
    ) -> None:
        """``awaited``: a batch waits for ready nodes of these costs.

        It does not for those that nobody builds or that wait for a model. ``expected``: characters
        of a line that is not built yet, and of the longest message that is its own line.
        ``hidden``: which messages are out of sight just now.
        """
        self._store = store
        self._tree = Lines(store, hidden=hidden)
        self._hidden = hidden
        self._folded_for = NOTHING  # what was out of sight when our lines were chosen
        self._awaited = awaited
        self.node_bytes = expected
        self._rewritten = 0  # how often lines had been rewritten when ours were weighed
        self._path = path
        self._budget = budget
        self._marks = Marks(budget - FRAME_CHARS, int(budget * LOW_MARK) - FRAME_CHARS)
        self._view = View([], 0)
        # before this message, what is not covered by a line is shown as blocks whatever is built
        # there
        self._floor = 0
        self._generation = 0
        self._version: tuple[int, int, int] | None = None
        self._loaded = False
        self._unsaved = False
        self._trouble = ""
        self._frozen = False
        self._mutex = threading.Lock()

    def text(self) -> str:
        """The view rendered within the budget.

        Merges are saved if the write lock is free this instant, and wait otherwise.
        """
        lines, total, texts = self.now()
        parents = Parents(self._store, list(tile(lines, total)))
        return render(lines, total, self._budget, parent=parents, text=texts)

    def now(self) -> tuple[list[Line], int, Callable[[list[Place]], dict[Place, str]]]:
        """The lines, what was just said among them, the number of messages they stand for, and what
        gives their texts.
        """
        lines, total = self.lines()
        lines, said = with_said(self._store, lines, 0, total, self.node_bytes)
        return lines, total, lambda places: said | self._store.texts(places)

    def lines(self) -> tuple[list[Line], int]:
        """The lines and the number of messages they stand for."""
        self.update(wait_s=0.0)
        with self._mutex:
            return list(self._view.lines), self._view.total

    def update(self, *, wait_s: float) -> None:
        """Extend to the end of the log and, if the high mark is passed, merge one batch and save
        it.
        """
        with self._mutex:
            self._reload()
            self._weigh_anew()
            self._extend()
            if self._tree_is_growing() or not (
                self._unsaved or self._view.weight(weigh) > self._marks.high
            ):
                return
            if not (self._unsaved or self._would_merge()):
                # the lock is not taken at every turn for nothing, as long as lines wait for a model
                return
            try:
                with self._store.locked(timeout_s=wait_s):
                    self._merge()
            except LockTimeoutError:
                return  # the next update merges; until then each rendering merges for itself
            except StoreError as error:
                # A full disk is no reason to show nothing. The merges stay in memory and are saved
                # by the next update that can.
                if str(error) != self._trouble:
                    logger.warning("optchat: the view is shown, but not saved: %s", error)
                self._trouble = str(error)

    def before_fork(self) -> None:
        """Let nobody be in the middle of an update when this process forks."""
        self._frozen = self._mutex.acquire(timeout=forks.WAIT_S)

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent or as the child."""
        if child:
            self._mutex = threading.Lock()
        elif self._frozen:
            self._mutex.release()

    # -- inside

    def _merge(self) -> None:
        """Under the write lock: from the saved lines to the log's end, merged, saved."""
        self._reload()
        self._extend()
        self._unsaved |= self._fold(self._view)
        if len(self._view.lines) > LINES_MAX:
            del self._view.lines[: -LINES_MAX // 2]
            self._floor = self._view.lines[0].place.first
            self._unsaved = True
        if self._unsaved:
            self._generation += 1
            lines = tuple(line.place for line in self._view.lines)
            saved_view.save(self._path, saved_view.SavedView(lines, self._budget, self._generation))
            self._version = reads.version_of(self._path)
            self._loaded, self._unsaved, self._trouble = True, False, ""

    def _weigh_anew(self) -> None:
        """Where built lines have got other texts since, give ours their new sizes.

        One that is not built any more becomes a gap.
        """
        rewritten = self._store.read(lambda index: index.rewritten())
        if rewritten != self._rewritten:
            self._rewritten = rewritten
            if self._hidden() is not self._folded_for:
                self._loaded = False  # lines never part, and copies would keep the room they had
                self._reload()
            chars = self._store.read(
                lambda index: index.chars_of([line.place for line in self._view.lines])
            )
            self._view.lines = [
                Line(line.place, chars[line.place])
                for line in self._view.lines
                if line.place in chars
            ]

    def _tree_is_growing(self) -> bool:
        """Whether a batch should wait for lines that are about to be built.

        Not for ever, where one of them never is.

        More lines than can be held are merged without waiting. Where they cannot merge, because
        lines between them are not built and will not be, the oldest are let go of and shown as
        blocks.
        """
        if len(self._view.lines) > LINES_MAX:
            return False
        return bool(self._store.read(lambda index: index.ready(1, self._awaited)))

    def _would_merge(self) -> bool:
        """Whether a batch would change anything."""
        return len(self._view.lines) > LINES_MAX or self._fold(
            View(self._view.lines, self._view.total)
        )

    def _fold(self, view: View) -> bool:
        """One batch; whether it has merged any lines."""
        # Too many to wait for lines that a model may never write.
        many = len(view.lines) > LINES_MAX
        parents = Parents(self._store, list(tile(view.lines, view.total)))
        return view.fold(
            self._marks, weigh=weigh, parent=parents, expected=None if many else self.node_bytes
        )

    def _extend(self) -> None:
        """Bring in the leaves built since.

        For a long stretch, what of it a whole view could show.
        """
        self._view.total = self._store.total()
        gaps = [(max(start, self._floor), end) for start, end in self._view.gaps()]
        # Where a model is behind, there are many small ones, a message or two each.
        small = [
            Place(0, id_)
            for first, end in gaps
            if end - first <= _SMALL_GAP
            for id_ in range(first, end)
        ]
        built = self._store.read(lambda index: index.chars_of(small))
        self._view.insert([Line(place, built[place]) for place in small if place in built])
        for first, end in gaps:
            if end - first <= _SMALL_GAP:
                continue
            leaves = self._store.read(
                lambda index, a=first, b=end: index.leaves(a, b, LINES_MAX + 1)  # type: ignore[misc]
            )
            if len(leaves) <= LINES_MAX:
                self._view.insert([Line(Place(0, id_), chars) for id_, chars in leaves])
            else:
                self._view.insert(self._unfold(first, end, self._marks.high))
                # Until they are saved, the next update starts again from the saved lines.
                self._loaded = False

    def _reload(self) -> None:
        """Start from the saved lines, unless they are those we have.

        Fold anew where there are none to use.
        """
        version = reads.version_of(self._path)
        if version == self._version and self._loaded:
            return
        self._folded_for = self._hidden()
        saved = saved_view.load(self._path) if version else None
        self._version, self._loaded, self._unsaved, self._floor = version, True, False, 0
        if saved is not None:
            self._generation = max(self._generation, saved.generation)
            chars = self._store.read(lambda index: index.chars_of(saved.lines))
            lines = [Line(place, chars.get(place)) for place in saved.lines]
            # Folded for a smaller budget, finer lines fit now; and a tree that has lost a line of
            # the view needs another view.
            if saved.budget >= self._budget and all(line.chars is not None for line in lines):
                self._view = View(lines, 0)
                return
        self._fold_anew()

    def _fold_anew(self) -> None:
        """Top down from the coarsest built nodes, for a new, unreadable or outgrown view.

        O(lines), whatever the log's size.

        A log whose leaves all fit is shown as its leaves, as by a process that was there from the
        start and never had to merge.
        """
        total = self._store.total()
        for target in (self._marks.high, self._marks.low):
            lines = self._unfold(0, total, target)
            if all(line.place.level == 0 or self._folded_for.covers(line.place) for line in lines):
                break
        else:
            self._unsaved = True
        self._view = View(lines, total)

    def _unfold(self, first: int, end: int, target: int) -> list[Line]:
        """Messages [first, end) as lines of at most ``target`` characters."""
        lines, floor = self._tree.unfold(
            first, end, self._store.total(), target, weigh=weigh, expected=self.node_bytes
        )
        self._floor = floor or self._floor
        return lines


class Parents:
    """The parents of lines that may merge, all looked up at once and not before one is asked for.

    With a model that is behind, a view has thousands of lines that cannot merge, and would ask for
    each of their parents each time.
    """

    def __init__(self, store: Store, lines: list[Line]) -> None:
        """``lines``: what is merged, gaps included."""
        self._store, self._lines = store, lines
        self._chars: dict[Place, int] | None = None

    def __call__(self, place: Place) -> Line | None:
        """The line of a parent, or None if it is not built."""
        chars = self._found().get(place)
        return None if chars is None else Line(place, chars)

    def _found(self) -> dict[Place, int]:
        if self._chars is None:
            places = parents_within(self._lines)
            self._chars = self._store.read(lambda index: index.chars_of(places))
        return self._chars
