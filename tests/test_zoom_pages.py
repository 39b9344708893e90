"""A long message in pages: they join to the text exactly and end at line ends."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optchat.recall.zoom import PAGE_CHARS, page_of

PATIENT = settings(deadline=None)
"""Other work shares the machine: how long an example takes is no property of the code."""

TEXTS = st.lists(
    st.sampled_from(
        [
            "\n",
            "\r\n",
            "a",
            "bc",
            "漢字",
            "😀",
            " ",
            "e\u0301",
            "\u200d",
            "👩\u200d💻",
            "x" * 30,
            "\u0301" * 20,
        ]
    ),
    max_size=60,
).map("".join)
SIGNS = {"\u0301", "\u200d"}


def pages_of(text, size):
    first, count = page_of(text, 1, size)
    return [first, *(page_of(text, number, size)[0] for number in range(2, count + 1))]


@PATIENT
@given(TEXTS, st.integers(1, 40))
@example("\u0301" * 100, 16)
@example("", 1)
@example("\n" * 50, 1)
def test_pages_join_to_the_text_and_none_is_empty_or_too_long(text, size):
    pages = pages_of(text, size)
    assert "".join(pages) == text
    assert all(0 < len(page) <= size for page in pages) or not text


@PATIENT
@given(TEXTS, st.integers(1, 40))
def test_a_page_ends_with_the_last_line_that_fits(text, size):
    pages, at = pages_of(text, size), 0
    for page in pages[:-1]:
        room = text[at : at + size]
        if "\n" in room:
            assert page == room[: room.rindex("\n") + 1]
        else:
            assert len(text[at:].split("\n")[0]) >= size, "only a line longer than a page is cut"
        at += len(page)


def tears(text, at):
    """Whether a cut before this character would part a sign.

    A mark from its letter, or two signs that a joiner makes one.
    """
    return text[at] in SIGNS or text[at - 1] == "\u200d"


@PATIENT
@given(TEXTS, st.integers(16, 60))
def test_what_is_shown_as_one_sign_is_not_cut_in_two(text, size):
    end = 0
    for page in pages_of(text, size)[:-1]:
        end += len(page)
        assert (
            not tears(text, end)
            or page.endswith("\n")
            or all(tears(text, at) for at in range(end - 15, end))
        ), "no sign is that long"


@PATIENT
@given(TEXTS, st.integers(1, 40), st.integers(-3, 200))
def test_a_page_that_does_not_exist_is_empty_and_the_count_is_always_told(text, size, number):
    count = len(pages_of(text, size))
    page, told = page_of(text, number, size)
    assert told == count
    assert 1 <= number <= count or not page


@pytest.mark.parametrize("chars", [0, 1, PAGE_CHARS - 1, PAGE_CHARS])
def test_a_text_that_fits_is_one_page(chars):
    assert page_of("x" * chars, 1) == ("x" * chars, 1)
    assert page_of("x" * chars, 2) == ("", 1)


def test_a_page_of_the_default_size_is_sixteen_thousand_characters():
    text = ("y" * 99 + "\n") * 1000
    assert [len(page) for page in pages_of(text, PAGE_CHARS)] == [16_000] * 6 + [4_000]
    assert len(page_of("z" * 16_001, 1)[0]) == 16_000


def test_a_text_of_fifty_megabytes_is_paged_at_once():
    text = "line of forty characters, more or less\n" * 1_300_000
    page, count = page_of(text, 3000)
    assert page == text[2999 * 15_990 : 3000 * 15_990]
    assert count == -(-len(text) // 15_990)
