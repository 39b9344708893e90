"""Finding the messages a question points to: terms, where they stand, the few hundred that may matter read and ranked.

Waits for nobody and reads a bounded number of messages, whatever the log's size and whatever is asked. Called by ``recall.py`` and by
``memory.py`` for searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core import words
from ..core.rank import Candidate, Clue, rank, shortlist, strength

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.records import Message
    from ..storage.search import Found, Search
    from ..storage.store import Store

READ: Final = 200
"""Messages read for one question, at most."""

_LISTED: Final = 1_500
_ALIKE: Final = 2
"""Of messages that hold the same terms and are of one size, so many are read: they are as good as certainly one text, repeated."""

_COUNTED_CHARS: Final = 8_000
"""A longer message is taken to hold once what the index says it holds: counting would take longer than ranking is worth."""

_BYTES_READ: Final = 400_000
"""A message larger than this is not read for a question: it stands for itself in the view."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Messages that answer a question, best first, with their scores, and how sharply it points at them (``core.rank.strength``)."""

    messages: list[Message]
    scores: list[float]
    strength: float
    total: int
    worths: Mapping[str, float]


def find(store: Store, search: Search, query: str) -> Hits:
    """The messages that answer ``query``, out of all that are searchable."""
    asked = words.asked(query)
    found = search.look_up(asked) if asked else None
    if not found or not found.postings:
        return Hits([], [], 0.0, 0, {})
    worths = {term: asked[term] * words.rarity(posting.count, found.total) for term, posting in found.postings.items()}
    listed = shortlist((Clue(worths[term], posting.ids) for term, posting in found.postings.items()), found.total, _LISTED)
    messages = {message.id: message for message in store.messages_of(_worth_reading(store, listed, found))}
    candidates = [_candidate(message, worths, found) for message in messages.values()]
    scores = rank(candidates, worths, found.mean_chars)
    return Hits([messages[id_] for id_ in scores], list(scores.values()), strength(candidates, worths), found.total, worths)


def _worth_reading(store: Store, listed: list[int], found: Found) -> list[int]:
    """The best of the shortlist that are not too large, repeats left out where that can be told without reading them."""
    sizes = store.read(lambda index: index.sizes_of(listed))
    holds: dict[int, int] = {}
    for bit, posting in enumerate(found.postings.values()):
        for id_ in sizes.keys() & posting.ids:
            holds[id_] = holds.get(id_, 0) | 1 << bit
    alike: dict[tuple[int, int], int] = {}
    chosen: list[int] = []
    for id_ in listed:
        size, held = sizes.get(id_, _BYTES_READ), holds.get(id_, 0)
        alike[size, held] = alike.get((size, held), 0) + 1
        if size < _BYTES_READ and (not held or alike[size, held] <= _ALIKE):
            chosen.append(id_)
            if len(chosen) == READ:
                break
    return chosen


def _candidate(message: Message, worths: Mapping[str, float], found: Found) -> Candidate:
    text = message.text
    if len(text) <= _COUNTED_CHARS:
        counts = words.counted(text, worths, message.date)
    else:
        counts = {term: 1 for term, posting in found.postings.items() if message.id in posting.ids}
    return Candidate(message.id, message.kind, message.session, len(text), counts, " ".join(text[:_COUNTED_CHARS].split()).casefold())
