"""The local summarizer.

The line of a message and of two lines, picked from their own words, with no model and no network.

The same input always gives the same line. Everything in a line stands in its source, in order, but
for kind tags, ``…`` where something was left out, and markers such as ``[secret]``. Reads no files
and keeps no state but bounded caches. Called by the compactor, and by ``model_calls.py`` for what a
model could not write.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ..base.json_line import clean
from ..base.record import KINDS
from ..base.secrets import mask
from .choice import Choice, Taken
from .clauses import read
from .items import GAP
from .plain import clip, plain

if TYPE_CHECKING:
    from ..base.record import Node
    from .job import Job

_UNTAGGED: Final = "note"
"""The kind of an older line's text that names none.

A line of unknown make is a note, and never the user's words.
"""
_LONGEST_KIND: Final = 32
"""Characters of a kind as a tag."""
_SPARE: Final = 8
"""One in so many bytes of the limit unused is worth a second look."""

logger = logging.getLogger(__name__)


def local_node(job: Job, limit: int, by: str = "local") -> Node:
    """The node of a job with a line of at most ``limit`` bytes of UTF-8. Never fails.

    A source that fits is its own line, secrets masked, and counts as ``free``; ``by`` is what any
    other line counts as.
    """
    if job.known is not None:
        return job.node(*job.known)
    source = job.source
    try:
        if len(source) <= limit and len((whole := mask(source)).encode()) <= limit:
            return job.node(whole, "free")
        if job.place.level == 0:
            return job.node(leaf_line(job.kind, job.sources[0], limit), by)
        return job.node(merge_lines(job.sources[0], job.sources[1], limit), by)
    except (
        Exception
    ):  # our own bug, met by one text: without this, nothing after that text would ever be built
        logger.exception("optchat: line %s was cut instead of summed up", job.place.address)
        return job.node(source[:limit].encode()[:limit].decode(errors="ignore"), "fallback")


def leaf_line(kind: str, text: str, limit: int) -> str:
    """The line of one message, at most ``limit`` bytes of UTF-8.

    ``kind: text`` itself, secrets masked, where that fits.
    """
    if len(text) + len(kind) + 2 <= limit:
        whole = mask(f"{clean(kind)}: {clean(text)}")
        if len(whole.encode()) <= limit:
            return whole
    return _line([(tag_of(kind), plain(text))], 1, limit)


def merge_lines(left: str, right: str, limit: int) -> str:
    """The line of two neighbouring lines, at most ``limit`` bytes of UTF-8; ``left`` is the older.

    A line is items parted by newlines, each opening with ``kind: ``; a line without a kind goes on
    with the item before. Two lines that fit together stay word for word, but for secrets.
    """
    if len(left) + len(right) < limit:
        whole = mask(f"{clean(left)}\n{clean(right)}")
        if len(whole.encode()) <= limit:
            return whole
    older = _items(left)
    return _line(older + _items(right), len(older), limit)


def tag_of(kind: str) -> str:
    """The kind as a tag can hold it: short, without spaces and colons."""
    return clip("".join(clean(kind).split()).replace(":", ""), _LONGEST_KIND) or _UNTAGGED


# ---- reading


_FIRST_TAG: Final = re.compile(r"([^\s:]{1,32}):(?=\s|$) ?")


@lru_cache(maxsize=64)
def _tags(kind: str) -> re.Pattern[str]:
    known = KINDS if kind in KINDS else (*KINDS, kind)
    return re.compile(rf"({'|'.join(map(re.escape, known))}):(?=\s|$) ?")


def _items(line: str) -> list[tuple[str, str]]:
    """Kind and text of each item of a line.

    A kind that is not ours counts only as the one the line opens with: ``error: …`` further on is
    part of someone's text.
    """
    text = plain(line)
    first = _FIRST_TAG.match(text)
    kind = first[1] if first else _UNTAGGED
    found, body = [], first.end() if first else 0
    for match in _tags(kind).finditer(text, body):
        if _opens_item(text, match.start()):
            found.append((kind, text[body : match.start()].strip()))
            kind, body = match[1], match.end()
    return [*found, (kind, text[body:].strip())]


def _opens_item(text: str, at: int) -> bool:
    """A tag opens an item at the start of a line, and after a sentence.

    Models write all their items on one line.
    """
    return text[at - 1] == "\n" or (text[at - 1] == " " and text[at - 2] in ".;!?…")


# ---- writing


def _line(found: list[tuple[str, str]], older: int, limit: int) -> str:
    """The best of the items in ``limit`` bytes; the first ``older`` of them are the older half."""
    items, segments, words = read(found)
    choice = Choice(items, segments, words, older, limit)
    choice.fill()
    line = _fitting(choice, limit)
    size = len(line.encode())
    if line and limit - size > limit // _SPARE:
        choice.fill_again(size, limit)
        line = _fitting(choice, limit)
    return line or _head(found, limit)


def _fitting(choice: Choice, limit: int) -> str:
    """The line, less what was taken last until it fits.

    Sizes are known for certain only when all windows stand side by side.
    """
    line = _render(choice)
    while len(line.encode()) > limit:
        choice.take_back()
        line = _render(choice)
    return line


def _head(found: list[tuple[str, str]], limit: int) -> str:
    """Where nothing weighs anything (emoji alone, punctuation, no text).

    The start of it, as it is.
    """
    kind, text = next((each for each in found if each[1]), found[0])
    head = clip(" ".join(text.split()), limit - len(kind.encode()) - 2 - len(GAP.encode()))
    return f"{kind}: {head}{GAP}"


def _render(choice: Choice) -> str:
    """The line: each item that has something, in order, with ``…`` for what is missing."""
    chosen: list[list[Taken]] = [[] for _ in choice.items]
    for number in sorted(choice.taken):
        chosen[choice.segments[number].item].append(choice.taken[number])
    out: list[str] = []
    kind, skipped = "", False
    for place, taken in enumerate(chosen):
        if not taken:
            skipped = True
            if out and not out[-1].endswith(GAP):
                out[-1] = out[-1].rstrip(_LOOSE) + GAP
            continue
        text = _text(choice, place, taken)
        if skipped and not out and not text.startswith(GAP):
            text = GAP + text
        opened = choice.items[place].kind
        if opened == kind and (out[-1].endswith(GAP) or text.startswith(GAP)):
            out[-1] = (
                # one tag for both: a gap parts them anyway
                f"{out[-1].rstrip(_LOOSE + GAP)}{GAP} {text.lstrip(GAP)}"
            )
        else:
            out.append(f"{opened}: {text}")
        kind = opened
    return "\n".join(out)


_CLOSED: Final = ".!?:;,。！？、，：；…"
"""What may stand before a line break that is shown as a space.

Without it two lines would read as one sentence.
"""
_LOOSE: Final = " ,;:.-\n，。、；："
"""Punctuation whose place a gap takes."""


def _text(choice: Choice, place: int, taken: list[Taken]) -> str:
    """The windows of one item as text."""
    item, text = choice.items[place], choice.words.text
    start, stop = choice.words.span(item.low, item.high)
    first = taken[0].window
    out = GAP if first.before or text[start : first.start].strip(_LOOSE) else ""
    end, after = -1, ""
    for _, window, _ in taken:
        if end >= 0:
            between = text[end : window.start]
            joined = (
                not after
                and not window.before
                and (not between.strip(" ") or (between == " \n " and out[-1] in _CLOSED))
            )
            out = out + (" " if between else "") if joined else f"{out.rstrip(_LOOSE + GAP)}{GAP} "
        piece = text[window.start : window.end]
        out += f"{window.before}{piece.rstrip(_LOOSE) if window.after else piece}{window.after}"
        end, after = window.end, window.after
    if text[end:stop].strip(_LOOSE):
        out = out.rstrip(_LOOSE + GAP) + GAP
    return out.replace(" \n ", " ").replace("\x01", " ")
