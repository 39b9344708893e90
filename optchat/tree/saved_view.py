"""``view.json``: the lines of the view as they were after the last merge, replaced as a whole.

The tail that was logged since is implied. Without the file a restart would fold another view, and
every prompt cache that holds the old one would be worthless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from ..base.address import Place
from ..base.errors import StoreError
from ..base.record import MAX_LEVEL
from ..log import files, reads

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class SavedView:
    """Lines oldest first, the budget (characters) they were folded for, and how often the file was
    written.
    """

    lines: tuple[Place, ...]
    budget: int
    generation: int


def load(path: Path) -> SavedView | None:
    """The saved view, or None where there is none that can be used: it is then folded anew."""
    try:
        raw = orjson.loads(reads.read_file(path) or b"null")
        lines = tuple(Place(level, index) for level, index in raw["lines"])
        saved = SavedView(lines, int(raw["budget"]), int(raw["generation"]))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    except StoreError:
        # the view is shown all the same; whoever saves it finds out what is wrong with the file
        return None
    end = 0
    for place in lines:
        if not (_is_count(place.level) and _is_count(place.index) and place.level <= MAX_LEVEL):
            return None
        if not end <= place.first < place.end <= 1 << MAX_LEVEL:
            return None
        end = place.end
    return saved if raw.get("version") == VERSION else None


def save(path: Path, view: SavedView) -> None:
    """Replace the file; the caller holds the write lock."""
    raw = {
        "version": VERSION,
        "generation": view.generation,
        "budget": view.budget,
        "lines": [list(place) for place in view.lines],
    }
    files.replace_file(path, orjson.dumps(raw, option=orjson.OPT_APPEND_NEWLINE))


def open_at(path: Path, id_: int) -> None:
    """Put in place of the saved line that covers a message the lines it was made from, down to that
    message's, which is left out.

    What a view is made of must be built, and these are not any more when a message is redacted; all
    its other lines stay as they are.
    """
    saved = load(path)
    if saved is None:
        return
    lines: list[Place] = []
    for place in saved.lines:
        lines += _beside(place, id_) if place.first <= id_ < place.end else [place]
    if tuple(lines) != saved.lines:
        save(path, SavedView(tuple(lines), saved.budget, saved.generation + 1))


def _beside(place: Place, id_: int) -> list[Place]:
    if not place.level:
        return []
    older, younger = place.children
    return [*_beside(older, id_), younger] if id_ < older.end else [older, *_beside(younger, id_)]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
