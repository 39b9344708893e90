"""What a search gives.

The messages that hold the words asked for, best or newest first, each with a line that can be
opened.

Ranks as ``focus.py`` does; unlike a question that nobody asked to be looked up, a search is
answered however common its words are and however long a message is. Called by ``memory/``, for the
command and the tool alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from .focus import READ, Question, ask, line_of, ranked, same

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..base.record import Message
    from ..log.fulltext import Search
    from ..log.store import Store

MOST: Final = 1_000
"""Most messages one search gives: all of them are read whole."""

LINE_CHARS: Final = 400
"""A longer message is shown in part: the whole is a zoom away."""

_TOLD: Final = 0.6
"""Newest first, a message is a hit if it holds at least this share of what the one holds that holds
most: one word of two is none.
"""


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found, whole.

    ``line``: how it is shown, ``id+1|kind: text``, of a long one the part asked for.
    """

    id: int
    kind: str
    text: str
    date: str
    session: str
    line: str

    @classmethod
    def of(cls, message: Message, line: str) -> Hit:
        """The hit that shows this message."""
        return cls(message.id, message.kind, message.text, message.date, message.session, line)


def hits(
    store: Store, search: Search, query: str, limit: int, *, newest: bool = False
) -> list[Hit]:
    """At most ``limit`` messages that hold words of ``query``, a repeated text once.

    Best first, or newest first.

    Raises:
        StoreError: the index cannot be read.
    """
    limit = max(1, min(limit, MOST))
    question = ask(search, query, functions=True)
    held = question.held()
    if question.term_weights and not held:
        messages = _read(store, _common(search, question, limit + READ))
    elif newest:
        messages = _read(store, _newest(held))
    else:
        messages = _best(store, question, held)
    once: dict[str, Message] = {}
    for message in islice(messages, limit + READ):
        once.setdefault(same(message), message)
        if len(once) == limit:
            break
    return [
        Hit.of(message, line_of(message, question.term_weights, LINE_CHARS).shown)
        for message in once.values()
    ]


def _common(search: Search, question: Question, most: int) -> Sequence[int]:
    """The newest messages where every word asked for stands in so many that they are not listed.

    Those with all, else with the rarest.
    """
    return search.newest(question.term_weights, most) or search.newest(
        [max(question.term_weights, key=question.term_weights.__getitem__)], most
    )


def _newest(held: dict[int, float]) -> list[int]:
    """The messages that hold enough of what was asked for, newest first."""
    least = _TOLD * max(held.values(), default=0.0)
    return sorted((id_ for id_, worth in held.items() if worth >= least), reverse=True)


def _best(store: Store, question: Question, held: dict[int, float]) -> Iterator[Message]:
    """The ranked ones, then what was too much or too large to be read for a rank.

    By what it holds, of equals the newest.
    """
    best = [match.message for match in ranked(store, question, neighbours=False)]
    yield from best
    left = held.keys() - {message.id for message in best}
    yield from _read(store, sorted(left, key=lambda id_: (held[id_], id_), reverse=True))


def _read(store: Store, ids: Iterable[int]) -> Iterator[Message]:
    """These messages in this order, each read when it is wanted."""
    return (message for message in map(store.message, ids) if message is not None)


__all__ = ["MOST", "hits"]
