"""Which messages answer a question: the shortlist and the rank."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.recall.rank import LIFT, Candidate, QueryTerm, rank, shortlist, singles_out, strength

PATIENT = settings(deadline=None)
CLUES = st.lists(
    st.builds(
        lambda worth, ids: QueryTerm(worth, sorted(ids, reverse=True)),
        st.floats(0.01, 20),
        st.sets(st.integers(0, 399), max_size=30),
    ),
    max_size=6,
)


def candidate(id_, *, kind="talk", session="s", chars=100, same=None, **counts):
    return Candidate(id_, kind, session, chars, counts, id_ if same is None else same)


def scored(clues, total):
    """What the shortlist promises, written down without any shortcut."""
    score = {}
    for at in range(total):
        worth = 0.0
        for clue in clues:
            near = [abs(id_ - at) for id_ in clue.ids]
            if near and min(near) <= len(LIFT):
                worth += clue.worth * (1.0, *LIFT)[min(near)]
        if worth:
            score[at] = worth
    return score


@PATIENT
@given(CLUES)
def test_the_shortlist_of_a_short_log_is_every_match_by_worth(clues):
    listed = shortlist(clues, 400, 400)
    score = scored(clues, 400)
    assert set(listed) <= score.keys()
    # Only of one and the same score some may be left out.
    for left_out in score.keys() - set(listed):
        assert sum(math.isclose(score[left_out], score[id_], rel_tol=1e-9) for id_ in listed) >= 60
    term_weights = [score[id_] for id_ in listed]
    assert all(a >= b or math.isclose(a, b, rel_tol=1e-9) for a, b in pairwise(term_weights))


@PATIENT
@given(CLUES, st.integers(1, 400), st.integers(1, 50))
def test_the_shortlist_stays_inside_the_log_and_its_length(clues, total, most):
    listed = shortlist(clues, total, most)
    assert len(listed) <= most
    assert len(set(listed)) == len(listed)
    assert all(0 <= id_ < total for id_ in listed)


def test_a_text_repeated_a_thousand_times_does_not_fill_the_shortlist():
    clues = [QueryTerm(5.0, range(20_000, 9_000, -11)), QueryTerm(4.0, [3_000])]
    assert 3_000 in shortlist(clues, 30_000, 800)


def test_what_holds_more_comes_first_and_of_equals_the_newest():
    found = rank(
        [candidate(1, a=1), candidate(20, a=1, b=1), candidate(40, a=1)], {"a": 1.0, "b": 2.0}, 100
    )
    assert list(found) == [20, 40, 1]


def test_a_short_message_comes_before_a_long_one_and_a_repeated_word_counts_a_little():
    found = rank(
        [candidate(1, a=1, chars=900), candidate(20, a=1), candidate(40, a=3)], {"a": 1.0}, 100
    )
    assert list(found) == [40, 20, 1]
    assert found[40] < 3 * found[20]


def test_a_neighbour_is_lifted_by_words_it_lacks_and_not_by_those_it_has():
    term_weights = {"where": 1.0, "harbour": 2.0}
    alone = rank([candidate(8, harbour=1)], term_weights, 100)[8]
    same_word = rank([candidate(7, harbour=1), candidate(8, harbour=1)], term_weights, 100)[8]
    other_word = rank([candidate(7, where=1), candidate(8, harbour=1)], term_weights, 100)[8]
    assert alone == same_word < other_word


def test_an_answer_beside_the_question_is_found():
    found = rank(
        [candidate(10, a=1, b=1), candidate(11), candidate(300, b=1)], {"a": 3.0, "b": 1.0}, 100
    )
    assert list(found) == [10, 11, 300]


def test_neighbours_of_another_session_are_strangers():
    found = rank(
        [candidate(10, a=1), candidate(11, session="other"), candidate(12)], {"a": 1.0}, 100
    )
    assert found[11] == 0 < found[12]


def test_the_users_words_come_before_the_agents_and_those_before_tool_output():
    kinds = ["echo", "user", "tool", "talk"]
    found = rank(
        [candidate(20 * k, kind=kind, a=1) for k, kind in enumerate(kinds)], {"a": 1.0}, 100
    )
    assert [kinds[id_ // 20] for id_ in found] == ["user", "talk", "tool", "echo"]


def test_repeats_of_one_text_are_ranked_once():
    assert list(
        rank(
            [candidate(1, a=1, same="x"), candidate(20, a=1, same="x"), candidate(40, a=1)],
            {"a": 1.0},
            100,
        )
    ) == [40, 20]


def test_a_question_points_at_few_or_at_none():
    assert strength(candidate(1, a=5, c=1), {"a": 2.0, "b": 4.0}) == 2.0
    assert singles_out(math.log(10_000), 1_000_000, most=150, one_in=20)
    assert not singles_out(math.log(1_000), 1_000_000, most=150, one_in=20)
    assert not singles_out(math.log(19), 100, most=150, one_in=20)
    assert not singles_out(0.0, 0, most=150, one_in=20)
