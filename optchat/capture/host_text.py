"""What a host writes into, around and in place of what people say.

Memory blocks, skills, summaries, steers, nudges and fillers.

Pure text in, pure text out; knows the fixed phrases of the hosts and nothing of lists or logs.
``host_messages`` applies it to messages, ``reconcile`` compares texts by ``canon``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..base.canon import has_mask, without_end
from ..base.host_phrases import (
    DELIVERED,
    FILLER_HEADS,
    FILLERS,
    MEMORY_NOTE,
    MERGED_END,
    MERGED_HEAD,
    NOTIFICATION_END,
    OUTPUTS,
    OUTPUTS_TOGETHER,
    POSTED,
    REPORTS,
    REPORTS_TOGETHER,
    RESTATED_HEAD,
    ROWS,
    STEER_CLOSE,
    STEER_OPEN,
    SUMMARY_END,
    SUMMARY_HEADS,
    WATCHES,
    Phrase,
    words_of,
)
from .wrappers import Other, unwrapped, without_nudges


def _one_of(*phrases: Phrase, together: Phrase | None = None) -> re.Pattern[str]:
    heads = [re.escape(words) for words in words_of(*phrases)]
    return re.compile(
        "|".join([*heads, *([rf"\[IMPORTANT: \d+{re.escape(together.words)}"] if together else [])])
    )


_SUMMARY_HEADS: Final = words_of(*SUMMARY_HEADS)
_STEER_OPEN: Final = re.escape(STEER_OPEN.words)
_STEER_AT_END: Final = re.compile(
    rf"(?:\A|\n\n){_STEER_OPEN}[^\n]*\]\n((?:(?!{_STEER_OPEN}).)*?)\n"
    rf"{re.escape(STEER_CLOSE.words)}\s*\Z",
    re.DOTALL,
)
_STEER_AT_START: Final = re.compile(
    rf"{_STEER_OPEN}[^\n]*\]\n((?:(?!{_STEER_OPEN}).)*?)\n{re.escape(STEER_CLOSE.words)}\n\n",
    re.DOTALL,
)
_FILLERS: Final = words_of(*FILLERS)
_FILLER_HEADS: Final = words_of(*FILLER_HEADS)
_ERROR: Final = re.compile(r"(?:API error|HTTP|Error code:) \d{3}\b")

_ROWS: Final = words_of(*ROWS)
_KINDS: Final = (
    ("work", _one_of(*REPORTS, together=REPORTS_TOGETHER)),
    ("echo", _one_of(*OUTPUTS, together=OUTPUTS_TOGETHER)),
    (
        "echo",
        re.compile(r"\[IMPORTANT: (?:" + "|".join(re.escape(w) for w in words_of(*WATCHES)) + ")"),
    ),
    ("talk", re.compile("(?:" + "|".join(map(re.escape, words_of(*POSTED))) + r")[^\]\n]*\]\n")),
)
"""What a row in the user's role is instead.

A report, the output of a process, what the agent posted.
"""
_JOINED_ROW: Final = re.compile(r"\n\n(?=(?:" + "|".join(map(re.escape, _ROWS)) + r")[^\n]*\])")
_DELIVERED: Final = re.compile(re.escape(DELIVERED.words) + DELIVERED.end)
_NOTIFICATION_END: Final = re.compile(rf"\n\n{re.escape(NOTIFICATION_END.words)}[^\n]*\]")

_BLOCK: Final = r"<\s*memory-context\s*>%s(?:(?!<\s*memory-context).)*?</\s*memory-context\s*>"
_NOTE: Final = r"\s*" + re.escape(MEMORY_NOTE.words).replace(r"\ ", r"\s*")
_MEMORY_BLOCK: Final = re.compile(
    rf"\A\s*{_BLOCK % ''}\s*|\s*{_BLOCK % _NOTE}|\s*{_BLOCK % ''}\s*\Z", re.IGNORECASE | re.DOTALL
)
"""The host's block of memory: by its note, or by standing at an end of the text.

The same tags inside a text may be the user's own.
"""

_THOUGHTS: Final = re.compile(
    r"\A\s*<(think|thinking|reasoning|REASONING_SCRATCHPAD|thought)\b[^>]*>.*?</\1\s*>\s*",
    re.IGNORECASE | re.DOTALL,
)


class Told(NamedTuple):
    """What is left of a row in the user's role once the host's words are taken off it, and the kind
    of entry it makes.
    """

    kind: str
    text: str
    author: str = ""
    others: tuple[Other, ...] = ()


def alike(one: str, other: str) -> bool:
    """Whether two texts may be one text in which a host has masked something in two ways, or in one
    of them only.
    """
    return likeness(one, other) > 0


def likeness(one: str, other: str) -> float:
    """How much two texts agree that may be one, masked in two ways.

    1 at most, 0 where they cannot be.
    """
    if one == other:
        return 1.0
    first, second = one.split(), other.split()
    short, long = sorted((len(first), len(second)))
    front = next((at for at in range(short) if first[at] != second[at]), short)
    back = next(
        (at for at in range(short - front) if first[-1 - at] != second[-1 - at]), short - front
    )
    differing = " ".join(
        (*first[front : len(first) - back], "|", *second[front : len(second) - back])
    )
    if not has_mask(differing) or (2 * (front + back) < long and long > 2):
        return 0.0
    return (front + back + 1) / (long + 1)


def masked_end(whole: str, end: str) -> str | None:
    """What stands before ``end`` in a joined text, either of which may be masked.

    None where the text does not end so.
    """
    before = without_end(whole, end)
    if before is not None or not end:
        return before
    parts, size = whole.split("\n\n"), end.count("\n\n") + 1
    return (
        "\n\n".join(parts[:-size])
        if size < len(parts) and alike("\n\n".join(parts[-size:]), end)
        else None
    )


def user_text(text: str) -> Told | None:
    """What the user said, and as what to log it; None where every word is the host's.

    Blank text that came so stays blank.
    """
    rest = text
    if "memory-context" in rest:
        rest = _MEMORY_BLOCK.sub("", rest)
    if rest.lstrip().startswith(_ROWS) and "]" in rest:
        return None
    if joint := _JOINED_ROW.search(rest):
        # A host joins an unanswered message with the row of its own that follows.
        rest = rest[: joint.start()]
    if NOTIFICATION_END.words in rest and (found := _NOTIFICATION_END.search(rest)):
        body, rest = rest[: found.start()], rest[found.end() :].lstrip("\n")
        if not rest:
            kind = _kind_of(body)
            return Told(kind, body) if kind != "user" else None
    words = unwrapped(
        without_nudges(
            _DELIVERED.sub("", rest, count=1) if rest.startswith(DELIVERED.words) else rest
        )
    )
    if not words.text.strip() and not words.others and text.strip():
        return None
    kind = _kind_of(words.text)
    return Told(
        kind,
        words.text.partition("\n")[2] if kind == "talk" else words.text,
        words.author,
        words.others,
    )


def _kind_of(text: str) -> str:
    """The kind of entry a row in the user's role makes."""
    if not text.startswith("["):
        return "user"
    return next((kind for kind, heads in _KINDS if heads.match(text)), "user")


def assistant_text(text: str) -> str:
    """What the agent said: without thoughts at the beginning, empty where the host wrote it."""
    if "<" in text[:64]:
        while thoughts := _THOUGHTS.match(text):
            text = text[thoughts.end() :]
    bare = text.strip()
    if bare in _FILLERS or bare.startswith(_FILLER_HEADS):
        return ""
    # Reloaded, a filler stands as the last line of the reply before it.
    while (last := bare.rpartition("\n"))[0] and last[2].strip() in _FILLERS:
        text = bare = last[0].rstrip()
    return "" if bare in _FILLERS else text


def is_error(text: str) -> bool:
    """Whether a reply is an error of the model's server that a host passed on as speech."""
    return len(text) < 2_000 and _ERROR.match(text) is not None


def split_summary(text: str, *, flagged: bool = False, reply: bool = False) -> list[Told] | None:
    """The real messages a host glued to its summary, in their order.

    None where the text is no summary.

    ``flagged``: the host has marked the message as one, so that it is a summary even in words we do
    not know. What a summary restates after its end mark is left out: it is a copy. ``reply``: it is
    the agent's.
    """
    text = text.lstrip()
    merged = text.startswith(MERGED_HEAD.words)
    before: list[Told] = []
    if not merged and not text.startswith(_SUMMARY_HEADS) and not flagged:
        # Host B joins a reply and the summary after it when it reloads them, with nothing to mark
        # it.
        said, head, rest = text.partition("\n" + _SUMMARY_HEADS[0])
        if not reply or not head or SUMMARY_END.words not in rest:
            return None
        before, text = [Told("before", said)], head + rest
    if merged:
        inner, _, text = text[len(MERGED_HEAD.words) :].rpartition(MERGED_END.words)
        if not inner:
            inner, text = text, ""
        inner = inner.strip()
        if inner:
            before = split_summary(inner) or [Told("before", inner)]
    _, end, after = text.rpartition(SUMMARY_END.words)
    after = after.strip()
    if end and after and not after.startswith(RESTATED_HEAD.words):
        before.append(Told("after", after))
    return before


def without_restatement(text: str) -> str | None:
    """The request a host restated in a row of its own after compressing.

    None where the text is none.
    """
    if not text.startswith(RESTATED_HEAD.words):
        return None
    return text.partition("]\n")[2]


def leading_steers(text: str) -> tuple[str, list[str]]:
    """A row without the messages into a turn that a host has joined before it, and these."""
    steers: list[str] = []
    while text.startswith(STEER_OPEN.words) and (found := _STEER_AT_START.match(text)):
        steers.append(found[1])
        text = text[found.end() :]
    return text, steers


def split_steers(text: str) -> tuple[str, list[str]]:
    """A tool's result, and the messages of the user that the host appended to it.

    Only what stands at the very end counts: the same words inside a result are a page or file that
    speaks of them, not the user.
    """
    steers: list[str] = []
    while STEER_OPEN.words in text and (found := _STEER_AT_END.search(text)):
        steers.insert(0, found[1])
        text = text[: found.start()]
    return text, steers
