"""Which messages answer a question best, out of the terms each of them holds. Pure.

Two passes, because a log may be long: ``shortlist`` knows only which message holds which term and narrows everything down to a few
hundred, ``rank`` has read those. Both lift the neighbours of a match: the answer often stands next to the words asked for. Called by
``recall/focus.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIFT: Final = tuple(0.7**distance for distance in range(1, 6))
"""What of a term's worth reaches a message 1, 2, … 5 places away from one that holds it."""

K1: Final = 1.2
B: Final = 0.5
"""BM25's parameters (Robertson and others, TREC-3, 1994): how soon a term repeated counts no more, how far length counts against one."""

KIND_WORTH: Final = {"user": 1.1, "note": 1.1, "talk": 1.0, "work": 1.0, "tool": 0.9, "echo": 0.7}
"""The user's own words before the agent's, tool output last: it repeats what others said and is the longest."""

_ANCHORS: Final = 1_000
"""So many of the messages that hold the most are looked at with their neighbours."""


@dataclass(frozen=True, slots=True)
class Clue:
    """A term of the question: what it is worth in a message, and the messages known to hold it."""

    worth: float
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that was read. ``counts``: how often it holds each term of the question. ``same``: equal for messages that repeat one."""

    id: int
    kind: str
    session: str
    chars: int
    counts: Mapping[str, int]
    same: object


def shortlist(clues: Iterable[Clue], total: int, most: int) -> list[int]:
    """The messages that may be worth reading, best first: those that hold much, and those close to them."""
    clues = list(clues)
    held: dict[int, float] = {}
    for clue in clues:
        for id_ in clue.ids:
            held[id_] = held.get(id_, 0.0) + clue.worth
    reach = len(LIFT)
    anchors = nlargest(_ANCHORS, held, key=lambda id_: (held[id_], id_))
    near = {at for id_ in anchors for at in range(max(0, id_ - reach), min(total, id_ + reach + 1))}
    score: dict[int, float] = {}
    for clue in clues:
        for at, worth in _lifted(dict.fromkeys(near.intersection(clue.ids), clue.worth)).items():
            score[at] = score.get(at, 0.0) + worth
    return nlargest(most, (at for at in score if 0 <= at < total), key=lambda at: (score[at], at))


def rank(candidates: Sequence[Candidate], worths: Mapping[str, float], mean_chars: float) -> dict[int, float]:
    """What each message is worth, best first, repeats of one text once; of equals the newest first.

    Term by term a message counts what it holds itself, or a share of what a close one of its session holds, whichever is more: the
    same word next door is no second reason, another word is.
    """
    by_id = {candidate.id: candidate for candidate in candidates}
    sessions: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        sessions.setdefault(candidate.session, []).append(candidate)
    score: dict[int, float] = {}
    for members in sessions.values():
        for id_, worth in _scored(members, worths, mean_chars).items():
            score[id_] = worth * KIND_WORTH.get(by_id[id_].kind, 1.0)
    ranked: dict[object, int] = {}
    for id_ in sorted(score, key=lambda id_: (-score[id_], -id_)):
        ranked.setdefault(by_id[id_].same, id_)
    return {id_: score[id_] for id_ in ranked.values()}


def strength(candidates: Iterable[Candidate], worths: Mapping[str, float]) -> float:
    """How sharply the question points at the message that holds the most of its terms, in the unit of ``rarity``."""
    return max((sum(worths[term] for term in candidate.counts if term in worths) for candidate in candidates), default=0.0)


def _scored(members: Sequence[Candidate], worths: Mapping[str, float], mean_chars: float) -> dict[int, float]:
    """What the messages of one session are worth, neighbours counted in."""
    score = {candidate.id: 0.0 for candidate in members}
    for term, worth in worths.items():
        own = {candidate.id: worth * _weight(candidate, term, mean_chars) for candidate in members if term in candidate.counts}
        for at, gain in _lifted(own).items():
            if at in score:
                score[at] += gain
    return score


def _weight(candidate: Candidate, term: str, mean_chars: float) -> float:
    count = candidate.counts[term]
    return count * (K1 + 1) / (count + K1 * (1 - B + B * candidate.chars / mean_chars))


def _lifted(own: Mapping[int, float]) -> dict[int, float]:
    """What one term is worth in the messages that hold it and in those close to one."""
    best = dict(own)
    for id_, worth in own.items():
        for distance, share in enumerate(LIFT, 1):
            lift = share * worth
            for at in (id_ - distance, id_ + distance):
                if best.get(at, 0.0) < lift:
                    best[at] = lift
    return best
