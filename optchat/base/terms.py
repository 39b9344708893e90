"""What a text can be found by: its words as terms, and the terms a question asks for. Pure.

A term is a folded word or stem; of a path, an identifier, an address or a number it is the whole
and each part. Scripts without spaces between words are cut into overlapping pairs of signs, so that
any run of two or more is found. Called by ``log/fulltext.py`` for what is logged and by
``recall/`` for what is asked: both sides must cut alike.
"""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .dates import day_terms, named_terms
from .stem import stem

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

TEXT_CHARS: Final = 1 << 20
"""Of a longer message (a dump of megabytes) the head and the tail can be found, this many
characters in all.
"""

ASKED_CHARS: Final = 8_000
"""Of a longer query (a pasted log) the head and the tail are asked for.

The question stands before or after what is pasted.
"""

ASKED_TERMS: Final = 64

_PART_CHARS: Final = 48
_WHOLE_CHARS: Final = 96
"""Longer words are no words: data in base64, minified code.

What is found of them is their beginning.
"""

_PAIRED: Final = (
    "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003134f"
)
"""Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean.

Written without spaces, or with endings glued on.
"""

_SIGN: Final = (
    r"[\w\u0900-\u0963\u0966-\u0dff\u0e00-\u0e4e\u0e80-\u0ece"
    r"\u1000-\u109f\u1780-\u17d3\u064b-\u065f]"
)
"""A sign of a word.

Python takes the vowel signs of Indian and related scripts, and those of Arabic, for none.
"""

_JOINT: Final = r"(?:[-.'’@]|[/\\:]{1,3})"
_RUN: Final = re.compile(rf"{_SIGN}+(?:{_JOINT}{_SIGN}+)*")
_ASCII_RUN: Final = re.compile(rf"\w+(?:{_JOINT}\w+)*", re.ASCII)
"""The same for plain ASCII, in a third of the time."""
_STEPS: Final = re.compile(r"[/\\:@]+|(?<=\d)T(?=\d)")
_PARTS: Final = re.compile(r"[-.'’_]+")
_PAIRED_RUN: Final = re.compile(f"[{_PAIRED}]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ACCENTS: Final = re.compile("[\u0300-\u036f\u00ad\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""With them go what is not seen and would cut a word in two.

Soft hyphens, and the marks that choose a variant of a sign.
"""
_LETTERS: Final = re.compile("([\u3131-\u318e]+)")
"""Korean letters written by themselves, as in ㅋㅠㅠ.

Normalizing would make one sign of a consonant and the vowel after it.
"""
_ESCAPE: Final = re.compile(r"\\[nrt]")
_APOSTROPHE: Final = re.compile("['’]")
_CLIPPED: Final = frozenset(("s", "t", "d", "m", "ll", "re", "ve"))

_FUNCTION: Final = """
a about above after again against all also am an and any are as at be because been before being
below between both but by can could
did do does doing done down during each else ever few for from further had has have having he her
here hers herself him himself his
how i if in into is it its itself just let like may me might mine more most much must my myself no
nor not now of off on once one
only or other ought our ours ourselves out over own please shall she should so some such than that
the their theirs them themselves
then there these they this those through to too under until up us very was we were what when where
which while who whom whose why
will with would yes yet you your yours yourself yourselves
"""
_FUNCTION_WORDS: Final = frozenset(_FUNCTION.split())
"""English words that say how a sentence is built and not what it is about.

Nothing is found by them.
"""


_NAMES_TOO: Final = frozenset(("May", "Will"))


def terms(text: str, date: str = "") -> set[str]:
    """The terms a message is found by, each once. ``date``: when it was written, ISO 8601."""
    return set(day_terms(date)).union(*map(_terms_of, set(_runs(text))))


def counted(text: str, wanted: Container[str], date: str = "") -> dict[str, int]:
    """How often each of the wanted terms stands in a message."""
    found = {term: 1 for term in day_terms(date) if term in wanted}
    for run in _runs(text):
        for term in _terms_of(run):
            if term in wanted:
                found[term] = found.get(term, 0) + 1
    return found


def asked(query: str, *, functions: bool = False) -> dict[str, float]:
    """The terms of a query and what each weighs, in the order of the query.

    Empty where it asks for nothing.

    Function words are left out, unless ``functions`` asks for them. The parts of a whole weigh
    half, and so do pairs that share their signs with other pairs: else a single word would count as
    several that agree.
    """
    if len(query) > ASKED_CHARS:
        query = f"{query[: ASKED_CHARS // 2]} {query[-ASKED_CHARS // 2 :]}"
    every = dict.fromkeys(named_terms(query), 1.0)
    function: set[str] = set()
    for run in _runs(query):
        if not functions and run.lower() in _FUNCTION_WORDS and run not in _NAMES_TOO:
            function.add(_weighed(run)[0][0])
        for term, weight in _weighed(run):
            every[term] = max(every.get(term, 0.0), weight)
    found = {term: weight for term, weight in every.items() if term not in function}
    if len(found) > ASKED_TERMS:
        both_ends = [*found][: ASKED_TERMS // 2] + [*found][-ASKED_TERMS // 2 :]
        found = {term: found[term] for term in both_ends}
    return found


def rarity(count: int, total: int) -> float:
    """What a term tells that stands in ``count`` of ``total`` messages.

    About the logarithm of total / count, as in BM25.
    """
    return math.log(1 + (max(0, total - count) + 0.5) / (count + 0.5))


def folded(text: str) -> str:
    """The text without the differences nobody means when searching: accents, widths, ligatures.

    Case is kept for now.
    """
    if text.isascii():
        return text
    return "".join(
        piece if at % 2 else _normal(piece) for at, piece in enumerate(_LETTERS.split(text))
    )


# -- inside


def _normal(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", plain)))


def _runs(text: str) -> list[str]:
    if len(text) > TEXT_CHARS:
        text = f"{text[: TEXT_CHARS // 2]} {text[-TEXT_CHARS // 2 :]}"
    if "\\" in text:
        # A line break inside JSON would else be the first letter of the next word.
        text = _ESCAPE.sub(" ", text)
    return _ASCII_RUN.findall(text) if text.isascii() else _RUN.findall(folded(text))


@lru_cache(maxsize=1 << 15)
def _terms_of(run: str) -> tuple[str, ...]:
    """The terms of one run of signs, the whole first.

    Kept for the last 32,768: what is said says most of it again.
    """
    if _is_plain(run):
        return (stem(run.lower()),)
    return tuple(dict.fromkeys(term for term, _ in _weighed(run)))


def _weighed(run: str) -> list[tuple[str, float]]:
    """The terms of one run, each with what it counts for in a query."""
    if _is_plain(run):
        return [(stem(run.lower()), 1.0)]
    steps = [step for step in _STEPS.split(run) if step]
    parts = [found for step in steps for found in _of_step(step)]
    if len(steps) > 1 and len(run) <= _WHOLE_CHARS and not _APOSTROPHE.search(run):
        return [
            (run.replace("\\", "/").casefold(), 1.0),
            *((term, weight / 2) for term, weight in parts),
        ]
    return parts


def _is_plain(run: str) -> bool:
    return (
        run.isascii()
        and run.isalpha()
        and (run.islower() or run[1:].islower())
        and len(run) <= _PART_CHARS
    )


def _of_step(step: str) -> Iterator[tuple[str, float]]:
    """An identifier, a file name, a number with points: itself, then its parts."""
    parts = [part for part in _PARTS.split(step) if part]
    share = 1.0
    if _APOSTROPHE.search(step):
        parts = [part for part in parts if part.casefold() not in _CLIPPED] or parts
    elif len(parts) > 1 and len(step) <= _WHOLE_CHARS:
        yield step.casefold(), 1.0
        share = 0.5
    for part in parts:
        for term, weight in _of_part(part):
            yield term, weight * share


def _of_part(part: str) -> Iterator[tuple[str, float]]:
    at = 0
    if not part.isascii():
        for run in _PAIRED_RUN.finditer(part):
            yield from _of_word(part[at : run.start()])
            yield from _pairs(run[0])
            at = run.end()
    yield from _of_word(part[at:])


def _of_word(word: str) -> Iterator[tuple[str, float]]:
    if not word:
        return
    yield _plain_term(word), 1.0
    if word.isdecimal() and word[0] == "0" and word.strip("0"):
        yield word.lstrip("0")[:_PART_CHARS], 0.5
    humps = _HUMP.split(word) if len(word) <= _PART_CHARS else ()
    if len(humps) > 1:
        for hump in humps:
            yield _plain_term(hump), 0.5


def _plain_term(word: str) -> str:
    low = word[:_PART_CHARS].casefold()
    return stem(low) if low.isascii() and low.isalpha() else low


def _pairs(run: str) -> Iterator[tuple[str, float]]:
    """Every two neighbouring signs.

    Together they weigh half a word for each sign of the run: all but the outer ones count twice.
    """
    if len(run) == 1:
        yield run, 0.5
    for at in range(len(run) - 1):
        yield run[at : at + 2], len(run) / (2 * len(run) - 2)
