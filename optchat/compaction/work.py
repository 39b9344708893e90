"""A memory's store as the compactor sees it.

Jobs to take, nodes to commit, messages to make searchable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base.address import Place
from ..base.cost import CHEAP, Cost
from ..log.hidden import NOTHING, Hidden
from ..log.loader import LOST_TEXT
from ..log.rows import Ready
from .job import Job
from .model_calls import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ..base.record import Message, Node
    from ..log.fulltext import Search
    from ..log.store import Store
    from .context import Context

MESSAGES_AT_ONCE: Final = 1_000
"""Messages made searchable in one transaction.

After it the compactor looks again whether a turn has begun.
"""
_CHEAP_LOOKED_AT: Final = 64
"""Cheap lines are built at once: where more than these are missing, that many are."""


class StoreWork:
    """What the compactor and the model calls need of one store.

    Every method may raise ``OptchatError``: it is reported and tried again later. ``rested`` is
    called when nothing is left to build, for the view to follow.
    """

    def __init__(
        self,
        store: Store,
        search: Search,
        rested: Callable[[], None],
        context: Context | None = None,
        hidden: Callable[[], Hidden] = lambda: NOTHING,
    ) -> None:
        """``hidden``: which messages are out of sight just now, whose words no line says."""
        self._store = store
        self._hidden = hidden
        self._search = search
        self._rested = rested
        self._context = context
        self._read_at: dict[
            Place, int
        ] = {}  # in which generation of the index the sources of a job were read

    def take(self, nodes: int, bytes_: int, costs: Collection[Cost]) -> list[Job]:
        """The next jobs of these costs, children before parents and old before new."""
        chosen: list[Ready] = []
        for ready in self._store.read(lambda index: index.ready(nodes, costs)):
            bytes_ -= ready.source_bytes
            if chosen and bytes_ < 0:
                break
            chosen.append(ready)
        return self.jobs(chosen)

    def jobs(self, chosen: Sequence[Ready]) -> list[Job]:
        """The sources of these nodes; without those that cannot be read just now."""
        generation = self._store.read(lambda index: index.generation())
        self._read_at.update((ready.place, generation) for ready in chosen)
        messages = self._messages(
            sorted(ready.place.index for ready in chosen if ready.place.level == 0)
        )
        texts = self._store.texts(
            [child for ready in chosen if ready.place.level for child in ready.place.children]
        )
        hidden = self._hidden() if chosen else NOTHING
        jobs = (self._job(ready, messages, texts) for ready in chosen)
        return [_less(job, hidden) if hidden else job for job in jobs if job is not None]

    def waiting(self, limit: int) -> Waiting:
        """The first nodes whose line a model is to write and that can be built."""
        found = self._store.read(lambda index: index.ready(limit, [Cost.MODEL]))
        cheap = self._store.read(lambda index: index.ready(_CHEAP_LOOKED_AT, CHEAP))
        total = self._store.total()
        front = min(_first_leaf(found, limit, total), _first_leaf(cheap, _CHEAP_LOOKED_AT, total))
        return Waiting(
            found, front, [ready.place.first for ready in cheap if ready.place.level == 0]
        )

    def fallbacks(self) -> list[Ready]:
        """Nodes whose line is a fallback and whose parent is not built.

        The last whole node of each level, if at all.
        """
        total = self._store.total()
        ends = [Place(level, (total >> level) - 1) for level in range(total.bit_length())]
        return [
            Ready(place, 0, Cost.MODEL, spare=False)
            for place in self._store.read(lambda index: index.fallbacks(ends))
        ]

    def context(self, job: Job, front: int) -> str:
        """What the model is told of the past for this job."""
        return self._context.text(job.place.first, front) if self._context else ""

    def spare_halves(self, job: Job) -> set[Place]:
        """Those of a merge's halves that hold nothing worth a model's words."""
        return self._store.read(lambda index: index.spares(job.place.children))

    def commit(self, nodes: list[Node]) -> None:
        """Tree log first, then index; without what was made from words that are gone since."""
        self._store.commit(nodes, read_at=self._read_at)
        for node in nodes:
            self._read_at.pop(Place(node.level, node.index), None)

    def rest(self) -> None:
        """The tree is complete for now: the view may merge."""
        self._rested()

    def extend_search(self, bytes_: int) -> bool:
        """Make the next messages searchable, at most a thousand and about so many characters."""
        since = self._search.made()
        first, total = self._search.indexed(), self._store.total()
        if (
            first > total
        ):  # the log is shorter than what was indexed: another log, or a restored one
            first = 0
        texts: list[str] = []
        dates: list[str] = []
        for message in self._store.messages(first, min(total, first + MESSAGES_AT_ONCE)):
            texts.append("" if message is None else message.text)
            dates.append("" if message is None else message.date)
            bytes_ -= len(texts[-1])
            if bytes_ < 0:
                break
        if texts:
            self._search.add(first, texts, dates, since=since)
        return bool(texts)

    def version(self) -> object:
        """Changes whenever any process has logged or built something."""
        return self._store.read(lambda index: (index.identity, index.data_version()))

    def _messages(self, ids: list[int]) -> dict[int, Message | None]:
        """The messages of these ids, read run by run."""
        found: dict[int, Message | None] = {}
        at = 0
        while at < len(ids):
            end = at + 1
            while end < len(ids) and ids[end] == ids[end - 1] + 1:
                end += 1
            found.update(
                zip(ids[at:end], self._store.messages(ids[at], ids[end - 1] + 1), strict=False)
            )
            at = end
        if len(found) < len(ids):
            self._store.rebuild_if_stale("it wants the lines of messages that were never logged")
        return found

    def _job(
        self, ready: Ready, messages: dict[int, Message | None], texts: dict[Place, str]
    ) -> Job | None:
        place = ready.place
        if place.level == 0:
            if place.index not in messages:
                return None
            message = messages[place.index]
            if message is None:
                return Job(place, "note", (LOST_TEXT.format(place.index),), 0, spare=True)
            return Job(place, message.kind, (message.text,), ready.source_bytes, ready.spare)
        halves = tuple(texts[child] for child in place.children if child in texts)
        # A half that cannot be read is damaged on disk; the index is being rebuilt, and this merge
        # comes back when it is whole.
        return Job(place, "", halves, ready.source_bytes, ready.spare) if len(halves) == 2 else None


def _less(job: Job, hidden: Hidden) -> Job:
    """The job without the words of messages out of sight: of two halves, the other's line stays."""
    place = job.place
    if hidden.covers(place):
        return job._replace(known=(hidden.line(place), "copy"), spare=True)
    if place.level:
        for half, other in zip(place.children, reversed(job.sources), strict=True):
            if hidden.covers(half):
                return job._replace(known=(other, "free"))
    return job


def _first_leaf(found: list[Ready], limit: int, total: int) -> int:
    """The first message among these without a line.

    Where only so many were looked at, none before the last of them lacks one.
    """
    for ready in found:
        if ready.place.level == 0:
            return ready.place.first
    return found[-1].place.end - 1 if len(found) == limit else total
