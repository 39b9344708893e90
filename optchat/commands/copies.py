"""What is told of copies: messages that an older build logged twice. Pure: prints and reads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SHOWN: Final = 50


def copies_text(stretches: Sequence[dict[str, Any]], typed: Callable[[str], str]) -> str:
    """Each stretch with what it repeats, and how to take it out of sight; ``typed`` makes a command of its name."""
    lines = [stretch_text(stretch) for stretch in stretches[:_SHOWN]]
    if len(stretches) > _SHOWN:
        lines.append(f"and {len(stretches) - _SHOWN} more")
    one = typed(f"copies --hide {span(stretches[0]['first'], stretches[0]['last'])}")
    more = f", or one of them: {one}" if len(stretches) > 1 else ""
    lines.append(f"An older build logged them twice. To take all copies out of sight: {typed('copies --hide')}{more}")
    return "\n".join(lines)


def stretch_text(stretch: dict[str, Any]) -> str:
    """One stretch."""
    copies, of = span(stretch["first"], stretch["last"]), span(stretch["of"], stretch["of_last"])
    are = "messages {} are a copy" if stretch["first"] < stretch["last"] else "message {} is a copy"
    again = f"session {stretch['session'] or 'unknown'} repeats {stretch['of_session'] or 'unknown'}"
    where = again if stretch["session"] != stretch["of_session"] else f"session {stretch['session'] or 'unknown'}"
    return f"{are.format(copies)} of {of} ({where})"


def span(first: int, last: int) -> str:
    """The first and the last of some messages; of one, it alone."""
    return str(first) if first == last else f"{first}-{last}"
