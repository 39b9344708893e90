"""What a host writes into, around and in place of what people say: memory blocks, skills, summaries, steers, nudges and fillers.

Pure text in, pure text out; knows the fixed phrases of the hosts and nothing of lists or logs. ``hostlist`` applies it to messages,
``transcript`` compares texts by ``canon``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .records import clean

SUMMARY_HEADS: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
SUMMARY_END: Final = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
MERGED_HEAD: Final = "[PRIOR CONTEXT — for reference only; not a new message]"
MERGED_END: Final = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
RESTATED_HEAD: Final = "[STILL IN PROGRESS — this is the active request, restated after the compaction boundary"
"""A host that compresses puts one summary in place of many messages, alone or glued to a real message. Logged as speech it would
stand beside the very messages it sums up. The restated request is a copy of one that is in the log."""

_STEER_OPEN: Final = "[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered"
_STEER_CLOSE: Final = "[/OUT-OF-BAND USER MESSAGE]"
_STEER_AT_END: Final = re.compile(
    rf"(?:\A|\n\n){re.escape(_STEER_OPEN)}[^\n]*\]\n((?:(?!{re.escape(_STEER_OPEN)}).)*?)\n{re.escape(_STEER_CLOSE)}\s*\Z", re.DOTALL
)

_NUDGES: Final = (
    "[System: Your previous response was truncated",
    "[System: The previous response was cut off",
    "[System: Your previous tool call",
    "[System: Your previous response contained only internal reasoning",
    "[System: Your previous message ended the turn with a fragment",
    "[System: Continue now. Execute the required tool calls",
    "[System: The active model for this chat has changed to ",
    "[Your active task list was preserved across context compression]",
    "[Planning state preserved",
    "[IMPORTANT: MCP servers have been reloaded.",
    "You just executed tool calls but returned an empty response. Please process the tool results above",
    "You've reached the maximum number of tool-calling iterations allowed. Please provide a final response",
    "Your previous turn indicated a tool call but none was included. Do not narrate a plan",
    "Continue from the compressed conversation context above. This marker exists because ",
)
"""Rows in the user's role that the host wrote to its model. Next to a real message they are merged with it, by a blank line."""

_NUDGE: Final = re.compile("|".join(re.escape(nudge) for nudge in _NUDGES))

_FILLERS: Final = (
    "(empty)",
    "[interrupt: no assistant output for this turn]",
    "[response interrupted]",
    "Operation interrupted.",
    "Your request was not processed. Send it again if you still want me to carry it out.",
    "This turn did not complete. Some actions may already have run; verify their effects before resending.",
)
_FILLER_HEADS: Final = (
    "Operation interrupted: ",
    "Operation interrupted during retry (",
    "⚠️ No reply: ",
    "I apologize, but I encountered an error while processing the model response: ",
    "I apologize, but I encountered repeated errors: ",
    "API call failed after ",
    "Invalid API response after ",
)
"""What the host puts in the agent's mouth to close a turn that was interrupted, failed or stayed empty."""

_ERROR: Final = re.compile(r"(?:API error|HTTP|Error code:) \d{3}\b")
RESULT_STUBS: Final = (
    "[Result unavailable — see context summary above]",
    "[Old tool output cleared to save context space]",
)

_REPORTS: Final = (("[ASYNC DELEGATION", "work"), ("[IMPORTANT: Background process ", "echo"))

_BLOCK: Final = r"<\s*memory-context\s*>%s(?:(?!<\s*memory-context).)*?</\s*memory-context\s*>"
_NOTE: Final = r"\s*\[System note:\s*The following is recalled memory context"
_MEMORY_BLOCK: Final = re.compile(
    rf"\A\s*{_BLOCK % ''}\s*|\s*{_BLOCK % _NOTE}|\s*{_BLOCK % ''}\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""The host's block of memory: by its note, or by standing at an end of the text. The same tags inside a text may be the user's own."""
_ANY_BLOCK: Final = re.compile(r"<\s*memory-context\s*>.*?</\s*memory-context\s*>|</?\s*memory-context\s*>", re.IGNORECASE | re.DOTALL)

_SKILL_HEAD: Final = "[IMPORTANT: The user has invoked the "
_SKILL_NAME: Final = re.compile(r'\[IMPORTANT: The user has invoked the "([^"\n]*)"')
_SKILL_TOLD: Final = "The user has provided the following instruction alongside the skill invocation: "
_BUNDLE: Final = " skill bundle,"
_BUNDLE_TOLD: Final = "\nUser instruction: "

_THOUGHTS: Final = re.compile(
    r"\A\s*<(think|thinking|reasoning|REASONING_SCRATCHPAD|thought)\b[^>]*>.*?</\1\s*>\s*", re.IGNORECASE | re.DOTALL
)

_MARK: Final = re.compile(
    r"\[[\w.+/-]+: (?:[\d,]+ bytes, sha256 [0-9a-f]{64}|https?://[^\s\]]+)\]"
    r"|\[(?:screenshot|image|\d+ images?|Attached image — stripped after compression)\]"
)
"""Our marks for pictures and files, and what the hosts write in their place once the bytes are dropped."""

_MASK: Final = re.compile(r"\*\*\*|\.\.\.|…|\[redacted\]", re.IGNORECASE)
_BREAK: Final = re.compile(r"\n[^\S\n]*\n\s*")


class Told(NamedTuple):
    """What is left of a row in the user's role once the host's words are taken off it, and the kind of entry it makes."""

    kind: str
    text: str


def canon(text: str) -> str:
    """The user's text in the form that survives the host: paragraphs with single spaces, parted by one blank line.

    A host strips texts when it reloads them, replaces pictures by placeholders, and joins unanswered messages by a blank line: in
    this form a joined text is the join of its parts.
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


def alike(one: str, other: str) -> bool:
    """Whether two texts may be one text in which a host has masked something in two ways, or in one of them only."""
    return likeness(one, other) > 0


def likeness(one: str, other: str) -> float:
    """How much two texts agree that may be one, masked in two ways: 1 at most, 0 where they cannot be."""
    if one == other:
        return 1.0
    first, second = one.split(), other.split()
    short, long = sorted((len(first), len(second)))
    front = next((at for at in range(short) if first[at] != second[at]), short)
    back = next((at for at in range(short - front) if first[-1 - at] != second[-1 - at]), short - front)
    differing = " ".join((*first[front : len(first) - back], "|", *second[front : len(second) - back]))
    if not has_mask(differing) or (2 * (front + back) < long and long > 2):
        return 0.0
    return (front + back + 1) / (long + 1)


def masked_end(whole: str, end: str) -> str | None:
    """What stands before ``end`` in a joined text, either of which may be masked; None where the text does not end so."""
    before = without_end(whole, end)
    if before is not None or not end:
        return before
    parts, size = whole.split("\n\n"), end.count("\n\n") + 1
    return "\n\n".join(parts[:-size]) if size < len(parts) and alike("\n\n".join(parts[-size:]), end) else None


def has_mask(text: str) -> bool:
    """Whether a host may have hidden a secret in a text."""
    return _MASK.search(text) is not None


def told(text: str) -> Told | None:
    """What the user said, and as what to log it; None where every word is the host's. Blank text that came so stays blank."""
    rest = text
    if "memory-context" in rest:
        rest = _MEMORY_BLOCK.sub("", rest)
    if _NUDGE.search(rest):
        rest = _without_nudges(rest)
    if rest.lstrip().startswith(_SKILL_HEAD):
        rest = _without_skill(rest.lstrip())
    if not rest.strip() and text.strip():
        return None
    return Told(next((kind for head, kind in _REPORTS if rest.startswith(head)), "user"), rest)


def spoken(text: str) -> str:
    """What the agent said: without thoughts at the beginning, empty where the host wrote it."""
    if "<" in text[:64]:
        while thoughts := _THOUGHTS.match(text):
            text = text[thoughts.end() :]
    bare = text.strip()
    return "" if bare in _FILLERS or bare.startswith(_FILLER_HEADS) else text


def is_error(text: str) -> bool:
    """Whether a reply is an error of the model's server that a host passed on as speech."""
    return len(text) < 2_000 and _ERROR.match(text) is not None


def split_summary(text: str, *, flagged: bool = False) -> list[Told] | None:
    """The real messages a host glued to its summary, in their order; None where the text is no summary.

    ``flagged``: the host has marked the message as one, so that it is a summary even in words we do not know. What a summary
    restates after its end mark is left out: it is a copy.
    """
    text = text.lstrip()
    merged = text.startswith(MERGED_HEAD)
    if not merged and not text.startswith(SUMMARY_HEADS) and not flagged:
        return None
    before: list[Told] = []
    if merged:
        inner, _, text = text[len(MERGED_HEAD) :].rpartition(MERGED_END)
        if not inner:
            inner, text = text, ""
        inner = inner.strip()
        if inner:
            before = split_summary(inner) or [Told("before", inner)]
    _, end, after = text.rpartition(SUMMARY_END)
    after = after.strip()
    if end and after and not after.startswith(RESTATED_HEAD):
        before.append(Told("after", after))
    return before


def without_restatement(text: str) -> str | None:
    """The request a host restated in a row of its own after compressing; None where the text is none."""
    if not text.startswith(RESTATED_HEAD):
        return None
    return text.partition("]\n")[2]


def split_steers(text: str) -> tuple[str, list[str]]:
    """A tool's result, and the messages of the user that the host appended to it.

    Only what stands at the very end counts: the same words inside a result are a page or file that speaks of them, not the user.
    """
    steers: list[str] = []
    while _STEER_OPEN in text and (found := _STEER_AT_END.search(text)):
        steers.insert(0, found[1])
        text = text[: found.start()]
    return text, steers


def _without_nudges(text: str) -> str:
    """Take away the paragraphs that are a host's nudge; untouched where there is none."""
    parts = text.split("\n\n")
    kept = [part for part in parts if not part.lstrip().startswith(_NUDGES)]
    return text if len(kept) == len(parts) else "\n\n".join(kept)


def _without_skill(text: str) -> str:
    """What the user typed where the host put a skill's whole text: the instruction, or the command if there was none."""
    if _BUNDLE in text:
        instruction = text.partition(_BUNDLE_TOLD)[2].partition("\n\n[Loaded as part of the ")[0]
    else:
        # The instruction follows the skill, and the skill may quote this very phrase: the last one is the user's.
        instruction = text.rpartition(_SKILL_TOLD)[2].partition("\n\n[Runtime note:")[0] if _SKILL_TOLD in text else ""
    if instruction.strip():
        return instruction.strip()
    name = _SKILL_NAME.match(text)
    return f"/{name[1].lstrip('/')}" if name else ""
