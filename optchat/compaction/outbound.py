"""A text made ready to leave the machine.

Valid Unicode, secrets masked, blobs as markers, nothing that ends our frames, clipped.

The one place where this is done, so that nothing is sent that went past it. The log keeps every
text as it was. Called by ``summarizer.py`` for sources and answers, by ``turn_filter.py`` for a
turn, and for each line of the context.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..tree.render import many_lines
from .model import CallError
from .plain import SIDE, plain, shrink_blobs
from .prompts import FRAMES

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE_CHARS: Final = 30_000
"""Most characters of one text that are sent: its head and its tail, half each."""

_LEFT_OUT: Final = "[{} characters left out here]"
_MARGIN: Final = 2_100
"""Characters at a cut that are not sent.

A secret that the cut went through is not known by what is left of it. Longer than any value that is
masked by its name.
"""
_WORD: Final = 200
"""How far back to look for a space to cut at.

Half a number or half a path would be copied as a fact.
"""

_RUN: Final = re.compile(r"[A-Za-z0-9+/_=-]*")
_LEAST_RUN: Final = 100
_URL_HEAD: Final = 100
_MARKER_CHARS: Final = 64
_MARKER: Final = re.compile(r"\[(?:base64|hex), \d+ bytes\]")

_FRAME: Final = re.compile(rf"<(?=\s*+/?\s*+(?:{'|'.join(FRAMES)})\b)", re.IGNORECASE)
_ID_HEAD: Final = re.compile(r"^[ \t]*\d+\+\d+\|[ \t]?", re.MULTILINE)


def ready_to_send(text: str, redact: Callable[[str], str], chars: int = SOURCE_CHARS) -> str:
    """The text as a model may see it, at most about ``chars`` characters; line breaks stay.

    ``redact`` masks what the host knows to be secret. Of a huge text only both ends are looked at,
    so that 50 MB cost no more than 100 KB. Clipped last: a secret cut in two is not recognised any
    more.

    Raises:
        CallError: ``redact`` failed. Sending the text unmasked instead is no choice.
    """
    if len(text) <= 2 * SIDE:
        return _clipped(_masked(text, redact), chars)
    head, tail, between = _ends(text)
    if not tail:
        return _clipped(_masked(head, redact), chars)
    head, tail = _masked(head, redact), _masked(tail, redact)
    shown = _head(_before_cut(head), chars // 2), _tail(_after_cut(tail), chars // 2)
    between += len(head) + len(tail) - len(shown[0]) - len(shown[1])
    return _joined(*shown, between)


def disarm(text: str) -> str:
    """The text without what would end our frames or the host's, and without line numbers.

    Models copy them into their lines.
    """
    if "|" in text:
        text = _ID_HEAD.sub("", text)
    text = many_lines(text)
    return _FRAME.sub("‹", text) if "<" in text else text


def _masked(text: str, redact: Callable[[str], str]) -> str:
    text = plain(text)
    try:
        # Again: what comes from outside may be anything, and must still be valid UTF-8.
        text = plain(redact(text))
    except (
        Exception
    ) as error:  # whatever it is, the text is not sent; the attempt at this line counts as failed
        raise CallError(
            f"cannot mask the secrets of a text before it is sent: {type(error).__name__}: {error}"
        ) from error
    return disarm(text)


# ---- clipping


def _clipped(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    head, tail = _head(text, chars // 2), _tail(text, chars // 2)
    return _joined(head, tail, len(text) - len(head) - len(tail))


def _joined(head: str, tail: str, left_out: int) -> str:
    return f"{head}\n{_LEFT_OUT.format(left_out)}\n{tail}"


def _head(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    near = max(chars - _WORD, 0)
    space = max(text.rfind(" ", near, chars), text.rfind("\n", near, chars))
    return text[: space if space > 0 else chars]


def _tail(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    start = len(text) - chars
    spaces = [at for at in (text.find(sign, start, start + _WORD) for sign in " \n") if at >= 0]
    return text[min(spaces) + 1 if spaces else start :]


# ---- huge texts


def _ends(text: str) -> tuple[str, str, int]:
    """Head and tail of a huge text, and how many characters lie between.

    Without a tail, the head stands for all of it.

    A blob that runs out of the head becomes a marker with its whole length, and what follows it is
    looked at instead: a picture of 5 MB between two sentences leaves the two sentences.
    """
    head, reached = text[:SIDE], SIDE
    run = _RUN.match(head[::-1])
    start = SIDE - (run.end() if run else 0)
    if SIDE - start >= _LEAST_RUN:
        whole = _RUN.match(text, SIDE)
        end = whole.end() if whole else SIDE
        if head.endswith("base64,", 0, start):
            start = max(head.rfind("data:", max(start - _URL_HEAD, 0), start), 0)
        marker = shrink_blobs(text[start:end])
        if len(marker) <= _MARKER_CHARS:
            head, reached = head[:start] + marker, end
    last = len(text) - SIDE
    if reached >= last:
        return head + text[reached:], "", 0
    return head, text[last:], last - reached


def _before_cut(head: str) -> str:
    """The head without what stands at the cut.

    A marker there is what a blob has become, and no secret reaches over it.
    """
    markers = list(_MARKER.finditer(head, max(len(head) - _MARGIN, 0)))
    return head[: markers[-1].end()] if markers else head[:-_MARGIN]


def _after_cut(tail: str) -> str:
    marker = _MARKER.search(tail, 0, _MARGIN)
    return tail[marker.start() :] if marker else tail[_MARGIN:]
