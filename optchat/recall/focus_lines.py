"""Messages a question points to, shown as lines of their own under the lines of the view that cover
them. Pure.

The view is merged further for this one rendering, so that everything together keeps to the budget;
where that would take lines that can be read and leave lines that cannot, there is less room for the
focus instead. Called by ``recall/recall.py``.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from ..tree.render import FOOT, HEAD, arrange, shown_lines, weigh
from ..tree.view import merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..base.address import Place
    from ..tree.view import Line

INDENT: Final = "  "
NOTE: Final = "An indented line is one message that may bear on what is asked now, word for word.\n"
_CHAT: Final = "<chat>\n"
assert HEAD.endswith(_CHAT)
_HEAD: Final = HEAD.removesuffix(_CHAT) + NOTE + _CHAT
FRAME_CHARS: Final = len(_HEAD) + len(FOOT)
_LEAST_CHARS: Final = 80
"""Where less than this is left, a line that would fit is hardly worth looking for."""


class FocusLine(NamedTuple):
    """A message as it is shown: ``text`` is one line, kind first, neutralised."""

    id: int
    text: str

    @property
    def shown(self) -> str:
        """The whole line, without its indent."""
        return f"{self.id}+1|{self.text}"

    @property
    def chars(self) -> int:
        """Characters of the indented line, its newline included."""
        return len(INDENT) + len(self.shown) + 1


def weave(
    tiles: list[Line],
    total: int,
    room: int,
    found: Sequence[FocusLine],
    share: float,
    *,
    parent: Callable[[Place], Line | None],
    text: Callable[[list[Place]], dict[Place, str]],
) -> list[str] | None:
    """The lines of the view with those of ``found`` that have room under them, in ``room``
    characters; None if none has.

    ``found``: best first. ``share``: how much of the room they may take, or more, if the view
    leaves more. What a line of the view says word for word already is not said again.
    """
    tiles, bare = arrange(tiles, total, room, parent)
    if bare or not found:
        return None
    coarse = _merged(tiles, total, int(room * (1 - share)), parent)
    left = room - sum(map(weigh, coarse))
    chosen = _chosen(found, left, coarse, shown_lines(coarse, 0, text))
    tiles = _merged(tiles, total, room - sum(line.chars for line in chosen), parent)
    lines = shown_lines(tiles, 0, text)
    under = _under(chosen, tiles, lines)
    if not any(under):
        return None
    return [
        row
        for line, below in zip(lines, under, strict=True)
        for row in (line, *(INDENT + one.shown for one in below))
    ]


def focus_framed(body: Iterable[str]) -> str:
    """Woven lines inside the frame of the view, which says what their indents mean."""
    return _HEAD + "".join(f"{line}\n" for line in body) + FOOT


def fitting(found: Iterable[FocusLine], room: int) -> list[FocusLine]:
    """The best of ``found`` that fit into ``room`` characters, best first."""
    chosen: list[FocusLine] = []
    for line in found:
        if room < _LEAST_CHARS:
            break
        if line.chars <= room:
            chosen.append(line)
            room -= line.chars
    return chosen


def _merged(
    tiles: list[Line], total: int, target: int, parent: Callable[[Place], Line | None]
) -> list[Line]:
    """Merged down to ``target`` characters as far as built lines allow."""
    return merge(tiles, total, target, weigh=weigh, parent=parent, weight=sum(map(weigh, tiles)))


def _chosen(
    found: Sequence[FocusLine], room: int, tiles: list[Line], lines: list[str]
) -> list[FocusLine]:
    starts = [line.place.first for line in tiles]
    return fitting(
        (one for one in found if one.text not in lines[bisect_right(starts, one.id) - 1]), room
    )


def _under(chosen: list[FocusLine], tiles: list[Line], lines: list[str]) -> list[list[FocusLine]]:
    """For each line of the view what stands under it, oldest first.

    A finer view may say some of it itself by now.
    """
    starts = [line.place.first for line in tiles]
    under: list[list[FocusLine]] = [[] for _ in tiles]
    for one in sorted(chosen):
        at = bisect_right(starts, one.id) - 1
        if one.text not in lines[at]:
            under[at].append(one)
    return under
