"""Which messages answer a question best, out of the terms each of them holds. Pure.

Two passes, because a log may be long: ``shortlist`` knows only which message holds which term and
narrows everything down to a few hundred, ``rank`` has read those. Both lift the neighbours of a
match: the answer often stands next to the words asked for. Called by ``recall/focus.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIFT: Final = tuple(0.7**distance for distance in range(1, 6))
"""What of a term's worth reaches a message 1, 2, … 5 places away from one that holds it."""

K1: Final = 1.2
B: Final = 0.5
"""BM25's parameters (Robertson and others, TREC-3, 1994).

How soon a term repeated counts no more, how far length counts against one.
"""

LONGEST: Final = 4.0
"""Length counts against a message up to so many times the mean.

Of one that is longer only a part is shown.
"""

KIND_WORTH: Final = {"user": 1.1, "note": 1.1, "talk": 1.0, "work": 1.0, "tool": 0.9, "echo": 0.7}
"""The user's own words before the agent's, tool output last.

It repeats what others said and is the longest.
"""

_ANCHORS: Final = 200
"""So many of the messages that hold the most are looked at with their neighbours."""

_ALIKE: Final = 60
"""Of messages with one and the same score so many are listed.

A text that was repeated a thousand times must not be all there is.
"""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of the question.

    What it is worth in a message, and the messages known to hold it, newest first.
    """

    worth: float
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that was read.

    ``counts``: how often it holds each term of the question. ``same``: equal for messages that
    repeat one.
    """

    id: int
    kind: str
    session: str
    chars: int
    counts: Mapping[str, int]
    same: object


def shortlist(clues: Iterable[QueryTerm], total: int, most: int) -> list[int]:
    """The messages that may be worth reading, best first.

    Those that hold much, and those close to them; of equals the newest first.
    """
    clues = list(clues)
    near: set[int] = set()
    for id_ in _anchors(clues):
        near.update(range(max(0, id_ - len(LIFT)), min(total, id_ + len(LIFT) + 1)))
    score: dict[int, float] = {}
    for clue in clues:
        for at, worth in _lifted(dict.fromkeys(near.intersection(clue.ids), clue.worth)).items():
            if 0 <= at < total:
                score[at] = score.get(at, 0.0) + worth
    return _best(score, most)


def _anchors(clues: Iterable[QueryTerm]) -> list[int]:
    """The messages that hold the most, at most ``_ANCHORS``.

    Most of a long list hold one term only, and those are told apart by nothing: the newest will do,
    and only what holds several has to be added up.
    """
    once: set[int] = set()
    several: set[int] = set()
    by_worth = sorted(clues, key=lambda clue: -clue.worth)
    for clue in by_worth:
        several.update(once.intersection(clue.ids))
        once.update(clue.ids)
    held: dict[int, float] = {}
    for clue in by_worth:
        for id_ in several.intersection(clue.ids):
            held[id_] = held.get(id_, 0.0) + clue.worth
        held.update(
            (id_, clue.worth)
            for id_ in islice((id_ for id_ in clue.ids if id_ not in several), _ALIKE)
        )
    return _best(held, _ANCHORS)


def _best(score: Mapping[int, float], most: int) -> list[int]:
    """The messages by falling score, of equals the newest first, and not too many of those."""
    falling = sorted(sorted(score, reverse=True), key=score.__getitem__, reverse=True)
    best: list[int] = []
    for _, alike in groupby(falling, key=score.__getitem__):
        best.extend(islice(alike, _ALIKE))
        if len(best) >= most:
            break
    return best[:most]


def rank(
    candidates: Sequence[Candidate], term_weights: Mapping[str, float], mean_chars: float
) -> dict[int, float]:
    """What each message is worth, best first, repeats of one text once; of equals the newest first.

    Term by term a message counts what it holds itself, or a share of what a close one of its
    session holds, whichever is more: the same word next door is no second reason, another word is.
    """
    by_id = {candidate.id: candidate for candidate in candidates}
    sessions: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        sessions.setdefault(candidate.session, []).append(candidate)
    score: dict[int, float] = {}
    for members in sessions.values():
        for id_, worth in _scored(members, term_weights, mean_chars).items():
            score[id_] = worth * KIND_WORTH.get(by_id[id_].kind, 1.0)
    ranked: dict[object, int] = {}
    for id_ in sorted(score, key=lambda id_: (-score[id_], -id_)):
        ranked.setdefault(by_id[id_].same, id_)
    return {id_: score[id_] for id_ in ranked.values()}


def strength(candidate: Candidate, term_weights: Mapping[str, float]) -> float:
    """How sharply the question points at a message.

    What all of its terms that the message holds are worth together.
    """
    return sum(term_weights[term] for term in candidate.counts if term in term_weights)


def singles_out(strength: float, total: int, *, most: int, one_in: int) -> bool:
    """Whether a question of this strength points at no more than about ``most`` messages, and at no
    more than one in ``one_in``.

    A strength is about the logarithm of how many messages each one it points at stands for, so that
    total / e^strength of them are as good as the best by chance.
    """
    return strength >= math.log(max(one_in, total / most))


def _scored(
    members: Sequence[Candidate], term_weights: Mapping[str, float], mean_chars: float
) -> dict[int, float]:
    """What the messages of one session are worth, neighbours counted in."""
    score = {candidate.id: 0.0 for candidate in members}
    for term, worth in term_weights.items():
        own = {
            candidate.id: worth * _weight(candidate, term, mean_chars)
            for candidate in members
            if term in candidate.counts
        }
        for at, gain in _lifted(own).items():
            if at in score:
                score[at] += gain
    return score


def _weight(candidate: Candidate, term: str, mean_chars: float) -> float:
    count, length = candidate.counts[term], min(candidate.chars / mean_chars, LONGEST)
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length))


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
