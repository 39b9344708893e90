"""How much of a host's list the log holds already, where the host names its messages by nothing but
their place and words.

Pure. A list is compared with what the session has shown before: its kept part is the end of that,
whatever was compressed away, joined, or left out. Called by ``match_by_id`` and ``match_by_text``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..base.canon import joined, without_end, without_start
from .pairing import Expected, Match, Pairing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .host_messages import Item
    from .session_records import Record

_ENDS_MAX: Final = 64
"""Places tried for the end of what is known.

More occur only where the same few words were said over and over.
"""


@dataclass(slots=True)
class _Run:
    """Messages in the user's role with nothing between them, or one other entry.

    Hosts join the former, and part them again.

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
    expected: Expected,
    *,
    cut: bool,
    own: int | None = None,
    is_own_list: bool = False,
) -> Match:
    """How much of ``items`` is in ``records``.

    ``cut``: the items begin in the middle, after a summary. ``own``: the record of the running
    turn, when it is logged in part; ``is_own_list``: the list is that turn's.
    """
    if not records or not items:
        return Match()
    match = _after_own(items, records, own, is_own_list=is_own_list) if own is not None else None
    if match is not None and (match.consistent or is_own_list):
        return match
    runs, known = _runs(items), _runs(records)
    if (end := _within(runs, known, cut=cut)) is not None:
        whole = Match(old=len(items), pairs=_pairs(items, records, runs, known[:end], len(items)))
        taken_back = records[known[end - 1].end - 1].id < expected.retracted < records[-1].id
        if not taken_back and (not cut or end == len(known)):
            return whole
        # The user took all this back and went on, or the list is but the end of a longer one: what
        # was said last explains it as well, and is the likelier.
    else:
        whole = None
    for tried, (match, last) in enumerate(_ends(items, runs, known, cut=cut)):
        if expected.explained(match) and not _repeats(items[match.old :], items, records):
            match.pairs = _pairs(items, records, runs[: last + 1], known, match.old)
            return match
        if tried > _ENDS_MAX:
            break
    if whole is not None:
        return whole
    return Pairing(items, records, expected).match()


def explained_by(
    items: Sequence[Item], records: Sequence[Record], *, cut: bool
) -> list[tuple[int, int]]:
    """Item and record of a list that is, as a whole, a part of the records.

    Empty where it is none.
    """
    if not items or not records:
        return []
    runs, known = _runs(items), _runs(records)
    end = _within(runs, known, cut=cut)
    return _pairs(items, records, runs, known[:end], len(items)) if end is not None else []


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
    """Where the latest part of what is known that is the whole list ends.

    None where the list is no such part.

    A list that shows nothing new, and one that is older than the log: from an agent that was
    replaced, or from before an undo.
    """
    keys, known_keys = [run.key for run in runs], [run.key for run in known]
    size, tried = len(runs), 0
    for end in range(len(known), size - 1, -1):
        if not _last_within(runs[-1], known[end - 1], single=size == 1, cut=cut):
            continue
        if end == len(known) and runs[-1].blanks > known[-1].blanks:
            continue
        if size == 1 or (
            keys[1:-1] == known_keys[end - size + 1 : end - 1]
            and _begins(runs[0], known[end - size], cut=cut)
        ):
            return end
        tried += 1
        if tried > _ENDS_MAX:
            break
    return None


def _last_within(run: _Run, known: _Run, *, single: bool, cut: bool) -> bool:
    """Whether a list's last run is a known one, or the beginning of it.

    With nothing before it in a list that was cut, any part.
    """
    if run.key == known.key:
        return True
    if not (run.said and known.said and run.canon):
        return False
    return without_start(known.canon, run.canon) is not None or (
        single and cut and without_end(known.canon, run.canon) is not None
    )


def _repeats(new: Sequence[Item], items: Sequence[Item], records: Sequence[Record]) -> bool:
    """Whether calls would be new that occur no oftener than in the log.

    Then they are not, and the match is a chance likeness.
    """
    calls = {item.key for item in new if item.kind == "tool"}
    if not calls:
        return False
    logged = Counter(record.key for record in records if record.kind == "tool")
    shown = Counter(item.key for item in items if item.kind == "tool")
    return any(shown[key] <= logged[key] for key in calls)


def _ends(
    items: Sequence[Item], runs: list[_Run], known: list[_Run], *, cut: bool
) -> Iterator[tuple[Match, int]]:
    """The places in the list where all before is the end of what is known, the longest known part
    first; with the run they lie in.
    """
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
        if runs[at].said and not match.rest:
            blanks = _blanks_before(items, runs[at].first, match.old)
            match.old -= max(0, blanks - last.blanks)
        yield match, at


def _blanks_before(items: Sequence[Item], first: int, end: int) -> int:
    """How many items right before one are blank."""
    words = (at for at in range(end - 1, first - 1, -1) if items[at].canon)
    return end - 1 - next(words, first - 1)


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
    """What a run adds to a known one; None where they do not begin alike.

    A list that was ``cut`` may begin inside the known run.
    """
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
    """Whether the first run of a list is the known one.

    Where the list was cut, the end of it is enough.
    """
    if run.key == known.key:
        return True
    return cut and run.said and known.said and bool(without_end(known.canon, run.canon))


def _pairs(
    items: Sequence[Item], records: Sequence[Record], runs: list[_Run], known: list[_Run], old: int
) -> list[tuple[int, int]]:
    """Item and record of runs that end together, of the first ``old`` items.

    What a host has joined goes by the last message in it.
    """
    pairs: list[tuple[int, int]] = []
    for run, other in zip(runs, known[len(known) - len(runs) :], strict=True):
        here, both = other.end - 1, list[tuple[int, int]]()
        for at in range(min(run.end, old) - 1, run.first - 1, -1):  # behind it stands what is new
            if here < other.first:
                break
            both.append((at, here))
            here -= _joined_in(items[at], records[other.first : here + 1])
        pairs += reversed(both)
    return pairs


def _joined_in(item: Item, records: Sequence[Record]) -> int:
    """How many of the last records an item is joined of; 1 where that does not show."""
    if item.said and "\n\n" in item.canon:
        whole = ""
        for count, record in enumerate(reversed(records), 1):
            whole = joined(record.canon, whole)
            if whole == item.canon:
                return count
            if len(whole) > len(item.canon):
                break
    return 1


def _after_own(
    items: Sequence[Item], records: Sequence[Record], own: int, *, is_own_list: bool
) -> Match | None:
    """Go on after the running turn's own message.

    What it has brought so far follows it in the list and in the log.
    """
    at = next((k for k in range(len(items) - 1, -1, -1) if items[k].said), None)
    if at is None:
        return None
    if not _is_own(items[at], records, own, is_own_list=is_own_list):
        return None
    # In its own list a turn's first reply is no other one in new words.
    inner = Pairing(items[at + 1 :], records[own + 1 :], Expected()).match(begun=not is_own_list)
    pairs = [(at, own), *((at + 1 + k, own + 1 + n) for k, n in inner.pairs)]
    # What it has brought so far would stand behind it: not so in a list where it was sent again.
    brought = own + 1 >= len(records) or records[own + 1].said or bool(inner.pairs)
    joined_before = without_end(items[at].canon, records[own].canon)
    before, known = items[at - 1] if at else None, records[own - 1] if own else None
    if joined_before:
        firm = known is not None and without_end(joined_before, known.canon) is not None
    else:
        firm = before is None or (
            known is not None and (before.key == known.key or (before.said and known.said))
        )
    return Match(old=at + 1 + inner.old, rest=inner.rest, consistent=firm and brought, pairs=pairs)


def _is_own(item: Item, records: Sequence[Record], own: int, *, is_own_list: bool) -> bool:
    """Whether the last message in the user's role is the running turn's."""
    if item.key == records[own].key or without_end(item.canon, records[own].canon) is not None:
        return True
    if (
        not records[own].canon
        and own
        and without_end(item.canon, records[own - 1].canon) is not None
    ):
        return True  # blank, and joined to the message before it
    # Its words may differ, but a message that older records explain is an older one: this turn's
    # own was compressed away.
    return is_own_list and all(record.key != item.key for record in records[:own])
