"""Which items of a list are which records, where the list is no plain part of what is known.

Pure. Messages were taken back, logged late, joined or reworded by their host: what can be told
apart holds the rest in its place. Called by ``alignment``, and by what makes the plan
(``match_by_id``, ``match_by_text``, ``assign_turns``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..base.canon import key_of, without_start

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from .host_messages import Item
    from .session_records import Record


@dataclass(slots=True)
class Match:
    """The first ``old`` items are known, but for what ``rest`` adds to the last of them.

    ``pairs``: item and record by index.

    ``consistent``: nothing speaks against it. It is not where what stands before the running turn's
    message differs in list and log. ``later``: items behind those that are known all the same: what
    was missing stands in their midst. ``missing``: items among the first that are not.
    """

    old: int = 0
    rest: str = ""
    consistent: bool = True
    pairs: list[tuple[int, int]] = field(default_factory=list)
    later: frozenset[int] = frozenset()
    missing: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Expected:
    """What may be new.

    ``explained``: whether what a match leaves as new is what the open turns lead us to expect.

    ``opens``: whether an item is the message of an open turn, or several of them joined. ``calls``:
    keys of the calls that are logged, be it where the session does not see them. ``unshown``: the
    words of logged turns that no list has shown. ``retracted``: the note that the user took
    something back last, -1 for none.
    """

    explained: Callable[[Match], bool] = lambda _: False
    opens: Callable[[Item], bool] = lambda _: False
    calls: Container[str] = ()
    unshown: Container[str] = ()
    retracted: int = -1


class Pairing:
    """Pairs items with records, both in their order.

    Everything up to the last item that has a pair is known.
    """

    def __init__(
        self, items: Sequence[Item], records: Sequence[Record], expected: Expected
    ) -> None:
        self.items = items
        self.records = records
        self.expected = expected
        self.spots: dict[str, list[int]] = defaultdict(list)
        for at, record in enumerate(records):
            self.spots[record.key].append(at)

    def match(self, *, begun: bool = False) -> Match:
        """How much is known. ``begun``: items and records begin at the same place."""
        found = self._paired(len(self.items))
        paired = {at for at, _ in found.pairs}
        crossing = self._crossing(paired)
        made = [at for at, item in enumerate(self.items) if item.kind == "tool"]
        known = (
            at
            for at in made
            if at in paired or at in crossing or self._is_elsewhere(self.items[at])
        )
        called = max(known, default=-1)
        # The first call after those is new, and so are all things after it: words that were said
        # before are said again.
        end = next((at for at in made if at > called), len(self.items))
        if end < len(self.items):
            later = self._later(end, found) | crossing
            found = self._paired(end)
            later = later or self._rest_of_log(end, found)
            found.later = later
            found.missing = self._missing(found)
            if (
                shorter := self._without_opening(end, found)
            ) is not None and self.expected.explained(shorter):
                return shorter
            if any(at > end for at in later):
                return found
        else:
            found.later = crossing | self._overtaken(found)
            found.missing = self._missing(found)
        return self._changed(found) if found.pairs or begun else found

    def _missing(self, found: Match) -> frozenset[int]:
        """What is new among known items.

        What a turn that broke off has brought, and other words in a message's place.
        """
        paired, missing, broken = {at for at, _ in found.pairs}, set[int](), False
        here = dict(found.pairs)
        for at, item in enumerate(self.items[: found.old]):
            if item.said:
                broken = item.canon in self.expected.unshown or self._is_unanswered(here.get(at))
                if (
                    at not in paired
                    and item.canon
                    and item.key not in self.spots
                    and self._is_edited(at, here)
                ):
                    missing.add(at)
            elif broken and at not in paired and item.key not in self.spots:
                missing.add(at)
        return frozenset(missing)

    def _is_unanswered(self, here: int | None) -> bool:
        """Whether the log has nothing that came of a message.

        What stands behind it in a list is new.
        """
        if here is None:
            return False
        return here + 1 == len(self.records) or self.records[here + 1].said

    def _is_edited(self, at: int, here: dict[int, int]) -> bool:
        """Whether a message of the user's stands where the records have another, between the same
        neighbours.
        """
        before = here.get(at - 1) if at else -1
        after = here.get(at + 1)
        if before is None or after is None or after != before + 2:
            return False
        record = self.records[before + 1]
        item = self.items[at]
        return record.said and record.canon not in item.canon and item.canon not in record.canon

    def _crossing(self, paired: set[int]) -> frozenset[int]:
        """Items without a pair that are known by what they are: the log has them in another order.

        That is where a list first showed them late; their place must not make them new.
        """
        known: set[int] = set()
        known.update(
            at
            for at, item in enumerate(self.items)
            if at not in paired and self._is_all_known(item)
        )
        for at, here in self._sure(len(self.items)):
            item, reached = self.items[at], here
            if (
                at in paired
                or item.key not in self.spots
                or (item.said and self.expected.opens(item))
            ):
                continue
            known.add(at)
            # So is what follows it in list and log alike.
            for k in range(at + 1, len(self.items)):
                reached += 1
                if k in paired or self.items[k].said or reached >= len(self.records):
                    break
                if self.items[k].key != self.records[reached].key:
                    break
                known.add(k)
        return frozenset(known)

    def _is_all_known(self, item: Item) -> bool:
        """Whether a joined message is made of logged ones, each of which is logged once."""
        if (
            not item.said
            or item.key in self.spots
            or "\n\n" not in item.canon
            or self.expected.opens(item)
        ):
            return False
        parts, start = item.canon.split("\n\n"), 0
        for end in range(1, len(parts) + 1):
            spots = self.spots.get("said|" + "\n\n".join(parts[start:end]), ())
            start = end if len(spots) == 1 else start
        return start == len(parts)

    def _later(self, end: int, found: Match) -> frozenset[int]:
        """Known items behind a call that is not logged, from a message of the user's on that is
        known for certain.

        A turn that broke off before any hook showed what it did comes back from the database in
        front of turns that were logged long since.
        """
        held = self._held(len(self.items))
        is_own_list = (at for at in sorted(held) if at > end and self.items[at].said)
        start = next((at for at in is_own_list if not self.expected.opens(self.items[at])), None)
        if start is None:
            return frozenset()
        return frozenset(at for at, _ in found.pairs if at >= start)

    def _rest_of_log(self, end: int, found: Match) -> frozenset[int]:
        """Items behind a call that is not logged, from a message of the user's on, that are all the
        log has left.

        A request that broke off and was sent again in the same words: its deeds come back in front.
        """
        rest = self.records[found.pairs[-1][1] + 1 if found.pairs else 0 :]
        start = len(self.items) - len(rest)
        if (
            not rest
            or start <= end
            or not self.items[start].said
            or self.expected.opens(self.items[start])
        ):
            return frozenset()
        same = all(
            item.key == record.key for item, record in zip(self.items[start:], rest, strict=True)
        )
        return frozenset(range(start, len(self.items))) if same else frozenset()

    def _overtaken(self, found: Match) -> frozenset[int]:
        """Items behind all that have a pair whose records stand before those.

        Deeds that were logged late have overtaken them.
        """
        rest = range(found.old, len(self.items))
        if (
            not found.pairs
            or not rest
            or not self.items[rest[0]].said
            or self.expected.opens(self.items[rest[0]])
        ):
            return frozenset()
        paired = {here for _, here in found.pairs}
        last = found.pairs[-1][1]
        free = (
            r
            for at, r in enumerate(self.records[:last])
            if at not in paired and r.id > self.expected.retracted
        )
        known = all(any(self.items[at].key == record.key for record in free) for at in rest)
        return frozenset(rest) if known and self.items[found.pairs[-1][0]].call else frozenset()

    def _is_elsewhere(self, item: Item) -> bool:
        """Whether a call is logged in a session that this one does not see."""
        return item.key not in self.spots and item.key in self.expected.calls

    def _paired(self, end: int) -> Match:
        """Each item before ``end`` with the next record it can be."""
        held = self._held(end)
        bounds, bound = [len(self.records)] * end, len(self.records)
        for at in range(end - 1, -1, -1):
            bounds[at] = bound = held.get(at, bound)
        match, reached, last_held = Match(), -1, max(held, default=-1)
        late = self._late_replies(end)
        for at, item in enumerate(self.items[:end]):
            if at in late:
                continue
            if item.said:
                here, rest = self._next_said(item.canon, reached)
                if rest and not self.expected.explained(Match(at + 1, rest)):
                    here = None
                if here is not None and not item.canon and self._is_skipped(at, reached, here):
                    continue
            else:
                here, rest = self._next(item.key, reached), ""
            if here is not None and here <= bounds[at]:
                match.pairs.append((at, here))
                match.old, match.rest, reached = at + 1, rest, here
            elif item.said and at > last_held and self.expected.opens(item):
                # a turn that is not logged begins here: what follows is new, however often it was
                # said before
                break
        return match

    def _is_skipped(self, at: int, reached: int, here: int) -> bool:
        """Whether a blank item stands before what the log has before the blank record.

        Hosts have empty rows of their own, which a database gives back as it does white space.
        """
        after = next((item for item in self.items[at + 1 :] if item.canon or not item.said), None)
        before = self._next(after.key, reached) if after is not None else None
        return before is not None and before < here

    def _held(self, end: int) -> dict[int, int]:
        """Items and the records they are for certain, so that no chance likeness of another item
        may cut them off.

        Calls and messages of the user that occur once in both pair; of these pairs the longest
        sequence in which both rise is kept, as in the patience diff, because one message that was
        logged late must not hide all that follows it. Replies do not count: short ones are alike.
        """
        return _rising(self._sure(end))

    def _late_replies(self, end: int) -> set[int]:
        """Replies that the log has behind what follows them in the list, where a list first showed
        them late.
        """
        keys = {at: item.key for at, item in enumerate(self.items[:end]) if item.kind == "talk"}
        counts = Counter(keys.values())
        replies = [
            (at, self.spots[key][0])
            for at, key in keys.items()
            if counts[key] == 1 and len(self.spots.get(key, ())) == 1
        ]
        kept = _rising(sorted([*self._sure(end), *replies]))
        return {at for at, _ in replies if at not in kept}

    def _sure(self, end: int) -> list[tuple[int, int]]:
        """Calls and messages of the user that occur once in items before ``end`` and once in the
        records.
        """
        keys = {
            at: self._sure_key(item)
            for at, item in enumerate(self.items[:end])
            if item.said or item.kind == "tool"
        }
        counts = Counter(keys.values())
        for item in self.items[:end]:
            if item.said and item.key not in self.spots and "\n\n" in item.canon:
                # What a host has joined occurs there as well: without this, "continue" said again
                # would be the older one that stands joined before it.
                counts.update(
                    {f"said|{part}" for part in item.canon.split("\n\n")} - {self._sure_key(item)}
                )
        once = ((at, key) for at, key in keys.items() if counts[key] == 1)
        return [(at, self.spots[key][0]) for at, key in once if len(self.spots.get(key, ())) == 1]

    def _sure_key(self, item: Item) -> str:
        """An item's key, or where it was joined that of the last known message in it."""
        if not item.said or item.key in self.spots or "\n\n" not in item.canon:
            return item.key
        return next(
            (key for end in _ends_of(item.canon) if (key := f"said|{end}") in self.spots), item.key
        )

    def _without_opening(self, end: int, match: Match) -> Match | None:
        """The match without what is right before a new call, if it is of the user's.

        It opens that call's turn, and may be new as well.
        """
        at = end - 1
        while at >= 0 and not self.items[at].said and not self.items[at].call:
            at -= 1
        if at < 0 or not self.items[at].said or match.old <= at or match.rest:
            return None
        pairs = [pair for pair in match.pairs if pair[0] < at]
        later = self._behind(end, pairs[-1][1] if pairs else -1)
        return Match(at, pairs=pairs, later=match.later | later)

    def _behind(self, end: int, reached: int) -> frozenset[int]:
        """Items behind a new call that go on in the records, from the next message of the user's
        on.
        """
        known: set[int] = set()
        for at in range(end, len(self.items)):
            item = self.items[at]
            if not known and not item.said:
                continue
            here = (
                self._next_said(item.canon, reached)[0]
                if item.said
                else self._next(item.key, reached)
            )
            if here is not None:
                known.add(at)
                reached = here
        return frozenset(known)

    def _next(self, key: str, reached: int) -> int | None:
        places = self.spots.get(key)
        if not places:
            return None
        at = bisect_right(places, reached)
        return places[at] if at < len(places) else None

    def _next_said(self, whole: str, reached: int) -> tuple[int | None, str]:
        """The last of the next records that a text in the user's role is made of, and what it adds
        to them.
        """
        exact = self._next(f"said|{whole}", reached)
        if exact is not None or "\n\n" not in whole:
            return exact, ""
        start = -1
        while (start := whole.find("\n\n", start + 1)) >= 0:
            first = self._next(f"said|{whole[:start]}", reached)
            if first is None:
                continue
            here, rest = first, whole[start + 2 :]
            while rest and here + 1 < len(self.records) and self.records[here + 1].said:
                more = without_start(rest, self.records[here + 1].canon)
                if more is None:
                    break
                here, rest = here + 1, more
            if rest and (whole_rest := self._next(f"said|{whole[start + 2 :]}", first)) is not None:
                return whole_rest, ""  # those right behind the first were taken back
            further = self._next_said(rest, here) if rest else (here, "")
            return further if further[0] is not None else (here, rest)
        return None, ""

    def _changed(self, match: Match) -> Match:
        """Step over replies that stand where known ones stood, in other words.

        A host may edit, mask or lengthen what it reloads.
        """
        if match.rest:
            return match
        items, records = self.items, self.records
        at, here = match.old, match.pairs[-1][1] + 1 if match.pairs else 0
        while (
            at < len(items)
            and here < len(records)
            and not items[at].said
            and not records[here].said
        ):
            item, record = items[at], records[here]
            if item.kind != record.kind or item.call:
                break
            text = item.text.strip()
            longer = item.kind == "talk" and len(text) > record.size and text[record.size] == "\n"
            longer = longer and key_of("talk", text[: record.size]) == record.key
            if record.id < self.expected.retracted and not longer:
                break  # what was taken back stands in no list: another reply here is a new one
            match.pairs.append((at, here))
            at, here = at + 1, here + 1
            match.old = at
            if longer:
                match.rest = text[record.size :].strip()
                if any(
                    other.key == key_of("talk", match.rest) for other in records[here : here + 2]
                ):
                    # Joined to the next reply, where the host has dropped an empty row.
                    match.rest = ""
                break
        return match


def _rising(pairs: list[tuple[int, int]]) -> dict[int, int]:
    """The longest part of pairs, in the order of their first numbers, in which the second
    rise too.
    """
    ends: list[int] = []
    places: list[int] = []
    for _, here in pairs:
        place = bisect_left(ends, here)
        ends[place : place + 1] = [here]
        places.append(place)
    held, wanted = {}, len(ends) - 1
    for (at, here), place in zip(reversed(pairs), reversed(places), strict=True):
        if place == wanted:
            held[at], wanted = here, wanted - 1
    return held


def _ends_of(whole: str) -> Iterator[str]:
    """The ends of a joined text that begin with a paragraph, the shortest first."""
    start = len(whole)
    while (start := whole.rfind("\n\n", 0, start)) >= 0:
        yield whole[start + 2 :]
