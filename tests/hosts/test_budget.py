"""What a session is shown of the memory over many turns, in characters of real requests."""

import contextlib
import re
import sqlite3
from itertools import pairwise

import pytest
import shown_lives
from model_server import memory_blocks
from shown_lives import TURN, memory_chars, told_twice

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

BUDGET = 4_000


def views(body):
    """The blocks of a request that hold a whole view: their lines begin at message 0."""
    return [block for block in memory_blocks(body) if re.search(r"^0\+\d+\|", block, re.MULTILINE)]


def check(home, *, least=1):
    """No request of this home has ever held more than 1.3 views, the host's frames included, or
    told anything twice.
    """
    bodies = home.server.chats()
    assert len(bodies) >= least
    for number, body in enumerate(bodies):
        assert memory_chars(body) <= 1.3 * BUDGET, f"request {number}"
        assert told_twice(body) == [], f"request {number}"


def shows_all(body):
    """Whether the lines of a request cover the past without a hole up to where they end."""
    spans = shown_lives.lines(body)
    return spans[0][0] == 0 and all(one[1] == other[0] for one, other in pairwise(spans))


@pytest.fixture
def full(home):
    """A memory with more in it than the view can show."""
    return shown_lives.fill(home, BUDGET)


@pytest.mark.parametrize("rotates", [False, True], ids=["in place", "renamed"])
def test_forty_turns_five_compressions_and_a_resume_carry_the_past_once(full, rotates):
    full.configure(compression={"in_place": not rotates})
    first, second = shown_lives.FORTY_TURNS
    full.play(first)
    full.play(second if not rotates else second.replace('"s1"', repr(newest_session(full))))

    check(full, least=40)
    last = full.server.chats()[-1]
    assert shows_all(last)
    assert shown_lives.lines(last)[-1][1] > 307 + 40, "what was compressed is shown"


def newest_session(home):
    with contextlib.closing(sqlite3.connect(home.path / "state.db")) as database:
        return database.execute(
            "SELECT session_id FROM messages ORDER BY id DESC LIMIT 1"
        ).fetchone()[0]


def test_a_compression_of_a_short_session_brings_no_second_view(full):
    full.play(f"""
        talk = Talk("s1")
        for n in range(6):
            {TURN}
        talk.compress()
        talk.say("What is this about?")
        talk.say("And that?")
        talk.end()
    """)

    check(full, least=8)
    assert len(views(full.server.chats()[-1])) == 1


def test_a_compression_before_a_turn_brings_no_second_view(full):
    """The host compresses by itself, between a turn's start and its prefetch."""
    full.configure(
        model={"context_length": 64_000}, compression={"threshold": 0.2, "threshold_tokens": 20_000}
    )
    full.play(f"""
        talk = Talk("s1")
        for n in range(30):
            {TURN}
        out["messages"] = len(talk.messages)
        talk.end()
    """)

    check(full, least=30)
    lengths = [len(body["messages"]) for body in full.server.chats()]
    assert any(after < before for before, after in pairwise(lengths)), "it never compressed"


def test_sessions_that_begin_anew_or_as_branches_carry_one_view_each(full):
    full.play("""
        talk = Talk("s1")
        [talk.say(f"What about matter {n}?") for n in range(3)]
        talk.branch("s2")
        [talk.say(f"And what about {n}?") for n in range(2)]
        talk.new("s3")
        [talk.say(f"What else, {n}?") for n in range(2)]
        talk.end()
    """)

    check(full, least=7)
    assert [len(views(body)) for body in full.server.chats()] == [1] * 7


def test_in_a_plugin_process_of_its_own_the_past_is_carried_once(full):
    if full.host.name == "a":
        pytest.skip("host 0.19 runs plugins in its own process only")
    full.configure(plugins={"isolation": "host"})
    for scenario in shown_lives.FORTY_TURNS:
        full.play(scenario)

    check(full, least=40)


def test_twenty_turns_of_a_session_carry_one_view(full):
    full.play(
        """talk = Talk("s1"); [talk.say(f"What about matter {n}?") for n in range(20)]; talk.end()"""
    )

    first, last = full.server.chats()[0], full.server.chats()[-1]
    assert len(last["messages"]) > 38
    assert len(views(first)) == len(views(last)) == 1
    assert memory_chars(first) > BUDGET / 2
    check(full, least=20)


def test_so_do_six_turns_in_a_process_each(full):
    for number in range(6):
        full.hermes(
            "chat", "-Q", *(["--continue"] if number else []), "-q", f"What about matter {number}?"
        )

    last = full.server.chats()[-1]
    assert len(last["messages"]) > 10
    assert len(views(last)) == 1
    check(full)


def test_after_a_compression_the_next_turn_says_what_is_missing(full):
    full.play(
        """
        talk = Talk("s1")
        for number in range(30):
            talk.say(f"turn {number} " + "lorem ipsum dolor " * 300)
        long = len(talk.messages)
        talk.compress()
        assert len(talk.messages) < long, "the host found nothing to compress"
        talk.say("What is this about?")
        talk.end()
        """
    )

    last = full.server.chats()[-1]
    assert "What is this about?" in str(last["messages"][-1]["content"])
    assert shown_lives.lines({"messages": last["messages"][-1:]})[-1][1] == len(full.said()) - 2
    assert shows_all(last)
    check(full, least=31)


def test_after_an_undo_the_next_turn_has_one_current_view(full):
    full.play(
        """talk = Talk("s1"); talk.say("one"); talk.undo(); talk.say("two things then"); talk.end()"""
    )

    assert len(views(full.server.chats()[-1])) == 1


def test_a_view_lost_with_an_interrupted_message_is_shown_again(full):
    full.play(
        """
        talk = Talk("s1")
        talk.say("never mind this @@wait 4@@", interrupt_after=0.7)
        talk.say("What about the second?")
        talk.say("What about the third?")
        talk.end()
        """
    )

    assert len(views(full.server.chats()[-1])) == 1


def test_recall_every_turn_shows_the_view_every_turn(full):
    full.settings(view_budget_chars=BUDGET, recall="turn")

    full.play(
        """talk = Talk("s1"); [talk.say(f"What about matter {n}?") for n in range(3)]; talk.end()"""
    )

    assert len(views(full.server.chats()[-1])) == 3
