"""Stems of English words, so that *painted*, *paints* and *painting* are found by one another.

Pure.

The suffix stripping of M. F. Porter, "An algorithm for suffix stripping" (Program 14/3, 1980), with
the two changes of his later programs (``bli`` and ``logi`` in step 2), as SQLite's porter tokenizer
has it. Before it, a short list of forms no suffix rule can join. Called by ``terms.py``; knows
nothing of texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_IRREGULAR: Final = """
be am is are was were been being; go goes went gone; have has had; do does did done; say said;
get got gotten; make made; take took taken
give gave given; come came; see saw seen; find found; think thought; tell told; begin began begun;
write wrote written; win won
lose lost; meet met; feel felt; keep kept; leave left; know knew known; grow grew grown;
speak spoke spoken; sell sold; teach taught
catch caught; bring brought; build built; send sent; spend spent; hold held; hear heard;
stand stood; understand understood; sing sang sung
swim swam swum; draw drew drawn; drive drove driven; eat ate eaten; fall fell fallen;
fly flew flown; choose chose chosen
break broke broken; wear wore worn; ride rode ridden; throw threw thrown; become became; lead led;
pay paid; sleep slept; sit sat
deal dealt; mean meant; fight fought; hide hid hidden; rise rose risen; shake shook shaken;
show shown; steal stole stolen; strike struck
wake woke woken; lend lent; feed fed; hang hung; dig dug; shoot shot; buy bought; run ran;
drink drank drunk; forget forgot forgotten
forgive forgave forgiven; freeze froze frozen; shrink shrank shrunk; bend bent; bind bound;
swear swore sworn
tear tore torn; bite bit bitten; blow blew blown; seek sought; stick stuck; sweep swept;
weep wept; creep crept; shine shone
lay laid; lie lain; light lit
child children; man men; woman women; person people; foot feet; tooth teeth; mouse mice;
goose geese; wife wives; knife knives; leaf leaves
half halves; shelf shelves; index indices; matrix matrices; vertex vertices; analysis analyses;
criterion criteria
good better best; bad worse worst
"""


def _irregular() -> dict[str, str]:
    groups = (group.split() for line in _IRREGULAR.splitlines() for group in line.split(";"))
    return {form: group[0] for group in groups if group for form in group[1:]}


_BASE: Final = _irregular()

_STEP_2: Final = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
_STEP_3: Final = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP_4: Final = (
    "al",
    "ance",
    "ence",
    "er",
    "ic",
    "able",
    "ible",
    "ant",
    "ement",
    "ment",
    "ent",
    "ion",
    "ou",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
)
_ENDINGS: Final = tuple({ending for ending, _ in _STEP_2 + _STEP_3})

_SIGNS: Final = {
    code: "v" if chr(code) in "aeiou" else "y" if chr(code) == "y" else "c"
    for code in range(ord("a"), ord("z") + 1)
}


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """The stem of a word of the letters a to z; one of two letters or less is its own."""
    word = _BASE.get(word, word)
    if len(word) < 3:
        return word
    if word[-1] == "s":
        word = _plural(word)
    if word.endswith(("ed", "ing")):
        word = _past(word)
    if word[-1] == "y" and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    if word.endswith(_ENDINGS):
        word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    if word.endswith(_STEP_4):
        word = _bare(word)
    return _final(word) if word[-1] in "el" else word


def _shape(word: str) -> str:
    """The word as vowels ``v`` and consonants ``c``. A y is a vowel after a consonant."""
    shape = word.translate(_SIGNS)
    if "y" in shape:
        signs: list[str] = []
        for sign in shape:
            signs.append(("v" if signs and signs[-1] == "c" else "c") if sign == "y" else sign)
        return "".join(signs)
    return shape


def _measure(word: str) -> int:
    """How often a run of vowels is followed by a run of consonants."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Whether the word ends like *hop*: consonant, vowel, consonant other than w, x and y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word if word.endswith("ss") else word[:-1]


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            base = word[: -len(ending)]
            return _mended(base) if "v" in _shape(base) else word
    return word


def _mended(base: str) -> str:
    """What is left of a past form or a participle, with the e it lost or without the letter it
    doubled.
    """
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if len(base) > 1 and base[-1] == base[-2] and _shape(base)[-1] == "c":
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if _measure(base) == 1 and _is_short(base) else base


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, other in endings:
        if word.endswith(ending):
            base = word[: -len(ending)]
            return base + other if _measure(base) else word
    return word


def _bare(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            base = word[: -len(ending)]
            fits = ending != "ion" or base.endswith(("s", "t"))
            return base if fits and _measure(base) > 1 else word
    return word


def _final(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        measure = _measure(base)
        if measure > 1 or (measure == 1 and not _is_short(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
