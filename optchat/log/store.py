"""One memory directory's truth: the message log and the tree log, written and read.

Disk before memory, always: a record is acknowledged once its line is synced, and the index follows
(``recovery.py``). Used by ``memory/``; knows nothing of views, summaries or sessions' meaning.
"""

from __future__ import annotations

import contextlib
from dataclasses import fields as fields_of
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ..base.address import Place
from ..base.errors import StoreError
from ..base.json_line import BadLineError, clean
from ..base.record import (
    MAX_LEVEL,
    Entry,
    Message,
    Node,
    decode_message,
    decode_node,
    encode_message,
    encode_node,
)
from .day_files import day_name
from .loader import message_row, node_row
from .recovery import LOCK_WAIT_S, End, Upkeep
from .turns import turn_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from .day_files import Spot
    from .index import Index

_TEXTS_KEPT: Final = 4_096
"""Texts of lines kept in memory, about 2 MB: a view is rendered from them again and again."""
_TURN_MOST: Final = 64
"""Messages of one turn that are read: a turn can have thousands."""
_ANY_TIME: Final[Mapping[Place, int]] = MappingProxyType({})
_ENTRY_FIELDS: Final = tuple(field.name for field in fields_of(Entry))


class Store(Upkeep):
    """Messages and nodes on disk. Any number of stores, in any process, may share one directory."""

    # -- writing

    def record(self, entries: list[Entry], *, timeout_s: float = LOCK_WAIT_S) -> list[Message]:
        """Append entries as one write and one fsync; durable when this returns.

        Raises:
            LockTimeoutError: another process kept the lock; nothing was written.
            StoreError: the disk refused; nothing was written.

        """
        if not entries:
            return []
        self.must_be_writable()
        with self.locked(timeout_s=timeout_s):
            landed = self._landed(entries) if self._failed else []
            now = self.clock()
            stamp, first = now.isoformat(timespec="seconds"), self._next_id
            messages = [
                _placed(entry, first + k, stamp) for k, entry in enumerate(entries[len(landed) :])
            ]
            if messages:
                self._announce(day_name(now))
            try:
                spots = self.main.append([encode_message(message) for message in messages], now)
            except StoreError:
                self._failed = [*landed, *messages]
                raise
            if spots:
                self._next_id += len(messages)
                self.update_index(lambda index: _describe_messages(index, messages, spots))
                self._end = End(
                    self._generation,
                    first + len(messages),
                    spots[-1].name,
                    spots[-1].offset + spots[-1].length + 1,
                )
        return [*landed, *messages]

    def _landed(self, entries: list[Entry]) -> list[Message]:
        """Those of the entries that are in the log though writing them failed.

        A disk that refuses to write and then even to be cut back leaves whole lines behind, which
        are messages to everybody else. Said once more, they would be there twice.
        """
        failed, self._failed = self._failed, []
        landed: list[Message] = []
        for entry, message in zip(entries, failed, strict=False):
            if (
                _placed(entry, message.id, message.date) != message
                or self.message(message.id) != message
            ):
                break
            landed.append(message)
        return landed

    def commit(
        self,
        nodes: list[Node],
        *,
        read_at: Mapping[Place, int] = _ANY_TIME,
        timeout_s: float = LOCK_WAIT_S,
    ) -> list[Node]:
        """Append nodes as one write and one fsync.

        Those that were not built before, in the meantime perhaps by another process.

        ``read_at``: the generation of the index when the sources of a node were read. Where it is
        another by now, they may have been redacted since: such a node is not written, and made
        again from what is there.
        """
        self.must_be_writable()
        with self.locked(timeout_s=timeout_s):
            nodes = [
                node
                for node in nodes
                if read_at.get(Place(node.level, node.index), self._generation) == self._generation
            ]
            now = self.clock()
            stamped = {
                Place(node.level, node.index): _stamped(node, now.isoformat(timespec="seconds"))
                for node in nodes
            }
            built = self.read(lambda index: index.node_spots(stamped))
            # A fallback is written anew, by a model only: two processes must not replace it by one
            # fallback after the other.
            for place in self.read(lambda index: index.fallbacks(built)) if built else ():
                if stamped[place].by == "model":
                    del built[place]
            if built:  # they need not be asked for again, or the compactor would never rest
                self.update_index(lambda index: index.drop_ready(built))
            fresh = [node for place, node in stamped.items() if place not in built]
            if not fresh:
                return []
            spots = self.tree.append([encode_node(node) for node in fresh], now)
            self.update_index(lambda index: _describe_nodes(index, fresh, spots))
        return fresh

    # -- reading

    def messages(self, first: int, end: int) -> Iterator[Message | None]:
        """Messages [first, end) in order, read in bounded portions; None for one that is lost."""
        first, end = max(0, first), min(end, 1 << MAX_LEVEL)
        for start in range(first, end, 256):
            stop = min(end, start + 256)
            yield from self._load_messages(lambda index, a=start, b=stop: index.message_spots(a, b))  # type: ignore[misc]

    def message(self, id_: int) -> Message | None:
        """One message, or None if it is lost."""
        return next(self.messages(id_, id_ + 1), None)

    def messages_of(self, ids: Collection[int]) -> list[Message]:
        """Those of these messages that are there, in the order of the log."""
        return [
            message
            for message in self._load_messages(lambda index: index.spots_of(ids))
            if message is not None
        ]

    def turn_of(self, id_: int) -> list[Message]:
        """The turn a message belongs to.

        Its user's message and what came of it in its session; of a long one both ends.

        Empty where no user has spoken before the message.
        """
        ids = self.read(lambda index: turn_ids(index, id_))
        half = _TURN_MOST // 2
        return (
            self.messages_of(ids if len(ids) <= _TURN_MOST else [*ids[:half], *ids[-half:]])
            if ids
            else []
        )

    def session_messages(self, session: str, first: int = 0) -> Iterator[Message]:
        """The messages of one session from id ``first`` on, in order."""
        session = clean(session)
        spots = self.read(lambda index: index.session_spots(session, first))
        for start in range(0, len(spots), 256):
            for message in self._load_messages(
                lambda _index, part=spots[start : start + 256]: part  # type: ignore[misc]
            ):
                if message is not None and message.session == session:
                    yield message

    def texts(self, places: list[Place]) -> dict[Place, str]:
        """The texts of the nodes among ``places`` that are built.

        The most recent few thousand are kept in memory.
        """
        rewritten = self.read(lambda index: index.rewritten())
        if rewritten != self._texts_of:
            # another one: what a thread has just read from the old lines goes into the old one
            self._texts = {}
            self._texts_of = rewritten
        kept = self._texts
        found = {place: kept[place] for place in places if place in kept}
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
                    _keep(kept, place, node.text)
            if any(place not in found for place in spots):
                self.rebuild_if_stale("a line of the tree is not where the index says")
        return found

    # -- inside

    def _load_messages(
        self, where: Callable[[Index], list[tuple[int, Spot | None]]]
    ) -> list[Message | None]:
        spots = self.read(where)
        messages, wrong = self._decode_messages(spots)
        if wrong:
            self.rebuild_if_stale("a message is not where the index says")
            again = self.read(
                lambda index: [row for id_, _ in spots for row in index.message_spots(id_, id_ + 1)]
            )
            messages, _ = self._decode_messages(again)
        return messages

    def _decode_messages(
        self, spots: list[tuple[int, Spot | None]]
    ) -> tuple[list[Message | None], bool]:
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


def _keep(texts: dict[Place, str], place: Place, text: str) -> None:
    while len(texts) >= _TEXTS_KEPT:
        with contextlib.suppress(
            StopIteration, KeyError, RuntimeError
        ):  # another thread may be dropping the same one
            del texts[next(iter(texts))]
    texts[place] = text


def _describe_messages(index: Index, messages: list[Message], spots: list[Spot]) -> None:
    index.add_messages(
        [message_row(m, s) for m, s in zip(messages, spots, strict=True)], "main", new=True
    )
    index.set_known("main", spots[-1].name, spots[-1].offset + spots[-1].length + 1)


def _describe_nodes(index: Index, nodes: list[Node], spots: list[Spot]) -> None:
    index.add_nodes([node_row(n, s) for n, s in zip(nodes, spots, strict=True)], "tree")
    index.set_known("tree", spots[-1].name, spots[-1].offset + spots[-1].length + 1)


def _placed(entry: Entry, id_: int, stamp: str) -> Message:
    """The message an entry becomes.

    Half characters go here, before anything is written: the index would fail after the log had it.
    """
    fields = {name: getattr(entry, name) for name in _ENTRY_FIELDS}
    for name, value in fields.items():
        if value and isinstance(value, str) and not value.isascii():
            fields[name] = clean(value)
    fields["date"] = fields["date"] or stamp
    return Message(id=id_, **fields)


def _stamped(node: Node, stamp: str) -> Node:
    if node.date and node.text.isascii():
        return node
    return replace(node, text=clean(node.text), date=node.date or stamp)
