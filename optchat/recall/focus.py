"""Finding the messages a question points to.

Terms, where they stand, the few hundred that may matter read and ranked.

Waits for nobody and reads a bounded number of messages, whatever the log's size and whatever is
asked. Called by ``recall.py`` for what is shown unasked and by ``search.py`` for what is searched
for: there is one ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..base import terms
from ..log.fulltext import Found
from ..tree.render import one_line
from .focus_lines import FocusLine
from .passage import passage
from .rank import Candidate, QueryTerm, rank, shortlist, strength

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..base.record import Message
    from ..log.fulltext import Search
    from ..log.store import Store

READ: Final = 150
"""Messages read for one question, at most."""

_LISTED: Final = 800
"""Messages that are compared by their terms alone; the best of them are read."""
_ALIKE: Final = 2
"""Of messages that hold the same terms and are of one size, so many are read before all others.

The rest are likely one text, repeated.
"""

_COMPARED: Final = 2_000
"""Characters by which two messages are told apart."""

_SHORT: Final = 3
"""Letters of a term that is counted once in each message."""

_BYTES_READ: Final = 400_000
"""A message larger than this is not read for a question: it stands for itself in the view."""


@dataclass(frozen=True, slots=True)
class Match:
    """A message that answers a question.

    Its score among the others, and how sharply the question points at it by itself.
    """

    message: Message
    score: float
    strength: float


@dataclass(frozen=True, slots=True)
class Matches:
    """The messages that answer a question, best first, out of ``total``.

    ``term_weights`` of its terms.
    """

    best: list[Match]
    total: int
    term_weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Question:
    """Where the terms of a question stand, and what each of them tells."""

    found: Found
    term_weights: Mapping[str, float]

    def held(self) -> dict[int, float]:
        """What the terms are worth together that each of the listed messages holds."""
        held: dict[int, float] = {}
        for term, posting in self.found.postings.items():
            for id_ in posting.ids:
                held[id_] = held.get(id_, 0.0) + self.term_weights[term]
        return held


def ask(search: Search, query: str, *, functions: bool = False) -> Question:
    """Look the terms of ``query`` up.

    With ``functions``, words such as *what* and *is* where it holds no others.
    """
    asked = terms.asked(query)
    if functions and not asked:
        asked = terms.asked(query, functions=True)
    found = search.look_up(asked) if asked else Found()
    return Question(
        found,
        {
            term: asked[term] * terms.rarity(posting.count, found.total)
            for term, posting in found.postings.items()
        },
    )


def find(store: Store, search: Search, query: str) -> Matches:
    """The messages that answer ``query``, or stand beside one that does, out of all that are
    searchable.
    """
    question = ask(search, query)
    return Matches(ranked(store, question), question.found.total, question.term_weights)


def ranked(store: Store, question: Question, *, neighbours: bool = True) -> list[Match]:
    """The messages that answer a question, best first.

    ``neighbours``: also those that only stand beside one.
    """
    found, term_weights = question.found, question.term_weights
    listed = shortlist(
        (QueryTerm(term_weights[term], posting.ids) for term, posting in found.postings.items()),
        found.total,
        _LISTED,
    )
    listed = list(found.hidden.in_sight(listed))  # what stands beside a match may be out of sight
    held = _held(listed, found)
    listed = [id_ for id_ in listed if neighbours or held[id_]]
    messages = {
        message.id: message for message in store.messages_of(_worth_reading(store, listed, held))
    }
    candidates = {id_: _candidate(message, held[id_]) for id_, message in messages.items()}
    scores = rank([*candidates.values()], term_weights, found.mean_chars)
    return [
        Match(messages[id_], score, strength(candidates[id_], term_weights))
        for id_, score in scores.items()
    ]


def line_of(message: Message, term_weights: Mapping[str, float], limit: int) -> FocusLine:
    """A message as a line.

    Whole, or where it is longer than ``limit`` characters the part of it that the terms point to.
    """
    return FocusLine(
        message.id, one_line(f"{message.kind}: {passage(message.text, term_weights, limit)}")
    )


def same(message: Message) -> str:
    """Equal for messages of which one repeats the other."""
    return " ".join(message.text[:_COMPARED].lower().split())


def _held(listed: Iterable[int], found: Found) -> dict[int, list[str]]:
    """Which of the terms each of these messages holds."""
    held: dict[int, list[str]] = {id_: [] for id_ in listed}
    for term, posting in found.postings.items():
        for id_ in held.keys() & posting.ids:
            held[id_].append(term)
    return held


def _worth_reading(store: Store, listed: list[int], held: Mapping[int, Sequence[str]]) -> list[int]:
    """The best of the shortlist that are not too large.

    What looks like a repeat only if there is nothing better.
    """
    sizes = store.read(lambda index: index.sizes_of(listed))
    alike: dict[tuple[int, tuple[str, ...]], int] = {}
    chosen: list[int] = []
    repeats: list[int] = []
    for id_ in listed:
        size, key = sizes.get(id_, _BYTES_READ), (sizes.get(id_, 0), tuple(held[id_]))
        alike[key] = alike.get(key, 0) + 1
        if size < _BYTES_READ:
            (chosen if not held[id_] or alike[key] <= _ALIKE else repeats).append(id_)
        if len(chosen) == READ:
            break
    return [*chosen, *repeats][:READ]


def _candidate(message: Message, held: Iterable[str]) -> Candidate:
    """The message with how often its terms stand in it.

    A stem as often as its letters do, near enough to tell much from little.

    A short one counts once: its letters stand in other words too often.
    """
    low = message.text.lower()
    counts = {
        term: low.count(term) or 1 if len(term) > _SHORT or not term.isascii() else 1
        for term in held
    }
    return Candidate(message.id, message.kind, message.session, len(low), counts, same(message))
