"""Lives lived in both hosts' own chat program, in a terminal: the log holds what was really said, once, in order, in its session."""

import pytest
from life import Life
from terminal import QUIET

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


@pytest.fixture
def life(home):
    home.configure(**QUIET)
    return Life(home)


def tool(word):
    return f'@@call terminal {{"command": "echo {word}"}}@@'


# Sessions


def test_plain_turns_and_a_tool(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.say("three")
        chat.exit()
    life.check()


def test_new_then_exit(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two")
        chat.new()
        chat.exit()
    life.check()


def test_clear_then_exit(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.clear()
        chat.close()
    life.check()


def test_a_turn_of_a_new_session_then_back_to_the_first_then_exit(life):
    with life.start() as chat:
        chat.say("one")
        first = chat.session
        chat.new()
        chat.say("two")
        chat.resume(first)
        chat.exit()
    life.check()


def test_a_branch_then_a_turn(life):
    with life.start() as chat:
        chat.say("one")
        chat.branch()
        chat.say("two")
        chat.exit()
    life.check()


def test_a_branch_as_the_first_act_after_continue(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two")
        chat.exit()
    with life.start("--continue") as chat:
        chat.branch()
        chat.say("three")
        chat.exit()
    life.check()


def test_interrupted_in_a_tool_then_other_words(life):
    gate = life.gate("first")
    with life.start() as chat:
        chat.say("one")
        chat.begin(f"run it {gate.order}")
        chat.until_file(gate.reached)
        chat.interrupt()
        chat.say("two")
        chat.exit()
    life.check()


def test_undo_then_killed_then_continue(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.undo()
        chat.begin("three @@hold never@@")
        chat.until_held("never")
        chat.kill()
    with life.start("--continue") as chat:
        chat.say("four")
        chat.exit()
    life.check()
