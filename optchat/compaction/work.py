"""A memory's store as the compactor sees it: jobs to take, nodes to commit, messages to make searchable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage.loader import LOST_TEXT
from .compactor import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.records import Message, Node
    from ..core.tree import Place
    from ..storage.rows import Ready
    from ..storage.search import Search
    from ..storage.store import Store

MESSAGES_AT_ONCE: Final = 1_000


class StoreWork:
    """``Work`` over one store. ``rested`` is called when nothing is left to build, for the view to follow."""

    def __init__(self, store: Store, search: Search, node_bytes: int, rested: Callable[[], None]) -> None:
        self._store = store
        self._search = search
        self._node_bytes = node_bytes
        self._rested = rested

    def take(self, nodes: int, bytes_: int, *, free_only: bool) -> list[Job]:
        """The next jobs, children before parents and old before new."""
        limit = self._node_bytes if free_only else None
        chosen: list[Ready] = []
        for ready in self._store.read(lambda index: index.ready(nodes, free_bytes=limit)):
            bytes_ -= ready.source_bytes
            if chosen and bytes_ < 0:
                break
            chosen.append(ready)
        messages = self._messages([ready.place.index for ready in chosen if ready.place.level == 0])
        texts = self._store.texts([child for ready in chosen if ready.place.level for child in ready.place.children])
        jobs = (self._job(ready, messages, texts) for ready in chosen)
        return [job for job in jobs if job is not None]

    def commit(self, nodes: list[Node]) -> None:
        """Tree log first, then index."""
        self._store.commit(nodes)

    def rest(self) -> None:
        """The tree is complete for now: the view may merge."""
        self._rested()

    def extend_search(self, bytes_: int) -> bool:
        """Make the next messages searchable, at most a thousand and about so many characters."""
        first, total = self._search.indexed(), self._store.total()
        if first > total:  # the log is shorter than what was indexed: another log, or a restored one
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
            self._search.add(first, texts, dates)
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
            found.update(zip(ids[at:end], self._store.messages(ids[at], ids[end - 1] + 1), strict=False))
            at = end
        if len(found) < len(ids):
            self._store.mistrust("it wants the lines of messages that were never logged")
        return found

    def _job(self, ready: Ready, messages: dict[int, Message | None], texts: dict[Place, str]) -> Job | None:
        place = ready.place
        if place.level == 0:
            if place.index not in messages:
                return None
            message = messages[place.index]
            if message is None:
                return Job(place, "note", (LOST_TEXT.format(place.index),), 0)
            return Job(place, message.kind, (message.text,), ready.source_bytes)
        halves = tuple(texts[child] for child in place.children if child in texts)
        # A half that cannot be read is damaged on disk; the index is being rebuilt, and this merge comes back when it is whole.
        return Job(place, "", halves, ready.source_bytes) if len(halves) == 2 else None
