"""The compactor's own view: what a model is told of the past before it sums up a message.

"Do it" means nothing without it.

Between two batches of merges it only grows at its end, so that one call after another sends the
same prefix and an endpoint's cache serves it. Only built lines stand in it, without their numbers,
which models copy; it ends before the node in question and before the first message whose line is
not built. Kept in ``context.json`` by the holder of ``compactor.lock``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..base.address import Place
from ..base.errors import StoreError
from ..log.hidden import NOTHING
from ..log.index import Index
from ..tree import saved_view
from ..tree.lines import Lines
from ..tree.view import Line, Marks, View
from .model import CallError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..log.hidden import Hidden
    from ..log.store import Store

HIGH_BYTES: Final = 32_768
LOW_BYTES: Final = 16_384
"""The sawtooth of the published design.

16 KB tell enough of the past, and half of each request is then a prefix that stays.
"""

_LEAVES_AT_ONCE: Final = 512
"""More new messages than this are taken in from the coarsest lines down.

They would not fit as leaves.
"""
_MASKING_BROKEN: Final = 3
"""So many lines that cannot be masked, and none that can."""

logger = logging.getLogger(__name__)


def _weigh(line: Line) -> int:
    return 0 if line.chars is None else line.chars + 1


class Context:
    """One memory's context view, in bytes. Used by one thread."""

    def __init__(
        self,
        store: Store,
        path: Path,
        ready_to_send: Callable[[str], str],
        hidden: Callable[[], Hidden] = lambda: NOTHING,
    ) -> None:
        """``ready_to_send``: makes a text fit to leave the machine, as one line.

        ``hidden``: which messages are out of sight just now.
        """
        self._store = store
        self._path = path
        self._ready_to_send = ready_to_send
        self._tree = Lines(store, Index.bytes, hidden)
        self._marks = Marks(HIGH_BYTES, LOW_BYTES)
        self._view: View | None = None
        self._rewritten = 0
        self._generation = 0
        self._sent: dict[
            Place, str
            # the lines as they are sent: masking them anew for each call would cost more than all
            # else
        ] = {}
        self._trouble = ""

    def text(self, first: int, front: int) -> str:
        """Lines for what came before message ``first``, oldest first, one a row.

        ``front``: the first message without a line.

        Raises:
            CallError: no line can be made ready to send.
        """
        view = self._extended(min(first, front))
        lines = [line for line in view.lines if line.place.end <= first]
        texts = self._texts(lines)
        room = HIGH_BYTES
        at = len(texts)
        while at and (room := room - len(texts[at - 1].encode()) - 1) >= 0:
            # with parents still missing the lines cannot merge: the newest are then those that tell
            # most
            at -= 1
        return "\n".join(texts[at:])

    # -- inside

    def _extended(self, end: int) -> View:
        """The view, taken up to message ``end`` if it did not reach that far, and merged if it has
        grown too large.
        """
        view = self._loaded()
        reached = view.lines[-1].place.end if view.lines else 0
        if end <= reached:
            return view
        if end - reached <= _LEAVES_AT_ONCE:
            leaves = self._store.read(lambda index: index.leaves(reached, end, _LEAVES_AT_ONCE))
            found = [line for id_, _ in leaves if (line := self._tree.at(Place(0, id_)))]
        else:
            found, _ = self._tree.unfold(reached, end, end, LOW_BYTES, weigh=_weigh)
        view.insert(found)
        view.total = end
        if (
            view.fold(self._marks, weigh=_weigh, parent=self._tree.at)
            or end - reached > _LEAVES_AT_ONCE
        ):
            self._save(view)
        return view

    def _loaded(self) -> View:
        rewritten = self._store.read(lambda index: index.rewritten())
        if self._view is not None and rewritten == self._rewritten:
            return self._view
        self._rewritten = rewritten
        self._sent.clear()
        if self._view is None:
            saved = saved_view.load(self._path)
            self._generation = saved.generation if saved else 0
            places = saved.lines if saved else ()
        else:
            places = tuple(line.place for line in self._view.lines)
        lines = [self._tree.at(place) for place in places]
        at = 0
        for line in lines:  # what stands behind a line that is gone is taken in again
            if line is None or line.place.first != at:
                break
            at = line.place.end
        self._view = View([line for line in lines if line is not None and line.place.end <= at], at)
        return self._view

    def _texts(self, lines: list[Line]) -> list[str]:
        missing = [line.place for line in lines if line.place not in self._sent]
        if missing:
            self._make_ready(self._store.texts(missing))
        kept = {line.place: self._sent[line.place] for line in lines if line.place in self._sent}
        if len(self._sent) > 2 * len(kept) + 64:
            self._sent = dict(kept)
        return list(kept.values())

    def _make_ready(self, texts: dict[Place, str]) -> None:
        """Make these lines ready to send, once for all requests.

        One line that cannot be masked is left out, or no line after it would ever be written. Where
        none can be, it is the masking that is broken, and not a text.
        """
        failed: list[CallError] = []
        for place, text in texts.items():
            try:
                self._sent[place] = self._ready_to_send(text)
            except CallError as error:
                failed.append(error)
        if len(failed) >= _MASKING_BROKEN and not self._sent:
            raise failed[0]

    def _save(self, view: View) -> None:
        self._generation += 1
        saved = saved_view.SavedView(
            tuple(line.place for line in view.lines), HIGH_BYTES, self._generation
        )
        try:
            saved_view.save(self._path, saved)
            self._trouble = ""
        # it is made again after a restart; only a cache that holds the old one is then worth
        # nothing
        except StoreError as error:
            if str(error) != self._trouble:
                logger.warning("optchat: the context of the model is not saved: %s", error)
            self._trouble = str(error)
