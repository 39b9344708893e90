"""What is told of copies, messages that were logged twice, and which of them a user means. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..base.errors import AddressError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..memory.reports import CopyReport, HideReport, ShowReport

_SHOWN: Final = 50
_SPAN: Final = re.compile(r"\s*(\d{1,15})\s*(?:([-+])\s*(\d{1,15})\s*)?")


def span_of(text: str) -> tuple[int, int]:
    """The first and the last message of ``120-159`` or ``120+40``; of ``120`` it alone.

    Raises:
        AddressError: it is neither.

    """
    match = _SPAN.fullmatch(text)
    if match is None:
        hint = "Give the first and the last message, as in 120-159"
        raise AddressError(f"{text[:40]!r} names no messages", hint=hint)
    first, other = int(match[1]), int(match[3] or 0)
    return first, {"-": other, "+": first + other - 1}.get(match[2] or "", first)


def copies_text(stretches: Sequence[CopyReport], typed: Callable[[str], str]) -> str:
    """Each stretch in sight with what it repeats, and how to take it out of sight.

    Of those out of sight, how many they are. ``typed`` makes a command of its name.
    """
    there = [stretch for stretch in stretches if stretch["in_sight"]]
    lines = [stretch_text(stretch) for stretch in there[:_SHOWN]]
    if len(there) > _SHOWN:
        lines.append(f"and {len(there) - _SHOWN} more such stretches")
    if there:
        one = typed(f"copies --hide {_span(there[0]['first'], there[0]['last'])}")
        more = f", or one of them: {one}" if len(there) > 1 else ""
        all_ = typed("copies --hide")
        lines.append(f"They were logged twice. To take all copies out of sight: {all_}{more}")
    lengths = [stretch["last"] - stretch["first"] + 1 for stretch in stretches]
    if gone := sum(lengths) - sum(stretch["in_sight"] for stretch in stretches):
        are, them = ("copies are", "them") if gone > 1 else ("copy is", "it")
        show = typed("copies --show FIRST-LAST")
        lines.append(f"{gone:,} {are} out of sight. To bring {them} back: {show}")
    return "\n".join(lines) or "nothing was logged twice, as far as can be told"


def stretch_text(stretch: CopyReport) -> str:
    """One stretch."""
    copies = _span(stretch["first"], stretch["last"])
    are = f"messages {copies} are" if stretch["first"] < stretch["last"] else f"message {copies} is"
    session = stretch["session"] or "without a name"
    of_session = stretch["of_session"] or "without a name"
    where = f"{session}, first in {of_session}" if session != of_session else session
    return f"{are} a copy of {_span(stretch['of'], stretch['of_last'])} (session {where})"


def hidden_text(facts: HideReport, typed: Callable[[str], str]) -> str:
    """What hiding has done, and what comes of it."""
    said = f"out of sight: {_messages(facts['hidden'])}"
    said += f"; {facts['already']:,} were so before" if facts["already"] else ""
    return said + _lines_to_come(facts["lines"], typed)


def shown_text(facts: ShowReport, typed: Callable[[str], str]) -> str:
    """What showing has done, and what comes of it."""
    said = f"in sight again: {_messages(facts['shown'])}"
    return said + _lines_to_come(facts["lines"], typed)


def _lines_to_come(lines: int, typed: Callable[[str], str]) -> str:
    now = typed("compact")
    told = f"\nLines that say so now: built while Hermes runs, or at once with: {now}"
    return told if lines else ""


def _messages(number: int) -> str:
    return f"{number:,} message{'' if number == 1 else 's'}"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
