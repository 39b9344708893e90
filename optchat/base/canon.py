"""The form of a message in which it is recognised, whatever a host did to it on the way. Pure.

A host strips texts, replaces pictures, joins unanswered messages and frames its own block of memory
into them: what is compared is what survives all that. Called by ``capture`` for every item of a
host's list, and by ``log`` for what the index can be asked for.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from .host_phrases import MEDIA_STUBS, words_of
from .json_line import clean

_ANY_BLOCK: Final = re.compile(
    r"<\s*memory-context\s*>.*?</\s*memory-context\s*>|</?\s*memory-context\s*>",
    re.IGNORECASE | re.DOTALL,
)


_MARK: Final = re.compile(
    r"\[[\w.+/-]+: (?:[\d,]+ bytes, sha256 [0-9a-f]{64}|https?://[^\s\]]+)\]|\[\d+ images?\]|"
    + "|".join(re.escape(words) for words in words_of(*MEDIA_STUBS))
)
"""Our marks for pictures and files, and what the hosts write in their place once the bytes are
dropped.
"""


_MASK: Final = re.compile(r"\*\*\*|\.\.\.|…|\[redacted\]", re.IGNORECASE)


_BREAK: Final = re.compile(r"\n[^\S\n]*\n\s*")


def canon(text: str) -> str:
    """The user's text in the form that survives the host.

    Paragraphs with single spaces, parted by one blank line.

    A host strips texts when it reloads them, replaces pictures by placeholders, and joins
    unanswered messages by a blank line: in this form a joined text is the join of its parts.
    """
    text = clean(text)
    if "[" in text:
        text = _MARK.sub(" ", text)
    if "memory-context" in text:
        text = _ANY_BLOCK.sub("", text)
    if "\n" not in text:
        return " ".join(text.split())
    parts = (" ".join(part.split()) for part in _BREAK.split(text))
    return "\n\n".join(part for part in parts if part)


def joined(*parts: str) -> str:
    """The canonical text of several messages the host has joined."""
    return "\n\n".join(part for part in parts if part)


def without_end(whole: str, end: str) -> str | None:
    """What stands before ``end`` in a joined canonical text; None where it does not end so."""
    if whole == end:
        return ""
    if end and whole.endswith("\n\n" + end):
        return whole[: -len(end) - 2]
    return None


def without_start(whole: str, start: str) -> str | None:
    """What follows ``start`` in a joined canonical text; None where it does not begin so."""
    if whole == start:
        return ""
    if start and whole.startswith(start + "\n\n"):
        return whole[len(start) + 2 :]
    return None


def has_mask(text: str) -> bool:
    """Whether a host may have hidden a secret in a text."""
    return _MASK.search(text) is not None


_FIRM_MAX: Final = 500
"""Characters of a call that no host shortens.

When it compresses, one of them cuts the texts in longer ones.
"""


def key_of(kind: str, text: str, *, call: str = "", said: bool = False, steer: bool = False) -> str:
    """What an entry is recognised by.

    The tool call's id, the user's canonical text, or any other text without outer space.

    Some servers name the calls of each turn call_0, call_1 and so on, and some hosts give equal
    calls equal ids. So a call's own words count too, but where a host may have shortened or masked
    them.
    """
    if steer:
        return f"steer|{call}|{canon(text)}"
    if said:
        return f"said|{canon(text)}"
    text = clean(text.strip())
    if call:
        firm = kind == "tool" and len(text) <= _FIRM_MAX and not has_mask(text)
        return f"{kind}#{call}|{_digest(text)}" if firm else f"{kind}#{call}"
    # Results are large and kept for every message of a session: sixteen bytes stand for them.
    return f"{kind}|{text}" if len(text) <= 64 else f"{kind}={_digest(text)}"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
