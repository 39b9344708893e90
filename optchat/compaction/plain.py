"""Text made plain before anything is picked from it.

Valid Unicode, no control codes, secrets masked, blobs as a marker.

Of a huge text only the head and the tail are looked at, so time and memory do not grow with a 50 MB
message. Newlines are kept, all other white space becomes single spaces. Knows nothing of kinds and
limits. Called by ``local.py``; ``clip`` by whoever shows or sends text.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import combining

from ..base.json_line import clean
from ..base.record import KINDS
from ..base.secrets import mask

SIDE: Final = 65_536
"""Characters looked at from each end of a huge text."""

_BLOB: Final = re.compile(
    r"(?:[A-Za-z0-9+/_-]{60,}+={0,2}+(?:\\n|[\r\n])*+)++[A-Za-z0-9+/_-]*={0,2}"
)
_DATA_URL: Final = re.compile(r"data:[\w.+/;=-]{0,80};base64,[A-Za-z0-9+/_=-]*")
_URL_HEAD: Final = re.compile(r"data:[\w.+/;=-]{0,80};base64,\Z")
_LEAST_BLOB: Final = 100
_LEAST_HEX: Final = 129
"""Characters: a SHA-512 in hex has 128 and is a name someone may look for."""


def shrink_blobs(text: str) -> str:
    """Long base64 or hex as a marker with its length.

    No one searches for it, and it would fill the line.
    """
    if "base64," in text:
        text = _DATA_URL.sub(
            lambda match: f"[base64, {len(match[0]) - match[0].index('base64,') - 7} bytes]", text
        )
    # A run of 60 covers one whole aligned stretch of 30: looking at those is ten times faster than
    # running the pattern everywhere.
    for at in range(0, len(text) - 29, 30):
        piece = text[at : at + 30]
        if " " not in piece and piece.isascii() and "\n" not in piece:
            return _BLOB.sub(_blob_marker, text)
    return text


def _blob_marker(match: re.Match[str]) -> str:
    blob = match[0]
    marker = _marker(blob[:400], len(blob))
    return f"{marker}\n" if marker and blob.endswith("\n") else marker or blob


def _marker(sample: str, size: int) -> str:
    """``[base64, n bytes]``, or nothing where the run is a long path, a ruler or a word list rather
    than a blob.
    """
    if size < _LEAST_BLOB:
        return ""
    if not sample.strip("0123456789abcdefABCDEF\r\n"):
        return f"[hex, {size} bytes]" if size >= _LEAST_HEX else ""
    mixed = (
        any(c.isdigit() for c in sample) and sample.upper() != sample and sample.lower() != sample
    )
    return (
        f"[base64, {size} bytes]"
        if mixed and sample.count("/") + sample.count("-") + sample.count("_") <= len(sample) // 8
        else ""
    )


_ANSI: Final = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)?|[()][0-9AB]|[78=>c])?"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_BOLD: Final = re.compile(r"(?<![\w/*])\*\*(?=[^\s*/])([^*\n]{1,200})(?<!\s)\*\*(?![\w/*])")


def plain(text: str) -> str:
    """The text to pick from.

    Both ends of a huge one, cleaned, masked, blobs shortened, white space single, newlines kept.
    """
    text = clean(text) if len(text) <= 2 * SIDE else _ends(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = shrink_blobs(mask(mark_quotes(tidy(text))))
    return _BOLD.sub(r"\1", text) if "**" in text else text


_QUOTED: Final = re.compile(
    rf"^[ >*•`-]*(\d{{1,15}})\+(\d{{1,15}})\|(?:{'|'.join(KINDS)}): [^\n]*$", re.MULTILINE
)


def mark_quotes(text: str) -> str:
    """The text with whole lines of a view as a marker.

    An agent that answers from memory says nothing new in them.

    Without this what was said once would be summed up again with each answer that quotes it, as if
    it had just been said.
    """
    if "|" not in text:
        return text
    out: list[str] = []
    count = done = 0
    for match in _QUOTED.finditer(text):
        start, n = int(match[1]), int(match[2])
        if not n or n & (n - 1) or start % n:  # no address of a line: somebody's table
            continue
        between = text[done : match.start()]
        if not count or between.strip():
            out += (_quotes(count), between)
            count = 0
        count, done = count + 1, match.end()
    return "".join((*out, _quotes(count), text[done:])) if count else text


def _quotes(count: int) -> str:
    """Without their addresses: models copy those."""
    return (
        f"[{count:,} lines of the memory, quoted]"
        if count > 1
        else "[a line of the memory, quoted]"
        if count
        else ""
    )


def tidy(text: str) -> str:
    """The text without control characters and empty space.

    Newlines stay, every other run of white space is one space.
    """
    if not text.replace("\n", "").isprintable():
        text = _CONTROL.sub("", text)  # first: what stood on both sides of one may be spaces
    elif not ("  " in text or "\n " in text or " \n" in text):
        return text.strip(" ")  # as it is: lines of ours are, and only looking is ten times faster
    return (
        "\n".join([" ".join(line.split()) for line in text.split("\n")])
        if "\n" in text
        else " ".join(text.split())
    )


def _ends(text: str) -> str:
    """Head and tail with ``…`` between.

    A blob that runs out of the head is counted to its end, wherever that is.
    """
    head, tail = text[:SIDE], len(text) - SIDE
    for match in _BLOB.finditer(head):
        if match.end() == SIDE:
            whole = _BLOB.match(text, match.start())
            end = whole.end() if whole else SIDE
            if marker := _marker(match[0][:400], end - match.start()):
                head = _URL_HEAD.sub("", head[: match.start()]) + marker
                tail = max(tail, end)
    return f"{clean(head)}\n…\n{clean(text[tail:])}"


def clip(text: str, limit: int) -> str:
    """As much of the text's head as fits ``limit`` bytes of UTF-8, ended between two graphemes
    where that is near.

    Graphemes are approximated: no cut before a combining mark, a variation selector, a skin tone or
    the second half of a flag, nor on either side of a joiner.
    """
    if len(text) * 4 <= limit:
        return text
    head = text[: max(limit, 0)].encode()
    if len(head) <= limit and len(text) <= limit:
        return text
    cut = len(head[:limit].decode("utf-8", "ignore"))
    for at in range(cut, max(cut - 24, 0), -1):
        if not _joins(text, at):
            return text[:at]
    return text[:cut]


def _joins(text: str, at: int) -> bool:
    """Whether the characters on both sides of ``at`` are one grapheme."""
    if at >= len(text):
        return False
    before, after = text[at - 1], text[at]
    if after < "\u0300":
        return False
    if "\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff":
        flags = 1
        while flags < at and "\U0001f1e6" <= text[at - 1 - flags] <= "\U0001f1ff":
            flags += 1
        return flags % 2 == 1
    return (
        after == "\u200d"
        or before == "\u200d"
        or combining(after) != 0
        or "\ufe00" <= after <= "\ufe0f"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or after in "\u0e31\u0e34\u0e35\u0e36\u0e37\u0e33\u20e3"
    )
