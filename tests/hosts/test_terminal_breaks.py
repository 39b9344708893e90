"""Lives in a terminal that break: interrupts, deaths, words into a turn, work handed over."""

import pytest
from test_terminal import tool

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

# Interrupted


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


def test_interrupted_in_an_answer_then_retry_then_exit(life):
    with life.start() as chat:
        chat.say("one")
        chat.begin("tell me @@halt there@@@@say A long story of a boat that was called Tern.@@")
        chat.until_held("there")
        chat.interrupt()
        life.server.release("there")
        chat.retry("tell me @@halt there@@@@say A long story of a boat that was called Tern.@@")
        chat.exit()
    life.check()


def test_an_interrupted_request_that_is_sent_again(life):
    again = f"run tests @@hold there@@{tool('passed')}@@say All passed.@@"
    with life.start() as chat:
        chat.say("set it up @@say Done.@@")
        chat.begin(again)
        chat.until_held("there")
        chat.interrupt()
        life.server.release("there")
        chat.say("save first @@say Done.@@")
        chat.say(again)
        chat.exit()
    life.check()


def test_interrupted_twice_with_the_same_words(life):
    again = f"go on @@hold there@@{tool('tern')}"
    with life.start() as chat:
        chat.begin(again)
        chat.until_held("there")
        chat.interrupt()
        chat.say("wait")
        before = len(life.server.chats())
        chat.begin(again)
        chat.until(lambda: len(life.server.chats()) > before, "asking again")
        chat.interrupt()
        life.server.release("there")
        chat.say(again)
        chat.exit()
    life.check()


def test_interrupted_then_new_then_back_then_a_turn(life):
    gate = life.gate("first")
    with life.start() as chat:
        chat.say("one")
        first = chat.session
        chat.begin(f"run it {gate.order}")
        chat.until_file(gate.reached)
        chat.interrupt()
        chat.new()
        chat.resume(first)
        chat.say("two")
        chat.exit()
    life.check()


def test_interrupted_then_undo_then_other_words(life):
    with life.start() as chat:
        chat.say("one")
        chat.begin("Thanks a lot @@hold there@@")
        chat.until_held("there")
        chat.interrupt()
        chat.say(f"fix it {tool('tern')}")
        chat.undo("fix it")
        chat.say("three")
        chat.exit()
    life.check()


def test_interrupted_then_killed_then_continue_with_the_same_words(life):
    again = f"run it @@hold there@@{tool('tern')}"
    with life.start() as chat:
        chat.say("one")
        chat.begin(again)
        chat.until_held("there")
        chat.interrupt()
        chat.kill()
    life.server.release("there")
    with life.start("--continue") as chat:
        chat.say(again)
        chat.exit()
    life.check()


# Words into the middle of a turn


def test_a_message_typed_while_the_model_is_asked(life):
    with life.start() as chat:
        chat.say("one")
        chat.begin("two @@hold there@@")
        chat.until_held("there")
        chat.interrupt_with("no, three")
        life.server.release("there")
        chat.say("four")
        chat.exit()
    life.check()


def test_a_message_typed_in_the_middle_of_an_answer_then_new(life):
    with life.start() as chat:
        chat.say("one")
        chat.begin("tell me @@halt there@@@@say A long story of a boat that was called Tern.@@")
        chat.until_held("there")
        chat.interrupt_with("no, three")
        chat.new()
        chat.exit()
    life.check()
    assert [words for _, words in life.home.said()].count("A long story of") == 1


def test_a_message_typed_in_a_tool_then_clear_then_the_same_words(life):
    gate = life.gate("first")
    with life.start() as chat:
        chat.say("one")
        chat.begin(f"run it {gate.order}")
        chat.until_file(gate.reached)
        chat.interrupt_with("no, two")
        chat.clear()
        chat.say("no, two")
        chat.exit()
    life.check()


def test_a_steer_in_a_tool_then_undo_then_a_turn(life):
    gate = life.gate("first")
    with life.start() as chat:
        chat.say("one")
        chat.begin(f"run it {gate.order}")
        chat.until_file(gate.reached)
        chat.steer("mind the wind")
        gate.open()
        chat.idle()
        chat.say("two")
        chat.undo("two")
        chat.say("three")
        chat.exit()
    life.check()


def test_two_messages_queued_in_a_tool_then_new_then_exit(life):
    gate = life.gate("first")
    with life.start() as chat:
        chat.begin(f"run it {gate.order}")
        chat.until_file(gate.reached)
        chat.queue("two")
        chat.queue("three")
        gate.open()
        chat.idle()
        chat.new()
        chat.exit()
    life.check()


# Deaths


def test_killed_before_the_answer_then_looked_at_then_continue(life):
    with life.start() as chat:
        chat.say("one")
        chat.begin("two @@hold there@@")
        chat.until_held("there")
        chat.kill()
    with life.start("--continue") as chat:
        chat.exit()
    with life.start("--continue") as chat:
        chat.say("three")
        chat.exit()
    life.check()


def test_killed_before_the_answer_twice_then_continue(life):
    with life.start() as chat:
        chat.say("one")
        chat.begin("two @@hold there@@")
        chat.until_held("there")
        chat.kill()
    with life.start("--continue") as chat:
        chat.begin("three @@hold here@@")
        chat.until_held("here")
        chat.kill()
    with life.start("--continue") as chat:
        chat.say("four")
        chat.exit()
    life.check()


def test_killed_in_a_tool_then_resumed_with_the_same_words(life):
    gate = life.gate("first")
    again = f"run it {gate.order}"
    with life.start() as chat:
        chat.say("one")
        first = chat.session
        chat.begin(again)
        chat.until_file(gate.reached)
        chat.kill()
    gate.reached.unlink()
    with life.start("--resume", first) as chat:
        chat.begin(again)
        chat.until_file(gate.reached)
        gate.open()
        chat.idle()
        chat.exit()
    life.check()


def test_killed_before_the_log_has_the_answer_then_continue_then_new(life):
    with life.start() as chat:
        chat.say("one")
        with life.frozen():
            chat.begin(f"two {tool('tern')} @@say All is well.@@")
            chat.until_row("All is well.")
            chat.kill()
    with life.start("--continue") as chat:
        chat.say("three")
        chat.new()
        chat.say("four")
        chat.exit()
    life.check()


def test_the_window_closed_in_a_turn_then_continue(life):
    with life.start() as chat:
        chat.say("one")
        chat.begin("two @@hold there@@")
        chat.until_held("there")
        chat.hang_up()
    with life.start("--continue") as chat:
        chat.say("three")
        chat.exit()
    life.check()


# Handed over


HAND_OVER = 'hand it over @@call delegate_task {"goal": "count the islands", "context": "none"}@@'


def test_delegated_work_then_new_then_exit(life):
    life.server.held["count the islands"] = "child"
    with life.start() as chat:
        chat.say("one")
        chat.say(HAND_OVER)
        life.server.release("child")
        chat.until_asked("[ASYNC DELEGATION")
        chat.idle()
        chat.new()
        chat.exit()
    life.check()


def test_work_that_is_reported_after_new(life):
    life.server.held["count the islands"] = "child"
    with life.start() as chat:
        chat.say("one")
        chat.say(HAND_OVER)
        chat.new()
        life.server.release("child")
        chat.until_row("Answer to: count the islands")
        # A host tells of a report some time after the child has answered.
        chat.until_noted("Answer to: count the islands")
        chat.say("two")
        chat.exit()
    life.check()
