"""Cutting a long message into pages. Pure."""

from __future__ import annotations

from typing import Final

PAGE_CHARS: Final = 16_000
"""Characters of one page: a screenful for a model, and far below what hosts cut tool results at."""

_SIGN_CHARS: Final = 16
"""How far back a cut moves to keep a sign whole.

What goes on joining for longer is no sign, and is cut where the page ends.
"""

_JOINER: Final = "\u200d"


def page_of(text: str, page: int, size: int = PAGE_CHARS) -> tuple[str, int]:
    """Page ``page`` (from 1) of a text and how many pages there are.

    Pages join to the text exactly. They end at line ends, and inside a line only where one line
    alone is longer than a page. A page number out of range gives an empty page.
    """
    if len(text) <= size:
        return (text if page == 1 else ""), 1
    wanted, number, at = "", 0, 0
    while at < len(text):
        end = _cut(text, at, size)
        number += 1
        if number == page:
            wanted = text[at:end]
        at = end
    return wanted, number


def _cut(text: str, at: int, size: int) -> int:
    """Where the page that begins at ``at`` ends."""
    if len(text) - at <= size:
        return len(text)
    newline = text.rfind("\n", at, at + size)
    if newline >= at:
        return newline + 1
    # One line longer than a page: cut inside it, but not between the parts of what is shown as one
    # sign.
    for end in range(at + size, max(at, at + size - _SIGN_CHARS), -1):
        if not _joins(text[end]) and text[end - 1] != _JOINER:
            return end
    return at + size


def _joins(sign: str) -> bool:
    """Whether a sign belongs to the one before it.

    Combining marks, variation selectors, joiners, skin tones.
    """
    code = ord(sign)
    return 0x300 <= code <= 0x36F or code in (0x200D, 0xFE0E, 0xFE0F) or 0x1F3FB <= code <= 0x1F3FF
