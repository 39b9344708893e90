"""What the log holds where a host has put rows and words of its own between people's.

None of them.
"""

import pytest
from capturestore import MemoryStore
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.capture.capture import Capture

BACKFILL = "[Recent channel messages]\n[Bo] at eight\n[Cy] fine\n\n[New message]\n[Ann] book it"


def user(text, **more):
    return {"role": "user", "content": text, **more}


def agent(text, **more):
    return {"role": "assistant", "content": text, **more}


def named(messages):
    return [{**message, "message_uid": f"m{at}"} for at, message in enumerate(messages)]


def written(store):
    return [(m.kind, m.text) for m in store.log]


@pytest.fixture
def store():
    return MemoryStore()


@pytest.mark.parametrize("uids", [False, True])
def test_others_words_come_once_before_the_message(store, uids):
    capture = Capture(store, session="s")
    capture.turn_started(BACKFILL)
    turn = [user(BACKFILL), agent("booked")]
    for _ in range(2):
        capture.turn_ended(named(turn) if uids else turn, BACKFILL)
    capture.turn_started("thanks")
    turn += [user("thanks"), agent("welcome")]
    capture.turn_ended(named(turn) if uids else turn, "thanks")
    Capture(store, session="s").list_seen(named(turn) if uids else turn)
    assert [(m.kind, m.author, m.text) for m in store.log] == [
        ("note", "Bo", "at eight"),
        ("note", "Cy", "fine"),
        ("user", "Ann", "book it"),
        ("talk", "", "booked"),
        ("user", "", "thanks"),
        ("talk", "", "welcome"),
    ]


@pytest.mark.parametrize("uids", [False, True])
def test_six_hundred_heartbeats_leave_their_answers_only(store, uids):
    beat = (
        "[Heartbeat — recurring instruction, fires every 10m]\nlook\n\nIf there is nothing, stop."
    )
    capture = Capture(store, session="s")
    turn = []
    for at in range(600):
        capture.turn_started(beat)
        turn += [user(beat, display_kind="internal_notification"), agent(f"nothing {at}")]
        if at % 100 == 99:
            capture.turn_ended(named(turn) if uids else turn, beat)
    capture.shutdown()
    assert written(store) == [("talk", f"nothing {at}") for at in range(600)]


@pytest.mark.parametrize("uids", [False, True])
def test_a_marked_row_takes_its_draft_with_it(store, uids):
    capture = Capture(store, session="s")
    capture.turn_started("plan the day")
    turn = [user("plan the day", display_kind="hidden"), agent("planned")]
    capture.turn_ended(named(turn) if uids else turn, "plan the day")
    capture.shutdown()
    assert written(store) == [("talk", "planned")]


@pytest.mark.parametrize(
    "row",
    [user(None), user({}), user([]), user("go on", display_kind="hidden"), user("[System: x]")],
)
@pytest.mark.parametrize(
    ("uids", "announced"),
    [(uids, words) for uids in (False, True) for words in (None, "[System: x]", "", "go on")],
)
def test_a_row_that_says_nothing_doubles_none_before_it(store, uids, announced, row):
    turn, capture = [], Capture(store, session="s")
    for at in range(10):
        capture.turn_started(f"ask {at}")
        turn += [user(f"ask {at}"), agent(f"say {at}")]
        capture.turn_ended(named(turn) if uids else turn, f"ask {at}")
        if announced is not None:
            capture.turn_started(announced)
        turn += [dict(row), agent(f"more {at}")]
        capture.turn_ended(named(turn) if uids else turn, announced)
    Capture(store, session="s").list_seen(named(turn) if uids else turn)
    texts = [text for _, text in written(store) if text not in ("", "go on")]
    assert texts == [text for at in range(10) for text in (f"ask {at}", f"say {at}", f"more {at}")]


ROW = st.sampled_from(["user", "assistant", "tool", "system", 3, None]).flatmap(
    lambda role: st.fixed_dictionaries(
        {
            "role": st.just(role),
            "content": st.sampled_from([None, {}, [], [{}], "", " ", "[System: x]", "(empty)"]),
        },
        optional={
            "display_kind": st.sampled_from(["hidden", "heartbeat", 1, []]),
            "_x_synthetic": st.just(True),
        },
    )
)


@pytest.mark.parametrize("uids", [False, True])
@settings(max_examples=100, deadline=None)
@given(rows=st.lists(ROW, max_size=4), again=st.booleans())
def test_no_row_hides_or_doubles_a_neighbour(uids, rows, again):
    store = MemoryStore()
    capture = Capture(store, session="s")
    capture.turn_started("ask")
    turn = [user("ask"), agent("say")]
    capture.turn_ended(named(turn) if uids else turn, "ask")
    turn += rows
    capture.turn_started("more")
    turn += [user("more"), agent("done")]
    capture.turn_ended(named(turn) if uids else turn, "more")
    if again:
        Capture(store, session="s").list_seen(named(turn) if uids else turn)
    texts = [text for _, text in written(store) if text.strip()]
    for word in ("ask", "say", "more", "done"):
        assert texts.count(word) == 1
