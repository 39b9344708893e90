"""What a line must be before it is kept in place of its text for ever.

A line, about that text, with nothing invented in it.

Judges only what can be told by looking; whether it sums up well nobody can tell. Where the same
words stand in the text itself they are never held against the line: a message may well say "I'm
sorry". Pure. Called by ``summarizer.py``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from ..base.record import KINDS
from ..base.terms import asked, terms
from .facts import Known, unknown
from .prompts import SYSTEM, request

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_OVER: Final = 2
"""Times the limit that a line may be long at most.

The limit is a target, and the view weighs real sizes.
"""

_LEAST_BYTES: Final = 24
_LEAST_SHARE: Final = 32
"""A line below one byte in so many of its text says too little, up to ``_LEAST_BYTES``.

Eight signs of Chinese, four words of English. Ordered to "output only BANANA", a model does.
"""
_JUDGED_WORDS: Final = 8
"""A line of fewer content words is too short to tell from its words whether it is about its text.
"""
_LEAST_SHARED: Final = 16
"""One in so many content words of a line stands in its text, or the line is about something else.
"""
_ECHO_SHARE: Final = 0.8
"""A line that has this share of its text, in the same order, is the text and no summary of it."""
_SCRIPT_CHARS: Final = 400
"""Characters by which the script of a text is told."""


class Fault(NamedTuple):
    """Why a line is refused: a key of ``prompts.AGAIN`` and what is to be named.

    ``usable``: better than no line at all.
    """

    why: str
    detail: str = ""
    usable: bool = False


class SourceText:
    """What a line is measured against.

    Its text as it was sent and as it is in the log, and the context it was shown with.

    ``kind`` is that of a message, empty for two lines. ``limit``: bytes.
    """

    def __init__(
        self, kind: str, sent: tuple[str, ...], raw: tuple[str, ...], context: str, limit: int
    ) -> None:
        self.kind, self.limit = kind, limit
        self.text = "\n".join(sent)
        self._shown = (*sent, *raw, context, kind)

    @cached_property
    def known(self) -> Known:
        """Where facts are looked up.

        As sent and as logged: masking and tidying may change what stands beside a secret.
        """
        return Known(self._shown)

    @cached_property
    def size(self) -> int:
        """Bytes of the text as it was sent."""
        return len(self.text.encode())

    @cached_property
    def kinds(self) -> set[str]:
        """Kinds that an item of the line may have."""
        return {kind for kind in KINDS if f"{kind}:" in self.text} | {self.kind}

    @cached_property
    def terms(self) -> set[str]:
        """The words of the text.

        Not those of the context: a line that is made of the context alone repeats what was said
        before and drops the text.
        """
        return terms(self.text)

    @cached_property
    def smooth(self) -> str:
        """The text for phrases to be looked up in."""
        return _smooth(self.text)


def tagged(line: str, kind: str) -> str:
    """The line of a message with its kind in front.

    One that claims another kind is left as it is, to be refused.
    """
    opened = re.match(rf"(?:{re.escape(kind)}|({'|'.join(KINDS)}))\s?[:：]\s*", line, re.IGNORECASE)
    if opened is None:
        return f"{kind}: {line}" if line else ""
    return line if opened[1] else f"{kind}: {line[opened.end() :]}" if line[opened.end() :] else ""


def fault(line: str, ground: SourceText) -> Fault | None:
    """The first thing that is wrong with a line, or None."""
    return next((found for check in _CHECKS if (found := check(line, ground))), None)


# ---- size, kinds, facts


def _empty(line: str, ground: SourceText) -> Fault | None:
    return None if any(map(str.isalnum, _body(line, ground))) else Fault("empty")


def _far_too_long(line: str, ground: SourceText) -> Fault | None:
    return Fault("long") if len(line.encode()) > MOST_OVER * ground.limit else None


def _too_long(line: str, ground: SourceText) -> Fault | None:
    return Fault("long", usable=True) if len(line.encode()) > ground.limit else None


_TAG: Final = re.compile(rf"(?:^|(?<=[.;!?…] ))({'|'.join(KINDS)}): ")
"""A tag where it opens an item: at the start, and after a sentence.

Elsewhere it is a word: "the best tool: a hammer".
"""


def _wrong_kind(line: str, ground: SourceText) -> Fault | None:
    others = sorted(set(_TAG.findall(line)) - ground.kinds)
    return Fault("kind", ", ".join(others)) if others else None


def _invented(line: str, ground: SourceText) -> Fault | None:
    invented = unknown(line, ground.known)
    return Fault("unknown", ", ".join(invented)) if invented else None


def _body(line: str, ground: SourceText) -> str:
    return line.removeprefix(f"{ground.kind}: ") if ground.kind else line


def _smooth(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


# ---- other things than a line


def _is_echo(line: str, ground: SourceText) -> bool:
    """Whether it is the text itself, or has the whole of it inside.

    What fits the limit has lost nothing, and may.
    """
    if len(line.encode()) <= ground.limit or len(line) < _ECHO_SHARE * len(ground.text):
        return False
    here, there = (
        "".join(filter(str.isalnum, text)).casefold() for text in (_body(line, ground), ground.text)
    )
    return bool(there) and (
        there in here or (here in there and len(here) >= _ECHO_SHARE * len(there))
    )


_PROMPT_WORDS: Final = 8
"""So many words in a row of what a model was told are not in a line by chance.

Small models repeat parts of sentences.
"""


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", _smooth(text))
    return {tuple(words[at : at + _PROMPT_WORDS]) for at in range(len(words) - _PROMPT_WORDS + 1)}


_PROMPTS: Final = frozenset(
    _runs(SYSTEM) | _runs(request("", "user", ("",), 0)) | _runs(request("", "", ("", ""), 0))
)


def _is_prompt(line: str, ground: SourceText) -> bool:
    told = _runs(line) & _PROMPTS
    return bool(told) and not told <= _runs(ground.text)


_OPENING: Final = re.compile(
    r"(?:i'?m |i am )?(?:very |so |really |terribly )?sorry, (?:but )?i\b|as an ai\b"
    r"|(?:unfortunately,? )?i(?: can(?:'|no)t| can not|'?m unable to| am unable to|'?m not "
    r"able to| am not able to| won't)"
    r" (?:help|assist|fulfil|comply|provide|summar|answer|do "
    r"(?:that|this)|continue|process|access|see)"
    r"|(?:sure|certainly|absolutely|of course)(?:[,.!]| thing\b)|great question|thank(?:s| "
    r"you) for\b"
    r"|i(?:'d| would) be (?:happy|glad) to|i(?:'ll| will) (?:be happy to|help you)|please "
    r"(?:provide|share|paste|give me)"
    r"|it (?:looks|seems) like you|could you (?:please )?(?:provide|share|clarify)"
    r"|(?:there is|i (?:don't|do not) see) (?:no|any) (?:text|message)|no "
    r"(?:text|message|content) (?:was|is|to)\b|(?:hello|hi)(?: there)?!"
    r"|(?:es )?tut mir leid|ich kann (?:dir|ihnen|das|dabei)|gerne!|lo siento|je suis "
    r"désolée?|désolée?,|desculpe|sinto muito|mi dispiace"
    r"|извините|к сожалению, я|конечно[!,]|(?:很|非常)?抱歉|对不起|對不起|申し訳|すみません|죄송",
    re.IGNORECASE,
)
"""How models refuse, ask for more, or begin to reply."""
_CLOSING: Final = re.compile(
    r"let me know (?:if|how|what|when|whether)|(?:would|do) you (?:like|want) me to|feel "
    r"free to|hope (?:this|that) helps"
    r"|how (?:can|may) i (?:help|assist)|is there anything else|i'?m here to "
    r"help|lass(?:en)? (?:mich|sie mich|es mich) wissen"
    r"|n'hésite[sz]? pas à|不要犹豫|请告诉我|お知らせください",
    re.IGNORECASE,
)
"""How they end a reply.

In what an agent said, such phrases may come from the text in other words.
"""


def _is_answer(line: str, ground: SourceText) -> bool:
    body = _smooth(_body(line, ground))
    opening = _OPENING.match(body)
    if opening and opening[0] not in ground.smooth:
        return True
    closing = None if "talk" in ground.kinds else _CLOSING.search(body)
    return closing is not None and closing[0] not in ground.smooth


# ---- lines that say nothing of their text


def _is_poor(line: str, ground: SourceText) -> bool:
    return len(_body(line, ground).encode()) < min(_LEAST_BYTES, ground.size // _LEAST_SHARE)


def _is_off_topic(line: str, ground: SourceText) -> bool:
    """Whether it has next to no word in common with its text.

    A line in another language passes if a name or a number agrees, and always if its script is
    another: then no word can agree, and to refuse would cost every line of a model that sums up
    Chinese in English.
    """
    body = _body(line, ground)
    words = asked(body)
    shared = words.keys() & ground.terms
    if len(words) < _JUDGED_WORDS or len(shared) * _LEAST_SHARED >= len(words):
        return False
    return not shared & terms(" ".join(_NAME.findall(body))) and _script(body) == _script(
        ground.text
    )


_NAME: Final = re.compile(r"\w*\d\w*|(?<=[^\W_] )[^\W\d_a-z]\w+")
"""Words with a digit, and words with a capital that do not open a sentence."""


def _script(text: str) -> str:
    """The script most letters are of: ``LATIN``, ``CYRILLIC``, ``CJK``."""
    names = Counter(
        unicodedata.name(sign, "").partition(" ")[0]
        for sign in text[:_SCRIPT_CHARS]
        if sign.isalpha()
    )
    return names.most_common(1)[0][0] if names else ""


def _refused(
    why: str, is_so: Callable[[str, SourceText], bool]
) -> Callable[[str, SourceText], Fault | None]:
    return lambda line, ground: Fault(why) if is_so(line, ground) else None


_CHECKS: Final[tuple[Callable[[str, SourceText], Fault | None], ...]] = (
    _empty,
    _refused("echo", _is_echo),
    _refused("prompt", _is_prompt),
    _far_too_long,
    _refused("answer", _is_answer),
    _wrong_kind,
    _refused("poor", _is_poor),
    _refused("foreign", _is_off_topic),
    _invented,
    _too_long,
)
"""In the order in which they are told: an echo hears that it is one, and not that it is too long.

What is far too long is searched for nothing: it may be 50 KB.
"""
