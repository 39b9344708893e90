"""Turns that began and are not in the log yet, and which of a list's new messages they are.

A draft is written when a turn begins, before anything else can happen to it. Pure: where drafts are
kept is the store's to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ..base.canon import canon, has_mask
from .host_text import alike

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .session_records import Record

NEAR_S: Final = 60
"""A host dates a message when it takes it in.

In recordings from 1.4 s before it announces the turn (at its start, or some milliseconds) to 8 ms
after. A compression in between may take a minute.
"""

_SOON_S: Final = 5
"""Within this a host that announces no words dates a message after it has announced its turn (8 ms
in recordings).
"""

_CLOCK_S: Final = 0.01
"""How far two readings of one clock may differ: dates are kept in milliseconds."""

_SAVED_S: Final = 3
"""Longest a host needs to save a message it has announced: 10 ms seen on host A 0.19, more on a
slow disk.
"""

_PARTS_MAX: Final = 200
"""Paragraphs of a joined text that is taken apart; a text longer than this stays whole."""


@dataclass(slots=True)
class Draft:
    """One open turn.

    ``text`` is None where the host announced it without words (a picture). ``owner``: the instance
    it runs in.

    ``other_owner``: it was begun by another instance, which may be at work on it still. ``kind``
    ``note``: no message of the user's but one of ours that must stand between them (an undo).
    ``record``: the turn is in the log already, and only a list that shows it is awaited;
    ``superseded``: lists have shown younger turns since, so that only an old list will. ``mine``:
    it was begun by the very instance that is shown the list. ``aside``: an entry that stands in no
    list (what a subagent reported, what the host's memory tool wrote) and waits for its place in
    the log; ``clue``: words that stand in the message it belongs behind.
    """

    token: str
    session: str
    text: str | None
    date: str = ""
    author: str = ""
    owner: str = ""
    kind: str = "user"
    canon: str = ""
    record: Record | None = None
    other_owner: bool = False
    superseded: bool = False
    mine: bool = True
    aside: bool = False
    clue: str = ""

    def __post_init__(self) -> None:
        if self.text is not None:
            self.canon = canon(self.text)

    @property
    def time(self) -> float:
        """When the turn began, in seconds; 0 if that is not known."""
        return seconds(self.date)

    @property
    def textless(self) -> bool:
        """Whether it may be a message whose words nobody told us."""
        return self.text is None and not self.other_owner

    @property
    def said(self) -> bool:
        """Whether a list may show it."""
        return self.kind != "note" and not self.aside

    @classmethod
    def of(cls, record: Record, *, superseded: bool) -> Draft:
        """A turn that is logged; if no list has shown it yet, one is awaited."""
        text = record.text or record.canon
        return cls(
            record.turn,
            record.session,
            text,
            record.date,
            kind=record.kind,
            record=record,
            superseded=superseded,
            mine=False,
        )


def seconds(date: str) -> float:
    """An ISO date as seconds since 1970; 0 if it is none."""
    try:
        return datetime.fromisoformat(date).timestamp()
    except (ValueError, OverflowError):
        return 0.0


@dataclass(slots=True)
class Piece:
    """A part of a new message: the draft it is, or None, and its canonical text."""

    draft: Draft | None
    canon: str


@dataclass(slots=True)
class Unit:
    """A new message in the user's role: its canonical text as far as it is new.

    ``parts``: its content was a list. ``masked``: its host hides secrets, and names its messages.
    ``maybe_unannounced``: it ends a list that may be shown before the turn it opens is announced.
    ``worded``: it is no message that was announced without words: it is text, and did not come out
    of a database, which keeps no pictures. ``stamp``: when the host took it in, in seconds, if it
    says so. ``token``: the turn it is known to be, by its place.
    """

    canon: str
    parts: bool = False
    masked: bool = False
    maybe_unannounced: bool = False
    worded: bool = False
    stamp: float = 0.0
    pieces: list[Piece] | None = None
    token: str = ""


def assign(units: Sequence[Unit], drafts: Sequence[Draft], *, oldest_first: bool) -> bool:
    """Give each unit its pieces; whether every unit is made of drafts.

    Drafts are taken in their order, and none twice.

    From the newest back, because of several that look alike the last ones are the likeliest to have
    lived; from the oldest on where the newer ones may have been taken back.
    """
    drafts = [draft for draft in drafts if draft.said]
    by_token = {draft.token: at for at, draft in enumerate(drafts)}
    for k, unit in enumerate(units):
        if (at := by_token.get(unit.token)) is not None:
            unit.pieces = [Piece(drafts[at], unit.canon)]
            before = assign(units[:k], drafts[:at], oldest_first=oldest_first)
            return assign(units[k + 1 :], drafts[at + 1 :], oldest_first=oldest_first) and before
    found = _forward(units, drafts) if oldest_first else _backward(units, drafts)
    for unit, places in zip(units, found, strict=True):
        unit.pieces = (
            [Piece(drafts[at], part) for at, part in places] if places is not None else None
        )
    _pair_by_place(units, drafts, oldest_first=oldest_first)
    explained = all(unit.pieces is not None for unit in units)
    for unit in units:
        unit.pieces = unit.pieces or [Piece(None, unit.canon)]
    return explained


_Places = list[tuple[int, str]]


def _backward(units: Sequence[Unit], drafts: Sequence[Draft]) -> list[_Places | None]:
    found: list[_Places | None] = []
    limit = len(drafts)
    for unit in reversed(units):
        order = range(limit - 1, -1, -1)
        places = (
            _whole(unit, drafts, order)
            or _Split(unit, drafts[:limit], newest=True).places()
            or _wordless(unit, drafts, order)
        )
        found.append(places)
        if places:
            limit = places[0][0]
    found.reverse()
    return found


def _forward(units: Sequence[Unit], drafts: Sequence[Draft]) -> list[_Places | None]:
    found: list[_Places | None] = []
    first = 0
    for unit in units:
        order = range(first, len(drafts))
        split = _Split(unit, drafts[first:], newest=False).places()
        places = (
            _whole(unit, drafts, order)
            or [(first + at, part) for at, part in split or ()]
            or _wordless(unit, drafts, order)
        )
        found.append(places)
        if places:
            first = places[-1][0] + 1
    return found


def _whole(unit: Unit, drafts: Sequence[Draft], order: range) -> _Places | None:
    same = [at for at in order if drafts[at].text is not None and drafts[at].canon == unit.canon]
    same.sort(key=lambda at: drafts[at].superseded)
    if unit.maybe_unannounced and unit.stamp:
        same = [at for at in same if _may_be_ahead(drafts[at], unit.stamp)]
    if len(same) > 1 and unit.stamp:
        away = {at: _apart(drafts[at], unit) for at in same}
        if min(away.values()) < NEAR_S:
            same.sort(key=away.__getitem__)
    return (
        [(same[0], unit.canon)] if same and (unit.canon or not drafts[same[0]].superseded) else None
    )


def _apart(draft: Draft, unit: Unit) -> float:
    """How far a message's date is from a turn's beginning, in seconds.

    A host that names its messages dates them before it announces the turn: one begun before is
    hardly the one.
    """
    after = draft.time - unit.stamp
    return abs(after) if after >= -_CLOCK_S or not unit.masked else NEAR_S / 2 - after


def _may_be_ahead(draft: Draft, stamp: float) -> bool:
    """Whether a message that ends a list may be a turn that was announced.

    If to this agent, then after the host took it in. What a process that is gone announced the host
    saved only then, and dates by that.
    """
    return draft.time > stamp - (_CLOCK_S if draft.mine else _SAVED_S)


def _wordless(unit: Unit, drafts: Sequence[Draft], order: range) -> _Places | None:
    """A turn announced without words is the message with a picture that nothing else explains."""
    silent = [at for at in order if drafts[at].textless and not unit.maybe_unannounced]
    single = len(silent) == 1 or "\n\n" not in unit.canon  # else it may be several of them, joined
    near = [
        at for at in silent if single and unit.stamp and abs(drafts[at].time - unit.stamp) < _SOON_S
    ]
    if near:
        return [(min(near, key=lambda at: abs(drafts[at].time - unit.stamp)), unit.canon)]
    # A picture that does not come out of a database was said to this very instance.
    mine = [at for at in silent if drafts[at].mine or unit.stamp] if unit.parts else []
    return [(mine[0], unit.canon)] if mine else None


class _Split:
    """Takes a joined text apart into the drafts it is made of.

    Each as it was told, one without words as whatever is left.

    Of several ways the one with the most known messages, then the fewest without words, then the
    newest (or the oldest) ones.
    """

    def __init__(self, unit: Unit, drafts: Sequence[Draft], *, newest: bool) -> None:
        self.parts = unit.canon.split("\n\n") if unit.canon else []
        self.masked = unit.masked
        self.worded = unit.worded
        self.drafts = drafts
        self.newest = newest
        self.words = [draft.canon.split("\n\n") if draft.canon else [] for draft in drafts]
        self.found: dict[tuple[int, int], tuple[int, _Places] | None] = {}

    def places(self) -> _Places | None:
        """Which draft each part is; None where the text cannot be taken apart."""
        # Two messages at least, and the words of one of them known: else anything could be
        # anything.
        known = [
            words
            for words in self.words
            if words and len(words) < len(self.parts) and (self.masked or words[0] in self.parts)
        ]
        if not known or len(self.parts) > _PARTS_MAX:
            return None
        best = self._best(len(self.parts), len(self.drafts)) if self.newest else self._best(0, 0)
        return best[1] if best is not None and any(self.words[at] for at, _ in best[1]) else None

    def _best(self, here: int, reached: int) -> tuple[int, _Places] | None:
        """The best way for the parts before ``here`` with drafts before ``reached`` (or, oldest
        first, for those from them on).
        """
        left = here if self.newest else len(self.parts) - here
        if not left:
            return 0, []
        if (here, reached) not in self.found:
            self.found[here, reached] = None
            order = range(reached - 1, -1, -1) if self.newest else range(reached, len(self.drafts))
            for at in order:
                for size in self._sizes(at, here, left):
                    self._try(here, reached, at, size)
        return self.found[here, reached]

    def _try(self, here: int, reached: int, at: int, size: int) -> None:
        rest = self._best(here - size, at) if self.newest else self._best(here + size, at + 1)
        if rest is None:
            return
        cost, place = (
            rest[0] + (-_PARTS_MAX if self.words[at] else 1),
            (at, "\n\n".join(self._span(here, size))),
        )
        best = self.found[here, reached]
        if best is None or cost < best[0]:
            self.found[here, reached] = (
                cost,
                [*rest[1], place] if self.newest else [place, *rest[1]],
            )

    def _sizes(self, at: int, here: int, left: int) -> Iterable[int]:
        """How many parts a draft may take of those that are left."""
        draft, size = self.drafts[at], len(self.words[at])
        if draft.textless:
            return () if self.worded else range(1, left + 1)
        if not size or size > left:
            return ()
        span = self._span(here, size)
        return (
            (size,)
            if span == self.words[at] or (self.masked and alike("\n\n".join(span), draft.canon))
            else ()
        )

    def _span(self, here: int, size: int) -> list[str]:
        return self.parts[here - size : here] if self.newest else self.parts[here : here + size]


def _pair_by_place(units: Sequence[Unit], drafts: Sequence[Draft], *, oldest_first: bool) -> None:
    """Pair what is left between two pairs.

    One turn's text may be masked or framed differently in a list, or come without words.
    """
    order = {id(draft): at for at, draft in enumerate(drafts)}
    if len(
        {id(piece.draft) for unit in units for piece in unit.pieces or ()} & order.keys()
    ) == len(order):
        # nothing is left to pair: without this, a first list of thousands of messages would be
        # searched for each of them
        return
    for k in range(
        len(units) - 1, -1, -1
    ):  # a picture's text is known only once the host has reloaded it
        if units[k].pieces is None and not units[k].maybe_unannounced and not units[k].worded:
            _pair_silent(
                units, k, [drafts[at] for at in _free(units, k, order) if drafts[at].textless]
            )
    for way in (_alike, _both_masked):
        for k in range(len(units)) if oldest_first else range(len(units) - 1, -1, -1):
            unit, places = units[k], _free(units, k, order)
            if (
                unit.pieces is not None
                or unit.maybe_unannounced
                or (way is not _alike and len(places) != _unpaired_around(units, k))
            ):
                # without likeness, only where as many turns as messages are left at this place
                continue
            found = next(
                (
                    at
                    for at in (reversed(places) if oldest_first else places)
                    if way(unit, drafts[at])
                ),
                None,
            )
            if found is not None:
                unit.pieces = [Piece(drafts[found], unit.canon)]


def _pair_silent(units: Sequence[Unit], k: int, silent: Sequence[Draft]) -> None:
    """Pair a unit with the newest of the turns that came without words, or each of its paragraphs
    with one, where they are as many.
    """
    unit = units[k]
    parts = unit.canon.split("\n\n")
    if len(silent) > 1 and len(silent) == len(parts) and _unpaired_around(units, k) == 1:
        unit.pieces = [
            Piece(draft, part) for draft, part in zip(reversed(silent), parts, strict=True)
        ]
    elif silent:
        unit.pieces = [Piece(silent[0], unit.canon)]


def _free(units: Sequence[Unit], k: int, order: dict[int, int]) -> range:
    """The drafts between those of the units before and after one, from the newest back."""
    below = next(
        (at for unit in reversed(units[:k]) if (at := _place(unit, order, -1)) is not None), -1
    )
    above = next(
        (at for unit in units[k + 1 :] if (at := _place(unit, order, 0)) is not None), len(order)
    )
    return range(above - 1, below, -1)


def _place(unit: Unit, order: dict[int, int], end: int) -> int | None:
    drafted = [piece.draft for piece in unit.pieces or () if piece.draft is not None]
    return order[id(drafted[end])] if drafted else None


def _both_masked(unit: Unit, draft: Draft) -> bool:
    """Whether so much of one text may be hidden that nothing is left to compare."""
    return (
        unit.masked
        and not draft.other_owner
        and not draft.superseded
        and (_hides(unit.canon, draft.canon) or _hides(draft.canon, unit.canon))
    )


def _hides(masked: str, other: str) -> bool:
    """Whether a text has a mask, and nothing beside it that another one without any lacks."""
    if not has_mask(masked):
        return False
    words = set(other.split())
    return has_mask(other) or all(word in words for word in masked.split() if not has_mask(word))


def _unpaired_around(units: Sequence[Unit], k: int) -> int:
    """How many units next to one another, this one among them, are without a pair."""
    first, end = k, k + 1
    while first and units[first - 1].pieces is None:
        first -= 1
    while end < len(units) and units[end].pieces is None:
        end += 1
    return end - first


def _alike(unit: Unit, draft: Draft) -> bool:
    """Whether two different texts may be one message.

    Where the host gives no ids, only if one holds the other: a wrong pair would lose a message.
    """
    timely = bool(unit.stamp) and abs(draft.time - unit.stamp) < NEAR_S
    if (draft.superseded and not timely) or (draft.other_owner and not (unit.masked and timely)):
        return False
    if unit.masked:
        return alike(unit.canon, draft.canon)
    short, long = sorted((unit.canon, draft.canon), key=len)
    return len(short) >= 8 and short in long
