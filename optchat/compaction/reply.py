"""What a model answered, freed of what models put around a line.

Thoughts, fences, quotation marks, headings, line numbers.

Takes off only what is plainly around the line and never touches what is in it. Pure; does not
judge: ``validate.py`` does. Called by ``summarizer.py``.
"""

from __future__ import annotations

import re
from typing import Final

from .prompts import FRAMES

_THOUGHT: Final = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
_OPEN: Final = re.compile(rf"<(?:{_THOUGHT})>|\[think\]|◁think▷", re.IGNORECASE)
_CLOSE: Final = re.compile(rf"</(?:{_THOUGHT})>|\[/think\]|◁/think▷", re.IGNORECASE)
_CHANNEL: Final = re.compile(
    r"<\|(?:start|channel|message|end|return|im_start|im_end|eot_id|endoftext)\|>(?:assistant"
    r"|analysis|final)?"
)

_FENCE: Final = re.compile(r"(`{3,}|~{3,})(?:[\w+-]*[ \t]*\n)?")
_TAGGED: Final = re.compile(r"<([a-z][\w-]{0,30})>(.*)</\1\s*>", re.IGNORECASE | re.DOTALL)
_HALF_TAG: Final = re.compile(
    (
        rf"^<(?:line|summary|answer|output|{'|'.join(FRAMES)})>|</(?:line|summary|answer|output"
        rf"|{'|'.join(FRAMES)})>$"
    ),
    re.IGNORECASE,
)
_QUOTES: Final = (
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("„", "“"),
    ("„", "”"),
    ("‘", "’"),
    ("«", "»"),
    ("»", "«"),
    ("「", "」"),
    ("『", "』"),
    ("`", "`"),
    ("**", "**"),
    ("__", "__"),
)
_SAYS: Final = (
    r"(?:the |my |your )?(?:final |new |merged |joined |one[- ]line |short "
    r")?(?:summary|line|answer|output|result)(?: line)?"
    r"|zusammenfassung|zeile|résumé|resumen|resumo|riassunto|samenvatting|podsumowanie|итог"
    r"|резюме|摘要|总结|總結|要約|まとめ|요약"
)
_LABEL: Final = re.compile(
    r"(?:(?:sure|certainly|okay|ok|of course|absolutely)\b[^\n:]{0,40}?[,.!:]\s*)?"
    r"(?:here(?:'s| is| are)\b[^\n:]{0,80}:"
    rf"|[*_#\s]{{0,6}}(?:{_SAYS})[*_]{{0,3}}\s?[:：][*_]{{0,3}})\s*",
    re.IGNORECASE,
)
"""Words before a line that say that a line is coming."""
_BULLET: Final = re.compile(r"^\s*[-*•·]\s+(?=[^\s\d])")
_ITEM: Final = re.compile(r"^\s*(?:[-*•·]|\d{1,2}[.)])\s+(?=\S)")
_ID: Final = re.compile(r"^\s*\d+\s?\+\s?\d+\s?\|\s?|(?<!\d)\d+\+\d+\|\s?")
"""The address of a line.

With spaces only at the start of a line: further on, ``1 + 2 | 3`` is somebody's arithmetic.
"""
_TAG: Final = re.compile(r"\w{1,32}: ")
_RULER: Final = re.compile(r"-{20,}")
_LAYERS: Final = 8
"""Most things that are taken off one after the other.

A line in quotes in a tag in a fence has three.
"""


def line_in(answer: str) -> str:
    """The line in an answer, its line breaks as spaces; empty where there is none."""
    text = _RULER.sub(" ", _spoken(answer))
    for _ in range(_LAYERS):
        before = text
        text = _unwrapped(text.strip())
        if text == before:
            break
    lines = [_BULLET.sub("", _ID.sub("", line)) for line in text.splitlines()]
    if len(lines) > 1:
        # The numbers of a list are the model's, and may pass for facts.
        lines = [_ITEM.sub("", line) for line in lines]
    return " ".join(" ".join(lines).split())


def _spoken(answer: str) -> str:
    """The answer without the thoughts before it. Where they never end, there is no answer."""
    text = _CHANNEL.sub("\n", answer.rpartition("<|channel|>final<|message|>")[2])
    thinks = _OPEN.match(text.lstrip())
    # In a line that speaks of such tags they are words. They end thoughts where the answer begins
    # with thoughts, or where what follows stands on a line of its own: some servers swallow the tag
    # that opens.
    ends = [
        end
        for end in _CLOSE.finditer(text)
        if thinks or text[end.end() :].lstrip(" \t")[:1] in ("", "\n", "\r")
    ]
    if ends:
        after = text[ends[-1].end() :]
        if after.strip():
            return after
        opened = _OPEN.search(text)
        return text[: opened.start()] if opened else ""
    return "" if thinks else text


def _unwrapped(text: str) -> str:
    """The text without its outermost wrapping."""
    if fence := _FENCE.match(text):
        # What comes after a fence is about the line.
        return text[fence.end() :].partition(fence[1])[0]
    tagged = _TAGGED.fullmatch(text) if text.endswith(">") else None
    if tagged:
        return tagged[2]
    half = _HALF_TAG.sub("", text)
    if half != text:
        return half
    for left, right in _QUOTES:
        inside = text[len(left) : -len(right)]
        # '"yes" and "no"' begins and ends with marks, and they do not belong together.
        if (
            len(text) > len(left) + len(right)
            and text.startswith(left)
            and text.endswith(right)
            and left not in inside
            and right not in inside
        ):
            return inside
    label = _LABEL.match(text)
    return text[label.end() :] if label else text
