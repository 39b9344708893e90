"""Days and months as terms: those a message was written on, and those a question names.

Pure; knows no clock.

A question often names the day of what it asks for, and hardly any message says on which day it was
written. Called by ``terms.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_NAME: Final = (
    r"(?P<{}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<{}>(?:19|20)\d\d)"

_NAMED: Final = re.compile(
    r"(?<![0-9A-Za-z.])(?:"
    # 2023-06-03, 2023/6/3, 2023年6月3日; 2023-06, 2023年6月
    rf"{_YEAR.format('y1')}[-/.年]\s?(?P<m1>[01]?\d)(?:[-/.月]\s?(?P<d1>[0-3]?\d))?(?!\d)"
    # 3.6.2023, which is never the sixth of March
    rf"|(?P<d2>[0-3]?\d)\.\s?(?P<m2>[01]?\d)\.\s?{_YEAR.format('y2')}(?!\d)"
    # 3 June 2023, 3rd of June, 2023; June 3, 2023; June 2023
    rf"|(?:{_DAY.format('d3')}\s(?:of\s)?)?{_NAME.format('m3')}(?:\s{_DAY.format('d4')})?(?:,"
    rf"?\s|,\s?){_YEAR.format('y3')}(?!\d)"
    r")",
    re.IGNORECASE,
)
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")


def day_terms(date: str) -> tuple[str, ...]:
    """The terms of the day a message was written on (ISO 8601): the day, and its month."""
    return _terms(date[:10]) if _ISO.match(date) else ()


def _terms(date: str) -> tuple[str, ...]:
    return (f"@{date}", f"@{date[:7]}") if len(date) > 7 else (f"@{date}",)


def named_terms(text: str) -> Iterator[str]:
    """The terms of the days and months that a text names with their year."""
    for match in _NAMED.finditer(text):
        parts = match.groupdict()
        year = parts["y1"] or parts["y2"] or parts["y3"]
        month = (
            _MONTHS.index(parts["m3"][:3].lower()) + 1
            if parts["m3"]
            else int(parts["m1"] or parts["m2"])
        )
        day = int(parts["d1"] or parts["d2"] or parts["d3"] or parts["d4"] or 0)
        if 1 <= month <= 12 and day <= 31:
            yield from _terms(f"{year}-{month:02d}-{day:02d}" if day else f"{year}-{month:02d}")
