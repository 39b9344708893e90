"""Facts that a line may not invent.

Addresses, paths, hashes and numbers, and whether they stand in what the model was shown.

Compared without differences of writing: case, accents, widths, slashes, thousands separators,
``10k``. A number of one digit is passed: a summary counts what it joins ("3 files"), and in some
thousands of characters every digit stands somewhere, so that looking would tell nothing. Pure.
Called by ``validate.py``.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ..base.terms import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CJK: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003134f"
)
"""Scripts without spaces: a path ends where they begin."""
_RUN: Final = re.compile(rf"(?:[^\W{_CJK}]|[./\\:@#~%+=?&$'-])+")
_EDGE: Final = ".,:;!?'=+#%&$-"
_DASHES: Final = re.compile("[‐‑‒–—−]")
_FOREIGN_DIGIT: Final = re.compile(r"(?![0-9])\d")
_ESCAPE: Final = re.compile(r"\\[nrt]")
_DOTS: Final = re.compile(r"…|\.{3,}")
_GAP: Final = "\x02"
_SLASHES: Final = re.compile("/{2,}")

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*:/\S|www\.|[^@\s]+@[^@\s]+\.\w", re.IGNORECASE)
_AS_URL: Final = re.compile(r"(?<=[a-z]{2}):/", re.IGNORECASE)
_SCHEME: Final = re.compile(r"^[a-z][a-z0-9+.-]*:/(?:www\.)?|^www\.")
_ROOTED: Final = re.compile(r"(?:~|\.{1,2})?/\w|[a-z]:/", re.IGNORECASE)
_FILE: Final = re.compile(r"[A-Za-z0-9_-]{2,}(?:\.[\w-]+)*\.[a-z][a-z0-9]{1,4}")
_NUMERIC: Final = re.compile(r"[\d/.,:-]+")
_POSITION: Final = re.compile(r"(?::\d+)+$")
_HASH: Final = re.compile(
    r"(?<![^\W_])(?=[0-9a-f]{0,63}[a-f])(?=[0-9a-f]{0,63}\d)[0-9a-f]{6,64}(?![^\W_])"
)

_NUMBER: Final = re.compile(
    r"(\d{1,3}(?:[,.' _]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*)"
    r"(\s?(?:k|thousand|mio|million|bn|billion)\b|\s?[万億亿萬]|(?-i:\s?M\b))?",
    re.IGNORECASE,
)
_SCALE: Final = {
    "k": 1_000,
    "thousand": 1_000,
    "m": 1_000_000,
    "mio": 1_000_000,
    "million": 1_000_000,
    "bn": 10**9,
    "billion": 10**9,
    "万": 10_000,
    "萬": 10_000,
    "億": 10**8,
    "亿": 10**8,
}
_GROUPED: Final = re.compile(r"\d{1,3}(?:[,.' _]\d{3})+(?:[.,]\d+)?")
_SEVERAL: Final = re.compile(r"\d+(?: \d+)+|\d{1,2}\.\d{1,2}\.(?:\d\d){1,2}")
"""Numbers side by side, or a date: each is looked up alone."""
_DIGITS: Final = 40
"""A longer row of digits is no number anybody computes with; Python would take its time."""

_ONES: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_WORDS: Final = {
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "dozen": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
    "thousand": 1_000,
}
_WORD: Final = re.compile(rf"\b({'|'.join(_WORDS)})(?:[ -]({'|'.join(_ONES)}))?\b")
"""English numbers in words: models write "thirty euros" as 30."""

MOST: Final = 8
"""Inventions that are named at once, to the model and to people: enough to say what is wrong."""
_LONGEST: Final = 100
"""Characters of one fact that are named, or looked through for the numbers in it."""


class Known:
    """What a model was shown, to look facts up in."""

    def __init__(self, texts: Iterable[str]) -> None:
        shown = "\n".join(texts)
        if "\\" in shown:
            # In JSON, what stands after a line break would be glued to its "n".
            shown += "\n" + _ESCAPE.sub(" ", shown)
        self._written = _alike(shown)
        self._text = self._written.casefold()

    def has(self, fact: str, *, start: bool = False) -> bool:
        """Whether it stands there as a word or words; with ``start``, as the beginning of one."""
        text, size, inside = self._text, len(fact), _is_alnum(fact[:1])
        at = text.find(fact)
        while at >= 0:
            if not (inside and at and _is_alnum(text[at - 1])) and (
                start or not _is_alnum(text[at + size : at + size + 1])
            ):
                return True
            at = text.find(fact, at + 1)
        return False

    @cached_property
    def numbers(self) -> set[str]:
        """Every number in every way in which a line may write it."""
        found: set[str] = set()
        for number, scale in set(_NUMBER.findall(self._written)):
            found |= _forms(number, scale)
            pieces = re.split(r"\D+", number[:_LONGEST])
            found.update(map(_canonical, pieces))
            # 0.19 of 0.19.1; 2026 of 2026.05
            found.update(".".join(pieces[:count]) for count in range(2, len(pieces)))
        for word, one in set(_WORD.findall(self._text)):
            found.add(str(_WORDS[word]))
            if one:
                found.add(str(_WORDS[word] + _ONES.index(one) + 1))
        return found


def unknown(line: str, known: Known) -> list[str]:
    """The facts in a line that stand nowhere in what is known, each once, at most ``MOST``."""
    found = dict.fromkeys(_unknown_words(_alike(line), known))
    return [_AS_URL.sub("://", fact[:_LONGEST]) for fact in list(found)[:MOST]]


def _unknown_words(text: str, known: Known) -> Iterator[str]:
    """Addresses, paths and hashes first; numbers in what is left of the text."""
    rest, done = [], 0
    for match in _RUN.finditer(text):
        word = match[0].rstrip(_EDGE).lstrip(_EDGE.removeprefix("."))
        if "=" in word and not _URL.match(word):
            word = word.rpartition("=")[2]  # path=src/a.py names src/a.py
        if word.isdigit() or word.isalpha() or not word:
            continue
        low = word.casefold()
        if known.has(low):
            pass
        elif _is_place(word):
            if not _has_place(low, known, shortened=text.startswith(_GAP, match.end())):
                yield word
        elif hashes := _HASH.findall(low):
            yield from (found for found in hashes if not known.has(found, start=True))
        else:
            continue
        rest.append(text[done : match.start()])
        done = match.end()
    rest.append(text[done:])
    yield from _unknown_numbers(" ; ".join(rest), known)


def _unknown_numbers(text: str, known: Known) -> Iterator[str]:
    for match in _NUMBER.finditer(text):
        number, scale = match[1], match[2]
        if (not scale and (len(_canonical(number)) == 1 or known.has(number))) or _forms(
            number, scale, alone=True
        ) & known.numbers:
            continue
        if _SEVERAL.fullmatch(number) and all(
            len(each) == 1 or _canonical(each) in known.numbers for each in re.split(r"\D", number)
        ):
            continue
        yield match[0].strip()


# ---- addresses and paths


def _is_place(word: str) -> bool:
    """Whether the word is a URL, an e-mail address, a path or the name of a file."""
    if _NUMERIC.fullmatch(word):
        return False  # 24/7, 2026-05-01
    if _URL.match(word) or _ROOTED.match(word) or _FILE.fullmatch(word):
        return True
    # and/or is none, src/view.py is; of plain words with several slashes nobody can tell.
    return "/" in word and (
        word.count("/") > 1 or any(sign in "._" or sign.isdigit() for sign in word)
    )


def _has_place(low: str, known: Known, *, shortened: bool) -> bool:
    bare = _SCHEME.sub("", _POSITION.sub("", low)).rstrip("/").removeprefix("./")
    if known.has(bare, start=shortened):
        return True
    steps = bare.split("/")
    return all(step.isalpha() and known.has(step) for step in steps) if steps[0] else False


# ---- numbers


def _forms(number: str, scale: str | None, *, alone: bool = False) -> set[str]:
    """The ways in which the same number is written. 1,234 may be one and a bit or a thousand and
    more: both.

    ``alone``: with a scale, only the number that is meant. What was said as 10k was also said as
    10; the reverse is an invention.
    """
    if len(number) > _DIGITS:
        return {number}
    plain = [number.replace(",", ".")]
    if _GROUPED.fullmatch(number):
        whole, _, decimals = (
            number.rpartition(max(".,", key=number.rfind))
            if re.search(r"[.,]\d+$", number)
            else (number, "", "")
        )
        if whole and _GROUPED.fullmatch(whole):
            plain.append(f"{re.sub(r'[^0-9]', '', whole)}.{decimals}")
        plain.append(re.sub(r"\D", "", number))
    found = set(map(_canonical, plain))
    if scale:
        times = _SCALE[scale.strip().casefold()]
        scaled = {
            _canonical(f"{float(each) * times:.6f}")
            for each in found
            if each.count(".") < 2 and each.replace(".", "").isdigit()
        }
        return scaled if alone else found | scaled
    return found


def _canonical(number: str) -> str:
    """Without leading zeros, and without trailing ones behind the point."""
    if number.count(".") == 1:
        number = number.rstrip("0").rstrip(".")
    return number.lstrip("0") or "0"


def _alike(text: str) -> str:
    text = folded(_DOTS.sub(_GAP, text)).replace("\\", "/")
    if not text.isascii():
        text = _DASHES.sub("-", text.replace("’", "'"))
        text = _FOREIGN_DIGIT.sub(lambda match: str(int(match[0])), text)
    return _SLASHES.sub("/", text)


def _is_alnum(sign: str) -> bool:
    return sign.isascii() and sign.isalnum()
