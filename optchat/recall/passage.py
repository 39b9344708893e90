"""The part of a long message that a question is about. Pure.

Cut at the ends of lines or sentences, word for word in between, with … where something was left
out: whoever reads it must see that there is more. Called by ``recall/focus.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CUT: Final = "…"

_LOOKED_AT: Final = 200_000
"""Characters of a message in which the part is looked for.

What is found later than that is left to zooming.
"""

_MARKS_MAX: Final = 2_000
_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\s*\n\s*|(?<=[。！？])")


def passage(text: str, term_weights: Mapping[str, float], limit: int) -> str:
    """At most ``limit`` characters of the text.

    Where the terms of most worth stand closest together, or its beginning.
    """
    if len(text) <= limit:
        return text
    room = limit - 2 * len(CUT)
    first, last = _densest(_marks(text[:_LOOKED_AT], term_weights), room)
    start = _start(text, first, max(0, last - room), max(0, first - (room - (last - first)) // 3))
    end = _end(text, last, min(len(text), start + room))
    return (CUT if start else "") + text[start:end].strip() + (CUT if end < len(text) else "")


def _marks(text: str, term_weights: Mapping[str, float]) -> list[tuple[int, int, str]]:
    """Where terms begin and end.

    Stems are looked for as beginnings of words, everything as it is written.
    """
    terms = sorted(
        (term for term in term_weights if not term.startswith("@")), key=len, reverse=True
    )
    if not terms:
        return []
    pattern = re.compile(
        "|".join(
            rf"(?<!\w){re.escape(term)}" if term.isascii() else re.escape(term) for term in terms
        ),
        re.IGNORECASE,
    )
    marks = []
    for match in pattern.finditer(text):
        marks.append((match.start(), match.end(), match[0].lower()))
        if len(marks) == _MARKS_MAX:
            break
    return marks


def _densest(marks: list[tuple[int, int, str]], room: int) -> tuple[int, int]:
    """From where to where the most different terms stand within two thirds of the room.

    Of equals the first.
    """
    best, found, oldest = 0, (0, 0), 0
    within: dict[str, int] = {}
    for _, end, term in marks:
        within[term] = within.get(term, 0) + 1
        while end - marks[oldest][0] > room * 2 // 3 and marks[oldest][1] < end:
            gone = marks[oldest][2]
            within[gone] -= 1
            if not within[gone]:
                del within[gone]
            oldest += 1
        if len(within) > best:
            best, found = len(within), (marks[oldest][0], end)
    return found


def _start(text: str, first: int, earliest: int, wanted: int) -> int:
    """The first beginning of a line or sentence from ``wanted`` on, else of a word, at most
    ``first``.
    """
    start = max(earliest, wanted)
    if start == 0:
        return 0
    ends = _END.search(text, start, first + 1)
    if ends and ends.end() <= first:
        return ends.end()
    space = text.find(" ", start, first)
    return space + 1 if space >= 0 else start


def _end(text: str, last: int, end: int) -> int:
    """The last end of a line or sentence up to ``end``, else of a word, at least ``last``."""
    if end == len(text):
        return end
    ends = [match.start() for match in _END.finditer(text, last, end)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", last, end)
    return space if space > last else end
