"""The user's words out of what a host put around them: notes, files, quotes, others, skills.

Pure text in, pure text out, after the table in ``host_phrases``. A wrapper is taken off only where
the host puts it, before or after the words, in any order: the same phrases inside a message may be
the user's own. Called by ``host_text``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..base.host_phrases import (
    AUTO_SKILL,
    AUTO_SKILL_REST,
    BACKFILL_END,
    BACKFILL_HEADS,
    BUNDLE,
    BUNDLE_AFTER,
    BUNDLE_TOLD,
    LINES,
    MEDIA,
    NEW_MESSAGE,
    NOTES,
    NUDGES,
    SIGNAL,
    SKILL_AFTER,
    SKILL_BLOCKS,
    SKILL_FOOT,
    SKILL_HEAD,
    SKILL_TOLD,
    THREAD,
    TOLD,
    UNVERIFIED,
    Phrase,
    words_of,
)

_QUOTE_MAX: Final = 300
"""Characters of a quoted message: it only tells which one is answered."""

_NUDGES: Final = words_of(*NUDGES)
_SIGNAL: Final = re.compile(SIGNAL.words + SIGNAL.end)


def _heads(*phrases: Phrase) -> list[tuple[Phrase, re.Pattern[str]]]:
    pattern = re.compile
    return [(one, pattern(re.escape(one.words) + one.end, re.DOTALL)) for one in phrases]


_HEADS: Final = _heads(*NOTES, *TOLD, *MEDIA)
_HEAD_WORDS: Final = words_of(*NOTES, *TOLD, *MEDIA)
_LINES: Final = words_of(*LINES)
_LINE_WORDS: Final = "|".join(re.escape(words) for words in _LINES)
_HOST_LINE: Final = re.compile(rf"\n*^(?:{_LINE_WORDS})[^\n]*\]$", re.MULTILINE)
_SENDER: Final = r"\[(?P<author>[^\[\]\n]{2,80}?)(?: \| Slack user <@[^>\s]+>)?\] "
"""What a gateway writes before each message where several people share a session."""
_SENT: Final = re.compile(_SENDER)
_AUTO_SKILL: Final = re.compile(
    rf"{re.escape(AUTO_SKILL.words)}[^\"\n]*{re.escape(AUTO_SKILL_REST.words)}"
)
_SENT_WRAPPED: Final = re.compile(rf"{_SENDER}(?={re.escape(THREAD.words)}|{_AUTO_SKILL.pattern})")
_BACKFILL: Final = words_of(*BACKFILL_HEADS)
_TAGS: Final = rf"(?:{re.escape(UNVERIFIED.words)}|\[thread parent\] )*"
_WHO: Final = r"(?!thread parent\]|unverified\])(?P<who>[^\[\]\n]+?)(?: \[bot\])?"
_NAMED: Final = re.compile(rf"{_TAGS}\[{_WHO}\] (?P<words>.*)")
_PLAIN: Final = re.compile(rf"{_TAGS}(?P<who>[^\[\]:\n]{{1,80}}): (?P<words>.*)")
_AGENT: Final = "[assistant] "
"""The agent's own earlier replies in a thread: the log has them."""

_SKILL_NAME: Final = re.compile(rf'{re.escape(SKILL_HEAD.words)}"([^"\n]*)"')
_SKILL_BLOCK: Final = re.compile(
    r"\n+(?:" + "|".join(re.escape(one.words) + one.end for one in SKILL_BLOCKS) + ")", re.DOTALL
)
_JOINT: Final = re.compile(
    r"\n\n(?="
    + "|".join(
        [*(re.escape(w) for w in (*_HEAD_WORDS, *_BACKFILL, SKILL_HEAD.words)), _AUTO_SKILL.pattern]
    )
    + ")"
)


class Other(NamedTuple):
    """Words that came with a message and are not its author's; without a name, the host's own."""

    author: str
    text: str


class Words(NamedTuple):
    """A message without its wrappers. ``others``: what was said around it, in order."""

    text: str
    author: str = ""
    others: tuple[Other, ...] = ()


def without_nudges(text: str) -> str:
    """Take away the paragraphs that are a host's; untouched where there is none."""
    if not any(words in text for words in (*_NUDGES, SIGNAL.words)):
        return text
    parts = text.split("\n\n")
    kept: list[str] = []
    at = 0
    while at < len(parts):
        end = _end_of_nudge(parts, at) if parts[at].lstrip().startswith(_NUDGES) else at
        end = at + 1 if _SIGNAL.fullmatch(parts[at].strip()) else end
        if end == at:
            kept.append(parts[at])
        at = max(end, at + 1)
    return text if len(kept) == len(parts) else "\n\n".join(kept)


def _end_of_nudge(parts: list[str], at: int) -> int:
    """Where the text goes on: a bracket its paragraph leaves open is closed later, or is none."""
    if not parts[at].lstrip().startswith("[") or "]" in parts[at]:
        return at + 1
    return next(
        (end + 1 for end in range(at + 1, len(parts)) if parts[end].rstrip().endswith("]")), at
    )


def unwrapped(text: str) -> Words:
    """What the user typed or sent."""
    marks: list[str] = []
    others: list[Other] = []
    author = ""
    while (found := _head(text) or _backfill(text) or _sender(text)) is not None:
        text, more, mark, name = found
        others += more
        author = name or author
        marks += [mark] if mark else []
    if _AUTO_SKILL.match(text):
        text = _after_auto_skill(text)
    if text.lstrip().startswith(SKILL_HEAD.words):
        text = _without_skill(text.lstrip())
    elif joint := _JOINT.search(text):
        # A host without ids joins an unanswered message with the next one, wrapper and all.
        after = unwrapped(text[joint.end() :])
        text = f"{text[: joint.start()]}\n\n{after.text}".rstrip()
        author, others = after.author or author, [*others, *after.others]
    if any(words in text for words in _LINES) and _HOST_LINE.search(text):
        text = _HOST_LINE.sub("", text).lstrip("\n")
    return Words(
        "\n".join([*marks, text] if text.strip() or not marks else marks), author, tuple(others)
    )


_Found = tuple[str, list[Other], str, str]
"""What is left of a text; what others said; what stands for a thing that was sent; who sent it."""


def _head(text: str) -> _Found | None:
    """A note at the beginning."""
    if not text.startswith(_HEAD_WORDS):
        return None
    for phrase, pattern in _HEADS:
        if found := pattern.match(text):
            put = phrase.put.format(
                **{key: _short(value) for key, value in found.groupdict().items()}
            )
            told, sender = phrase in TOLD, found.groupdict().get("author") or ""
            return (
                text[found.end() :],
                [Other("", put)] if told else [],
                "" if told else put,
                sender,
            )
    return None


def _short(value: str | None) -> str:
    value = " ".join((value or "").split())
    return value if len(value) <= _QUOTE_MAX else value[:_QUOTE_MAX].rstrip() + "…"


def _sender(text: str) -> _Found | None:
    """The sender's name before what only a gateway writes: of other names none is sure."""
    found = _SENT_WRAPPED.match(text)
    return (text[found.end() :], [], "", found["author"]) if found else None


def _backfill(text: str) -> _Found | None:
    """The others' words before a message that was sent in a channel.

    Of several marks of a new message the last is the host's: whoever wrote one into the channel
    must not speak for the sender.
    """
    known = text.startswith(_BACKFILL)
    if not known and not _NAMED.match(text):
        return None
    before, mark, rest = text.rpartition(f"\n\n{NEW_MESSAGE.words}\n")
    if not mark and text.startswith(THREAD.words):
        before, mark, rest = text.rpartition(BACKFILL_END.words)
        rest = rest.lstrip("\n")
    if not mark:
        return None
    sent = _SENT.match(rest)
    return rest[sent.end() if sent else 0 :], _speakers(before), "", sent["author"] if sent else ""


def _speakers(block: str) -> list[Other]:
    """Who said what in a channel; a line without a name goes on with the one before."""
    said: list[Other] = []
    form: re.Pattern[str] | None = None
    skip = False
    for line in block.split("\n"):
        if line.startswith((*_BACKFILL, BACKFILL_END.words)):
            form, skip = None, False
            continue
        if line.startswith(_AGENT):
            skip = True
            continue
        form = form or (_NAMED if _NAMED.match(line) else _PLAIN)
        if found := form.match(line):
            said.append(Other(found["who"], found["words"]))
            skip = False
        elif said and not skip:
            said[-1] = Other(said[-1].author, f"{said[-1].text}\n{line}")
        elif line.strip() and not skip:
            said.append(Other("", line))
    return [Other(one.author, one.text.strip()) for one in said if one.text.strip()]


def _after_auto_skill(text: str) -> str:
    """What follows the texts of skills that the channel brings: none of them has a mark for it.

    The last sentence about a skill's directory ends the last one, as the host itself reads it;
    where a skill has none, its text cannot be told from the user's but for the last paragraph.
    """
    _, foot, rest = text.rpartition(SKILL_FOOT.words)
    if not foot:
        return text.rpartition("\n\n")[2]
    while found := _SKILL_BLOCK.match(rest):
        rest = rest[found.end() :]
    rest = rest.removeprefix("\n\n")
    return _after_auto_skill(rest) if _AUTO_SKILL.match(rest) else rest


def _without_skill(text: str) -> str:
    """What the user typed where the host put a whole skill: the instruction, or the command."""
    if BUNDLE.words in text:
        told = text.partition(BUNDLE_TOLD.words)[2].partition(BUNDLE_AFTER.words)[0]
    elif SKILL_TOLD.words in text:
        # It follows the skill, which may quote this very phrase: the last is the user's.
        told = text.rpartition(SKILL_TOLD.words)[2].partition(SKILL_AFTER.words)[0]
    else:
        told = ""
    if told.strip():
        return told.strip()
    name = _SKILL_NAME.match(text)
    return f"/{name[1].lstrip('/')}" if name else ""
