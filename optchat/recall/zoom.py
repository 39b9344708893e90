"""Opening the view.

A line into the two it was made from, a message into its words, an id into its date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base.address import Place, parse_address
from ..base.errors import AddressError
from ..log.hidden import copy_of
from ..log.loader import LOST_TEXT
from ..tree.render import UNBUILT, many_lines, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..base.record import Message
    from ..log.hidden import Hidden
    from ..log.store import Store

PAGE_CHARS: Final = 16_000
"""Characters of one page: a screenful for a model, and far below what hosts cut tool results at."""

_SIGN_CHARS: Final = 16
"""How far back a cut moves to keep a sign whole.

What goes on joining for longer is no sign, and is cut where the page ends.
"""

_JOINER: Final = "\u200d"


def zoom(
    store: Store,
    hidden: Callable[[], Hidden],
    id: int | str,  # noqa: A002 -- the tool's own word
    n: int | str = 1,
    page: int | str = 1,
) -> str:
    """The two lines under ``id+n``, or with n = 1 the message itself, whole, in pages.

    ``hidden``: which messages are out of sight just now.

    Raises: AddressError: no line has this address, or the message has no such page; the hint says
    what to ask for.
    """
    place = parse_address(id, n, total=store.total())
    if place.level == 0:
        return _message_page(store, place.index, _page_number(page), hidden().original(place.index))
    return "\n".join(line_of(store, child) for child in place.children)


def line_of(store: Store, place: Place) -> str:
    """One line as the view shows it, whether built yet or not."""
    text = store.texts([place]).get(place)
    return f"{place.address}|{UNBUILT if text is None else one_line(text)}"


def date(store: Store, id: int | str) -> str:  # noqa: A002
    """When a message was said; for a line, when its first and last were.

    With session, author and platform where known.

    Raises:
        AddressError: no line has this address.
    """
    place = parse_address(id, total=store.total())
    said = [_said(store, place.first)]
    if place.level:
        said.append(_said(store, place.end - 1))
    return "\n".join(said)


def _said(store: Store, id_: int) -> str:
    message = store.message(id_)
    if message is None:
        return f"{id_}: {LOST_TEXT.format(id_)}"
    facts = [message.date or "at a time not recorded", message.kind]
    facts += [f"{name} {value}" for name, value in _origin(message)]
    return f"{id_}: {', '.join(one_line(fact) for fact in facts)}"


def _origin(message: Message) -> list[tuple[str, str]]:
    known = (
        ("session", message.session),
        ("by", message.author),
        ("on", message.platform),
        ("tool", message.tool),
    )
    return [(name, value) for name, value in known if value]


def _message_page(store: Store, id_: int, page: int, original: int | None) -> str:
    message = store.message(id_)
    if message is None:
        return f"{id_}+1|{LOST_TEXT.format(id_)}; run `optchat check` to see where"
    text, pages = page_of(message.text, page)
    if not 1 <= page <= pages:
        raise AddressError(
            f"message {id_} has no page {page}",
            hint=f"Its pages are 1 to {pages}" if pages > 1 else "It has page 1 only",
        )
    author = f" ({one_line(message.author)})" if message.author else ""
    author += f" ({copy_of(original)})" if original is not None else ""
    counter = f" [page {page} of {pages}]" if pages > 1 else ""
    more = f"\n[page {page} of {pages}; next: page {page + 1}]" if page < pages else ""
    return f"{id_}+1|{one_line(message.kind)}{author}:{counter} {many_lines(text)}{more}"


def _page_number(page: int | str) -> int:
    if isinstance(page, int) and not isinstance(page, bool):
        # Python refuses to write out an integer of thousands of digits.
        return max(-1, min(page, 1_000_000))
    try:
        return int(str(page).strip() or "1")
    except ValueError:
        raise AddressError(
            f"page {str(page)[:40]!r} is no number", hint="Give page as a number from 1 on"
        ) from None


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
