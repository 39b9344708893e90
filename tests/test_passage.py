"""The part of a long message that a question is about."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from optchat.recall.passage import CUT, passage

PATIENT = settings(deadline=None)
PROSE = "The first thing was done. The second followed it!\nThen came a third.\n" * 20
TEXTS = st.one_of(
    st.text(max_size=600),
    st.lists(
        st.sampled_from(
            ["ledger", "view.py", "红色按钮。", "a. b!", "\n", " ", "xxxxxxxxxx", "👩‍👩‍👧"]
        ),
        max_size=200,
    ).map(" ".join),
)
WORTHS = {"ledger": 3.0, "view.py": 2.0, "红色": 1.0, "@2026-05-01": 1.0}


@PATIENT
@given(TEXTS, st.integers(20, 300))
@example("", 20)
@example(" " * 100, 20)
def test_a_passage_is_short_and_word_for_word(text, limit):
    part = passage(text, WORTHS, limit)
    assert len(part) <= limit
    if len(text) <= limit:
        assert part == text
    else:
        assert part.removeprefix(CUT).removesuffix(CUT) in text


@PATIENT
@given(st.integers(0, 1_300), st.integers(60, 300))
def test_a_passage_holds_the_word_asked_for_wherever_it_stands(at, limit):
    text = f"{PROSE[:at]} the ledger is closed. {PROSE[at:]}"
    part = passage(text, WORTHS, limit)
    assert "ledger" in part
    # What is left out before it or behind it is marked.
    before, _, behind = text.partition(part.removeprefix(CUT).removesuffix(CUT))
    assert part.startswith(CUT) == bool(before.strip())
    assert part.endswith(CUT) == bool(behind.strip())


def test_a_passage_begins_and_ends_with_a_line_or_a_sentence():
    text = (
        PROSE
        + "Afterwards nothing was left. The ledger was closed by Maria on Friday. Nobody knew "
        "why.\n" + PROSE
    )
    part = passage(text, WORTHS, 120)
    assert part.startswith(CUT)
    assert part.endswith(f".{CUT}")
    assert "The ledger was closed by Maria on Friday." in part
    assert part.removeprefix(CUT).split()[0] in ("Then", "Afterwards", "The")


def test_where_most_of_the_words_stand_together_is_shown():
    text = (
        "A ledger. "
        + PROSE
        + "Here view.py writes the ledger and 红色 too. "
        + PROSE
        + " ledger ledger ledger"
    )
    assert "view.py writes the ledger" in passage(text, WORTHS, 200)


def test_without_a_word_that_is_found_the_beginning_is_shown():
    assert passage(PROSE, {"nowhere": 1.0}, 100).startswith("The first thing was done.")
    assert passage(PROSE, {}, 100).startswith("The first thing was done.")
