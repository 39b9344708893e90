"""Stems of English words, held to SQLite's own implementation of the same algorithm."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optchat.base import stem as stem_module
from optchat.base.stem import stem

PIECES = (
    "a",
    "e",
    "i",
    "o",
    "u",
    "y",
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "z",
    "ll",
    "ss",
    "tt",
    "at",
    "bl",
    "iz",
    "ational",
    "tional",
    "enci",
    "anci",
    "izer",
    "bli",
    "alli",
    "entli",
    "eli",
    "ousli",
    "ization",
    "ation",
    "ator",
    "alism",
    "iveness",
    "fulness",
    "ousness",
    "aliti",
    "iviti",
    "biliti",
    "logi",
    "icate",
    "ative",
    "alize",
    "iciti",
    "ical",
    "ful",
    "ness",
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
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "ed",
    "ing",
    "eed",
    "ies",
    "sses",
)
WORDS = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join),
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12),
)


@pytest.fixture(scope="module")
def porter():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (word, tokenize = 'porter ascii')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (words, instance)")

    def ask(word):
        connection.execute("DELETE FROM words")
        connection.execute("INSERT INTO words VALUES (?)", (word,))
        return connection.execute("SELECT term FROM terms").fetchone()[0]

    yield ask
    connection.close()


@settings(deadline=None, max_examples=500)
@given(WORDS)
def test_a_stem_is_that_of_the_porter_tokenizer(porter, word):
    # Where a word is nothing but an ending, SQLite treats it in its own way: nothing is found by
    # those.
    assume(word not in stem_module._BASE and word not in ("eed", "ies", "sses"))
    assert stem(word) == porter(word)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paint", "painting"),
        ("agency", "agencies"),
        ("go", "went"),
        ("run", "ran"),
        ("child", "children"),
        ("relate", "relational"),
        ("hop", "hopped"),
    ],
)
def test_forms_of_one_word_meet(one, other):
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"), [("general", "gender"), ("police", "polite"), ("universe", "unit")]
)
def test_different_words_stay_apart(one, other):
    assert stem(one) != stem(other)
