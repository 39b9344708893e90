"""Which term stands in which message, held to a dictionary."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optchat.base.record import Entry
from optchat.base.terms import terms
from optchat.log import postings
from optchat.log.sqlite import Database

PATIENT = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LOGS = st.lists(
    st.sets(
        st.sampled_from(
            [
                "a",
                "b",
                "c/d.py",
                "e_1",
                "红色",
                "@2026-05-01",
                "x-y",
                "AND".lower(),
                "near",
                "i\u0307",
            ]
        )
    ),
    max_size=40,
)


@pytest.fixture
def table(tmp_path):
    database = Database(tmp_path / "search.sqlite")
    yield database
    database.close()


def holds(log, *wanted):
    """The messages that hold all of these, newest first."""
    return [id_ for id_ in range(len(log) - 1, -1, -1) if log[id_].issuperset(wanted)]


def filled(database, log):
    postings.make(database)
    postings.insert(database, enumerate(log))


@PATIENT
@given(LOGS)
def test_a_rare_term_is_listed_in_full_and_one_that_stands_nowhere_is_left_out(table, log):
    filled(table, log)
    asked = ["a", "c/d.py", "红色", "and", "i\u0307", "nowhere", "@2026-05-01"]
    found = postings.Reader().look_up(table, asked, len(log))
    assert {term: list(posting.ids) for term, posting in found.items()} == {
        term: holds(log, term) for term in asked if holds(log, term)
    }
    assert all(posting.count == len(posting.ids) for posting in found.values())


@PATIENT
@given(LOGS, st.integers(0, 12))
def test_of_a_common_term_the_messages_are_listed_that_hold_another(table, log, limit):
    filled(table, log)
    asked = ["a", "b", "e_1"]
    with patch.object(postings, "LISTED", limit):
        found = postings.Reader().look_up(table, asked, len(log))
    # Together the rare ones are listed up to twice the limit, the rarest first.
    rare, common, left = [], [], 2 * limit
    for term in sorted(
        (term for term in asked if holds(log, term)),
        key=lambda term: (len(holds(log, term)), asked.index(term)),
    ):
        fits = len(holds(log, term)) <= min(limit, left)
        left -= len(holds(log, term)) if fits else 0
        (rare if fits else common).append(term)
    assert set(found) == {*rare, *common}
    for term in rare:
        assert list(found[term].ids) == holds(log, term)
    for term in common:
        others = rare or [other for other in common if other != term]
        beside = {id_ for other in others for id_ in holds(log, term, other)}
        assert list(found[term].ids) == sorted(beside, reverse=True)
        assert found[term].count == len(holds(log, term)) or found[term].count > limit


def test_what_is_known_to_be_common_is_not_counted_again(table):
    filled(table, [{"a", "b"}] * 50 + [{"b"}])
    reader = postings.Reader()
    with (
        patch.object(postings, "LISTED", 10),
        patch.object(postings, "_counted", wraps=postings._counted) as counted,
    ):
        reader.look_up(table, ["a", "b"], 51)
        first = counted.call_count
        reader.look_up(table, ["a", "b"], 51)
        postings.insert(table, [(51, {"a"})])
        assert reader.look_up(table, ["a"], 52)["a"].count > 10
        assert counted.call_count == first
        reader.forget()
        reader.look_up(table, ["a"], 52)
        assert counted.call_count > first


def test_how_common_a_term_is_is_judged_by_the_newest_messages(table):
    filled(table, [{"a"} if k % 2 else {"b"} for k in range(400)])
    with patch.object(postings, "LISTED", 10), patch.object(postings, "SAMPLE", 40):
        assert postings.Reader().look_up(table, ["a"], 400)["a"].count == 200


def test_a_rare_term_is_counted_again_when_there_is_more(table):
    filled(table, [{"a"}])
    reader = postings.Reader()
    assert reader.look_up(table, ["a"], 1)["a"].ids == [0]
    postings.insert(table, [(1, {"a"})])
    assert reader.look_up(table, ["a"], 2)["a"].ids == [1, 0]


def test_a_message_that_says_something_else_now_is_not_found_by_what_is_gone(opened):
    memory = opened()
    memory.record(
        [Entry(kind="user", text=text) for text in ("the key is heron-42", "a heron", "the boat")]
    )
    assert memory.settle(60)
    memory.full_text.replace(0, "the key is heron-42", "the key is gone", memory.message(0).date)
    assert [hit.id for hit in memory.search("heron")] == [1]
    assert [hit.id for hit in memory.search("heron-42")] == [1]
    assert memory.search("42") == []
    assert [hit.id for hit in memory.search("key gone")] == [0]
    assert set(memory.full_text.look_up(["@2026-05-01"]).postings["@2026-05-01"].ids) == {0, 1, 2}
    memory.full_text.replace(99, "nobody", "knows this")
    assert memory.search("knows") == []


def test_the_newest_with_all_of_the_terms(table):
    log = [{"a", "b"}, {"a"}, {"a", "b", "x-y"}, {"b"}]
    filled(table, log)
    reader = postings.Reader()
    assert reader.newest(table, ["a", "b"], 10) == [2, 0]
    assert reader.newest(table, ["a"], 2) == [2, 1]


@PATIENT
@given(
    st.one_of(
        st.text(max_size=120),
        st.sampled_from(
            ["C:\\x\\y.py", "a/b:c@d", "__init__", "l'été", "ﷺ ½ ㌀", "e\u0301\u0302", "ß İ ǅ"]
        ),
    )
)
def test_every_term_of_any_text_can_be_looked_up(table, text):
    wanted = terms(text, "2026-05-01")
    filled(table, [set(), wanted, set()])
    found = postings.Reader().look_up(table, wanted, 3)
    assert found.keys() == wanted
    assert all(posting.ids == [1] for posting in found.values())
