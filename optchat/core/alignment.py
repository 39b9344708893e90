"""How much of a host's list the log holds already, where the host names its messages by nothing but their place and words.

Pure. A list is compared with what the session has shown before: its kept part is the end of that, whatever was compressed away,
joined, or left out. Called by ``transcript`` only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .hostlist import key_of
from .hosttext import joined, without_end, without_start

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from .hostlist import Item
    from .known import Record

_ENDS_MAX: Final = 64
"""Places tried for the end of what is known. More occur only where the same few words were said over and over."""


_Spots = dict[str, list[int]]
"""Where among the records a key occurs, in rising order."""


@dataclass(slots=True)
class Match:
    """The first ``old`` items are known, but for what ``rest`` adds to the last of them. ``pairs``: item and record by index.

    ``firm``: nothing speaks against it. It is not where what stands before the running turn's message differs in list and log.
    """

    old: int = 0
    rest: str = ""
    firm: bool = True
    pairs: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    """Messages in the user's role with nothing between them, or one other entry: hosts join the former, and part them again.

    ``blanks``: how many at the end are blank; in a joined text such ones leave no trace.
    """

    key: str
    first: int
    end: int
    canon: str = ""
    said: bool = False
    blanks: int = 0


def align(
    items: Sequence[Item],
    records: Sequence[Record],
    explained: Callable[[Match], bool],
    *,
    cut: bool,
    own: int | None = None,
    sure: bool = False,
    calls: Container[str] = (),
) -> Match:
    """How much of ``items`` is in ``records``.

    ``explained``: whether what a match leaves as new is what the open turns lead us to expect. ``cut``: the items begin in the
    middle, after a summary. ``own``: the record of the running turn, when it is logged in part; ``sure``: the list is that turn's.
    ``calls``: keys of calls that are logged, be it where the session does not see them.
    """
    if not records or not items:
        return Match()
    match = _after_own(items, records, own, sure=sure) if own is not None else None
    if match is not None and (match.firm or sure):
        return match
    runs, known = _runs(items), _runs(records)
    if (end := _within(runs, known, cut=cut)) is not None:
        return Match(old=len(items), pairs=_pairs(runs, known[:end]))
    for tried, (match, last) in enumerate(_ends(items, runs, known, cut=cut)):
        if explained(match) and not _repeats(items[match.old :], items, records):
            match.pairs = [(at, here) for at, here in _pairs(runs[: last + 1], known) if at < match.old]
            return match
        if tried > _ENDS_MAX:
            break
    return _greedy(items, records, explained, calls)


def _runs(sequence: Sequence[Item | Record]) -> list[_Run]:
    runs: list[_Run] = []
    open_run: _Run | None = None
    for at, entry in enumerate(sequence):
        if not entry.said:
            open_run = None
            runs.append(_Run(entry.key, at, at + 1))
        elif open_run is not None:
            open_run.end = at + 1
            open_run.canon = joined(open_run.canon, entry.canon)
            open_run.key = f"said|{open_run.canon}"
        else:
            open_run = _Run(f"said|{entry.canon}", at, at + 1, entry.canon, said=True)
            runs.append(open_run)
        if open_run is not None:
            open_run.blanks = 0 if entry.canon else open_run.blanks + 1
    return runs


def _within(runs: list[_Run], known: list[_Run], *, cut: bool) -> int | None:
    """Where the latest part of what is known that is the whole list ends; None where the list is no such part.

    A list that shows nothing new, and one that is older than the log: from an agent that was replaced, or from before an undo.
    """
    keys, known_keys = [run.key for run in runs], [run.key for run in known]
    size, tried = len(runs), 0
    for end in range(len(known), size - 1, -1):
        if not _last_within(runs[-1], known[end - 1], single=size == 1, cut=cut):
            continue
        if end == len(known) and runs[-1].blanks > known[-1].blanks:
            continue
        if size == 1 or (keys[1:-1] == known_keys[end - size + 1 : end - 1] and _begins(runs[0], known[end - size], cut=cut)):
            return end
        tried += 1
        if tried > _ENDS_MAX:
            break
    return None


def _last_within(run: _Run, known: _Run, *, single: bool, cut: bool) -> bool:
    """Whether a list's last run is a known one, or the beginning of it; with nothing before it in a list that was cut, any part."""
    if run.key == known.key:
        return True
    if not (run.said and known.said and run.canon):
        return False
    return without_start(known.canon, run.canon) is not None or (single and cut and without_end(known.canon, run.canon) is not None)


def _repeats(new: Sequence[Item], items: Sequence[Item], records: Sequence[Record]) -> bool:
    """Whether calls would be new that occur no oftener than in the log: then they are not, and the match is a chance likeness."""
    calls = {item.key for item in new if item.kind == "tool"}
    if not calls:
        return False
    logged = Counter(record.key for record in records if record.kind == "tool")
    shown = Counter(item.key for item in items if item.kind == "tool")
    return any(shown[key] <= logged[key] for key in calls)


def _ends(items: Sequence[Item], runs: list[_Run], known: list[_Run], *, cut: bool) -> Iterator[tuple[Match, int]]:
    """The places in the list where all before is the end of what is known, the longest known part first; with the run they lie in."""
    keys, known_keys = [run.key for run in runs], [run.key for run in known]
    last = known[-1]
    for at in range(min(len(runs), len(known)) - 1, -1, -1):
        rest = _beyond(runs[at], last, cut=cut and not at)
        if rest is None or (not rest and runs[at].key != last.key):
            continue
        if at and keys[1:at] != known_keys[-at : len(known_keys) - 1]:
            continue
        if at and not _begins(runs[0], known[-at - 1], cut=cut):
            continue
        match = _within_run(items, runs[at], rest)
        if not rest and runs[at].said:
            match.old -= max(0, runs[at].blanks - last.blanks)
        yield match, at


def _within_run(items: Sequence[Item], run: _Run, rest: str) -> Match:
    """The item of a run at which what is new begins, given what the run adds to the known one."""
    old = run.end
    while rest and old > run.first:
        item = items[old - 1]
        before = without_end(rest, item.canon) if item.canon else rest
        if before is None:
            break
        rest, old = before, old - 1
    return Match(old, rest)


def _beyond(run: _Run, known: _Run, *, cut: bool) -> str | None:
    """What a run adds to a known one; None where they do not begin alike. A list that was ``cut`` may begin inside the known run."""
    if run.key == known.key:
        return ""
    if not (run.said and known.said and run.canon):
        return None
    if not known.canon:
        return run.canon
    start = known.canon
    while True:
        rest = without_start(run.canon, start)
        if rest is not None:
            return rest
        if without_start(start, run.canon) is not None:
            return ""
        if not cut or "\n\n" not in start:
            return None
        start = start.partition("\n\n")[2]


def _begins(run: _Run, known: _Run, *, cut: bool) -> bool:
    """Whether the first run of a list is the known one; where the list was cut, the end of it is enough."""
    if run.key == known.key:
        return True
    return cut and run.said and known.said and bool(without_end(known.canon, run.canon))


def _pairs(runs: list[_Run], known: list[_Run]) -> list[tuple[int, int]]:
    """Item and record of runs that end together."""
    pairs: list[tuple[int, int]] = []
    for run, record in zip(runs, known[len(known) - len(runs) :], strict=True):
        pairs += zip(range(run.first, run.end), range(record.first, record.end), strict=False)
    return pairs


def _after_own(items: Sequence[Item], records: Sequence[Record], own: int, *, sure: bool) -> Match | None:
    """Go on after the running turn's own message: what it has brought so far follows it in the list and in the log."""
    at = next((k for k in range(len(items) - 1, -1, -1) if items[k].said), None)
    if at is None:
        return None
    if not _is_own(items[at], records, own, sure=sure):
        return None
    inner = _greedy(items[at + 1 :], records[own + 1 :], lambda _: False, (), begun=True)
    pairs = [(at, own), *((at + 1 + k, own + 1 + n) for k, n in inner.pairs)]
    joined_before = without_end(items[at].canon, records[own].canon)
    before, known = items[at - 1] if at else None, records[own - 1] if own else None
    if joined_before:
        firm = known is not None and without_end(joined_before, known.canon) is not None
    else:
        firm = before is None or (known is not None and (before.key == known.key or (before.said and known.said)))
    return Match(old=at + 1 + inner.old, rest=inner.rest, firm=firm, pairs=pairs)


def _is_own(item: Item, records: Sequence[Record], own: int, *, sure: bool) -> bool:
    """Whether the last message in the user's role is the running turn's."""
    if item.key == records[own].key or without_end(item.canon, records[own].canon) is not None:
        return True
    if not records[own].canon and own and without_end(item.canon, records[own - 1].canon) is not None:
        return True  # blank, and joined to the message before it
    # Its words may differ, but a message that older records explain is an older one: this turn's own was compressed away.
    return sure and all(record.key != item.key for record in records[:own])


def _greedy(
    items: Sequence[Item], records: Sequence[Record], explained: Callable[[Match], bool], calls: Container[str], *, begun: bool = False
) -> Match:
    """Everything is known up to the last item that continues the records in their order; ``begun``: they begin at the same place."""
    spots: _Spots = defaultdict(list)
    for at, record in enumerate(records):
        spots[record.key].append(at)
    match = _paired(items, records, spots, explained)
    paired = {at for at, _ in match.pairs}
    made = [at for at, item in enumerate(items) if item.kind == "tool"]
    called = max((at for at in made if at in paired or (items[at].key in calls and items[at].key not in spots)), default=-1)
    # The first call after those is new, and so are all things after it: words that were said before are said again.
    end = next((at for at in made if at > called), len(items))
    if end < len(items):
        match = _paired(items[:end], records, spots, explained)
        if (shorter := _without_opening(items[:end], match)) is not None and explained(shorter):
            return shorter
    reached = match.pairs[-1][1] if match.pairs else -1
    return _changed(items, records, match, reached) if match.pairs or begun else match


def _paired(items: Sequence[Item], records: Sequence[Record], spots: _Spots, explained: Callable[[Match], bool]) -> Match:
    match, reached, bounds = Match(), -1, _bounds(items, spots, len(records))
    for at, item in enumerate(items):
        if not item.said:
            here, rest = _next(spots, item.key, reached), ""
        else:
            here, rest = _next_said(item.canon, records, spots, reached)
            if rest and not explained(Match(at + 1, rest)):
                here = None
        if here is not None and here <= bounds[at]:
            match.pairs.append((at, here))
            match.old, match.rest, reached = at + 1, rest, here
    return match


def _without_opening(items: Sequence[Item], match: Match) -> Match | None:
    """The match without what is right before a new call, if it is of the user's: it opens that call's turn, and may be new as well."""
    at = len(items) - 1
    while at >= 0 and not items[at].said and not items[at].call:
        at -= 1
    if at < 0 or not items[at].said or match.old <= at or match.rest:
        return None
    return Match(at, pairs=[pair for pair in match.pairs if pair[0] < at])


def _bounds(items: Sequence[Item], spots: _Spots, size: int) -> list[int]:
    """The record each item may reach at most, so that no later item is cut off from its own.

    Items and records that occur once pair for certain; of these pairs the longest sequence in which both rise is kept, as in the
    patience diff, because one message that was logged late must not hide all that follows it.
    """
    counts = Counter(item.key for item in items)
    sure = [(at, spots[item.key][0]) for at, item in enumerate(items) if counts[item.key] == 1 and len(spots.get(item.key, ())) == 1]
    ends: list[int] = []
    places: list[int] = []
    for _, here in sure:
        place = bisect_left(ends, here)
        ends[place : place + 1] = [here]
        places.append(place)
    kept, wanted = {}, len(ends) - 1
    for (at, here), place in zip(reversed(sure), reversed(places), strict=True):
        if place == wanted:
            kept[at], wanted = here, wanted - 1
    bounds, bound = [size] * len(items), size
    for at in range(len(items) - 1, -1, -1):
        bounds[at] = bound = kept.get(at, bound)
    return bounds


def _next(spots: _Spots, key: str, reached: int) -> int | None:
    places = spots.get(key)
    if not places:
        return None
    at = bisect_right(places, reached)
    return places[at] if at < len(places) else None


def _next_said(whole: str, records: Sequence[Record], spots: _Spots, reached: int) -> tuple[int | None, str]:
    """The last of the next records that a text in the user's role is made of, and what it adds to them."""
    exact = _next(spots, f"said|{whole}", reached)
    if exact is not None or "\n\n" not in whole:
        return exact, ""
    start = -1
    while (start := whole.find("\n\n", start + 1)) >= 0:
        first = _next(spots, f"said|{whole[:start]}", reached)
        if first is None:
            continue
        here, rest = first, whole[start + 2 :]
        while rest and here + 1 < len(records) and records[here + 1].said:
            more = without_start(rest, records[here + 1].canon)
            if more is None:
                break
            here, rest = here + 1, more
        further = _next_said(rest, records, spots, here) if rest else (here, "")
        return further if further[0] is not None else (here, rest)
    return None, ""


def _changed(items: Sequence[Item], records: Sequence[Record], match: Match, reached: int) -> Match:
    """Step over replies that stand where known ones stood, in other words: a host may edit, mask or lengthen what it reloads."""
    if match.rest:
        return match
    at, here = match.old, reached + 1
    while at < len(items) and here < len(records) and not items[at].said and not records[here].said:
        item, record = items[at], records[here]
        if item.kind != record.kind or item.call:
            break
        match.pairs.append((at, here))
        at, here = at + 1, here + 1
        match.old = at
        text = item.text.strip()
        longer = item.kind == "talk" and len(text) > record.size and text[record.size] == "\n"
        if longer and key_of("talk", text[: record.size]) == record.key:
            match.rest = text[record.size :].strip()
            break
    return match
