"""What a text can be found by, and what a question asks for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.base.terms import ASKED_CHARS, ASKED_TERMS, TEXT_CHARS, asked, counted, rarity, terms

PATIENT = settings(deadline=None)
ANY = st.text(max_size=200)
WORDY = st.lists(
    st.sampled_from(
        [
            "optchat/core/view.py",
            "migration_0042",
            "10.3.4.5",
            "TimeoutError",
            "don't",
            "Café",
            "红色的按钮",
            "ボタン",
            "버튼을",
            "สวัสดี",
            "हिन्दी",
            "ＡＢＣ",
            "C:\\new\\table",
            "https://host.com/a/b?c=d",
            "HTTPServer2",
            "__init__",
            "a-b-c",
            "0007",
            "😀",
            "\u0301",
            "İstanbul",
            "straße",
            "\\n",
            "'",
            "…",
        ]
    ),
    max_size=12,
).map(" ".join)
CHINESE = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5)
JAPANESE = st.one_of(
    CHINESE,
    st.characters(min_codepoint=0x3041, max_codepoint=0x3096),
    st.characters(min_codepoint=0x30A1, max_codepoint=0x30FA),
    st.sampled_from("ー々〆ゝヾ"),
)
KOREAN = st.one_of(
    st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),
    st.characters(min_codepoint=0x3131, max_codepoint=0x3163),
)
UNSPACED = st.sampled_from([CHINESE, JAPANESE, KOREAN]).flatmap(
    lambda signs: st.text(signs, min_size=2, max_size=30)
)


@PATIENT
@given(st.one_of(ANY, WORDY))
def test_every_message_is_found_by_its_own_words(text):
    assert {term for term in asked(text) if not term.startswith("@")} <= terms(text)


@PATIENT
@given(st.one_of(ANY, WORDY))
def test_a_term_is_one_word_to_the_tokenizer_and_never_long(text):
    for term in terms(text, "2026-05-01"):
        assert term
        assert len(term) <= 3 * 96  # a sign may fold to three
        assert all(not sign.isascii() or sign.isalnum() or sign in "-_./:@" for sign in term), term
        assert term == term.casefold()


@PATIENT
@given(UNSPACED, st.data())
def test_any_run_of_two_signs_or_more_is_found(text, data):
    start = data.draw(st.integers(0, len(text) - 2))
    end = data.draw(st.integers(start + 2, len(text)))
    assert set(asked(text[start:end])) <= terms(f"前言。{text}")


@pytest.mark.parametrize(
    ("text", "asked_for"),
    [
        (
            "see optchat/core/view.py line 3",
            ["optchat/core/view.py", "view.py", "core", "view", "Optchat"],
        ),
        (
            "see C:\\work\\core\\view.py",
            ["C:\\work\\core\\view.py", "c:/work/core/view.py", "view.py"],
        ),
        (
            "ran migration_0042 twice",
            ["migration_0042", "MIGRATION_0042", "migrations", "0042", "42"],
        ),
        ("host 10.3.4.5 is down", ["10.3.4.5"]),
        ("raised TimeoutError", ["TimeoutError", "timeouterror", "timeout", "errors"]),
        ("in __init__ of HTTPServer2", ["__init__", "init", "httpserver2", "http"]),
        ("mail bob@host.com", ["bob@host.com", "bob", "host.com"]),
        (
            "at https://github.com/some/hermes-agent/issues",
            ["github.com", "hermes-agent", "issue", "https://github.com/some/hermes-agent/issues"],
        ),
        ("the café's ﬁne ＡＢＣ", ["cafe", "fine", "abc", "CAFÉ"]),
        ('{"text": "alpha\\nbeta"}', ["alpha", "beta"]),
        ("she painted children", ["painting", "child", "paints"]),
        ("它用 Postgres数据库 存", ["postgres", "数据", "数据库"]),
        ("2026-05-01T09:00:00", ["2026-05-01", "2026"]),
    ],
)
def test_a_thing_is_found_whole_and_in_parts(text, asked_for):
    for query in asked_for:
        first = next(iter(asked(query)))
        if first.startswith("@"):
            first = [*asked(query)][2]
        assert first in terms(text), query


def test_function_words_are_asked_for_only_where_that_is_wanted():
    assert list(asked("What did we sell from the ledger?")) == ["sell", "ledger"]
    assert asked("what was it") == {}
    assert list(asked("what was it", functions=True)) == ["what", "be", "it"]
    assert asked("the trip in May").keys() == asked("trip").keys() | asked("May").keys()
    assert asked("the trip that may end").keys() == asked("trip end").keys()


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "😀🎉",
        '"',
        "* - + ( ) ^ :",
        "'''",
        "…",
        "\x00\x01",
        "\ud83d".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    ],
)
def test_what_holds_no_word_asks_for_nothing(query):
    assert asked(query) == {}


def test_operators_are_words_like_others():
    assert list(asked('ledger AND NOT "open" OR NEAR(x)')) == ["ledger", "open", "near", "x"]


def test_the_parts_of_a_whole_weigh_less_than_the_whole():
    weights = asked("optchat/core/view.py")
    assert weights["optchat/core/view.py"] == 1
    assert max(weight for term, weight in weights.items() if term != "optchat/core/view.py") <= 0.5
    pairs = asked("红色的按钮")
    assert sum(pairs.values()) == pytest.approx(len("红色的按钮") / 2)


def test_of_a_long_query_both_ends_are_asked_for():
    query = "first " + " ".join(f"middle{k}" for k in range(20_000)) + " last"
    assert len(query) > ASKED_CHARS
    found = asked(query)
    assert len(found) == ASKED_TERMS
    assert {"first", "last"} <= found.keys()


def test_of_a_dump_both_ends_are_found():
    dump = "beginning " + "x" * TEXT_CHARS + " middle " + "y" * TEXT_CHARS + " ending"
    assert {"begin", "end"} <= terms(dump)


@PATIENT
@given(WORDY)
def test_counting_finds_what_is_there_and_nothing_else(text):
    wanted = {"view", "timeout", "@2026-05-01", "nowhere"}
    found = counted(text, wanted, "2026-05-01T10:00:00")
    assert found.keys() == wanted & terms(text, "2026-05-01")
    assert found.get("timeout", 0) == text.count("TimeoutError")


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_rarer_the_more_it_tells(total, count):
    count = min(count, total)
    assert rarity(count, total) > 0
    assert rarity(count, total) >= rarity(min(count + 1, total), total)
