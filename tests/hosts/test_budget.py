"""What a session is shown of the memory over many turns, in characters of real requests."""

import re

import pytest
from model_server import memory_blocks

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

BUDGET = 4_000
HOST_FRAME_CHARS = 224
"""What the host puts around each block."""


def shown(body):
    """Characters of memory in one request, without the host's frame."""
    return sum(len(block) for block in memory_blocks(body))


def views(body):
    """The blocks of a request that hold a whole view: their lines begin at message 0."""
    return [block for block in memory_blocks(body) if re.search(r"^0\+\d+\|", block, re.MULTILINE)]


@pytest.fixture
def full(home):
    """A memory with more in it than the view can show."""
    home.settings(view_budget_chars=BUDGET, focus_chars=1_000)
    return home.seed(*((("user", "talk")[n % 2], f"message {n} of the past: " + f"word{n} " * 12) for n in range(300)))


def test_twenty_turns_of_a_session_carry_one_view(full):
    full.play("""talk = Talk("s1"); [talk.say(f"What about matter {n}?") for n in range(20)]; talk.end()""")

    first, last = full.server.chats()[0], full.server.chats()[-1]
    assert len(last["messages"]) > 38
    assert len(views(first)) == len(views(last)) == 1
    assert shown(first) > BUDGET / 2
    assert shown(last) <= 1.3 * BUDGET + HOST_FRAME_CHARS * len(memory_blocks(last))


def test_so_do_six_turns_in_a_process_each(full):
    for number in range(6):
        full.hermes("chat", "-Q", *(["--continue"] if number else []), "-q", f"What about matter {number}?")

    last = full.server.chats()[-1]
    assert len(last["messages"]) > 10
    assert len(views(last)) == 1


def test_after_a_compression_the_next_turn_has_one_current_view(full):
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
    assert views({"messages": last["messages"][-1:]}), "the view stands in the newest message"


def test_after_an_undo_the_next_turn_has_one_current_view(full):
    full.play("""talk = Talk("s1"); talk.say("one"); talk.undo(); talk.say("two things then"); talk.end()""")

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

    full.play("""talk = Talk("s1"); [talk.say(f"What about matter {n}?") for n in range(3)]; talk.end()""")

    assert len(views(full.server.chats()[-1])) == 3
