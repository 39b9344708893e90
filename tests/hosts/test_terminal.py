"""Lives lived in both hosts' own chat program, in a terminal.

The log holds what was really said, once, in order, in its session.
"""

import pytest

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


def tool(word):
    return f'@@call terminal {{"command": "echo {word}"}}@@'


def test_plain_turns_and_a_tool(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.say("three")
        chat.exit()
    life.check()


# Sessions: the list at the end may be another one's


def test_new_then_exit(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two")
        chat.new()
        chat.exit()
    life.check()


def test_clear_then_the_end_of_input(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.clear()
        chat.close()
    life.check()


def test_new_then_back_to_the_first_then_exit(life):
    with life.start() as chat:
        chat.say("one")
        first = chat.session
        chat.new()
        chat.say("two")
        chat.resume(first)
        chat.exit()
    life.check()


def test_to_and_fro_between_two_sessions_then_killed(life):
    with life.start() as chat:
        chat.say("one")
        first = chat.session
        chat.new()
        chat.say(f"two {tool('tern')}")
        second = chat.session
        chat.resume(first)
        chat.say("three")
        chat.resume(second)
        chat.say("four")
        chat.until_logged("Answer to: four")
        chat.kill()
    with life.start("--resume", first) as chat:
        chat.say("five")
        chat.exit()
    life.check()


def test_new_twice_then_a_turn_then_new_then_exit(life):
    with life.start() as chat:
        chat.say("one")
        chat.new()
        chat.new()
        chat.say("two")
        chat.new()
        chat.exit()
    life.check()


# Branches


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


def test_a_branch_then_undo_then_killed_then_resumed(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.branch()
        chat.undo("two")
        chat.begin("three @@hold never@@")
        chat.until_held("never")
        chat.kill()
    with life.start("--resume", chat.session) as chat:
        chat.say("four")
        chat.exit()
    life.check()


def test_two_branches_of_one_session(life):
    with life.start() as chat:
        chat.say("one")
        first = chat.session
        chat.branch()
        chat.say("two")
        chat.resume(first)
        chat.branch()
        chat.say("three")
        chat.exit()
    life.check()


def test_a_branch_of_a_branch_then_new_then_back(life):
    with life.start() as chat:
        chat.say("one")
        chat.branch()
        chat.branch()
        chat.say("two")
        third = chat.session
        chat.new()
        chat.resume(third)
        chat.say("three")
        chat.exit()
    life.check()


def test_the_words_of_a_branch_said_again_in_its_parent(life):
    with life.start() as chat:
        chat.say("one")
        first = chat.session
        chat.branch()
        chat.say(f"two {tool('tern')}")
        chat.exit()
    with life.start("--resume", first) as chat:
        chat.say(f"two {tool('tern')}")
        chat.exit()
    life.check()


# Taken back and said again


def test_undo_then_the_same_words(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two")
        chat.undo("two")
        chat.say("two")
        chat.exit()
    life.check()


def test_two_turns_undone_at_once_then_the_same_words(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.undo("one", turns="2")
        chat.say("one")
        chat.say("three")
        chat.exit()
    life.check()


def test_undo_then_killed_before_the_log_has_it_then_continue(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two")
        chat.undo("two")
        with life.frozen():
            chat.begin(f"three {tool('tern')} @@say All is well.@@")
            chat.until_row("All is well.")
            chat.kill()
    with life.start("--continue") as chat:
        chat.say("four")
        chat.exit()
    life.check()


def test_an_empty_answer_then_undo_then_a_turn(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two @@silent@@")
        chat.undo("two")
        chat.say("three")
        chat.say("four")
        chat.exit()
    life.check()


def test_retry_twice(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.retry(f"two {tool('tern')}")
        chat.retry(f"two {tool('tern')}")
        chat.say("three")
        chat.exit()
    life.check()


def test_retry_then_undo_then_a_branch(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two")
        chat.retry("two")
        chat.undo("two")
        chat.branch()
        chat.say("three")
        chat.exit()
    life.check()


def test_undo_then_retry_of_what_is_left_then_new(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("two")
        chat.undo("two")
        chat.retry("one")
        chat.new()
        chat.exit()
    life.check()


# Compressed


def turns(chat, first, last):
    for number in range(first, last):
        chat.say(f"turn {number} @@more 3000@@")


def test_compress_then_a_branch_then_exit(life):
    with life.start() as chat:
        turns(chat, 0, 8)
        chat.compress()
        chat.branch()
        chat.say("after it")
        chat.exit()
    life.check()


def test_compress_on_a_topic_then_undo_then_killed_then_continue(life):
    with life.start() as chat:
        turns(chat, 0, 8)
        chat.compress("boats")
        chat.undo("turn 7")
        chat.say("turn 7 @@more 3000@@")
        chat.until_logged("Answer to: turn 7", 2)
        chat.kill()
    with life.start("--continue") as chat:
        chat.say("after it")
        chat.exit()
    life.check()


def test_compress_then_new_then_back_then_retry(life):
    with life.start() as chat:
        turns(chat, 0, 8)
        first = chat.session
        chat.compress()
        chat.new()
        chat.resume(first)
        chat.retry("turn 7 @@more 3000@@")
        chat.exit()
    life.check()


# Said again, so logged again


def test_the_same_words_after_new_and_after_clear(life):
    with life.start() as chat:
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.new()
        chat.say("one")
        chat.say(f"two {tool('tern')}")
        chat.clear()
        chat.say("one")
        chat.exit()
    life.check()


def test_the_same_words_in_a_branch(life):
    with life.start() as chat:
        chat.say("one")
        chat.say("ok")
        chat.branch()
        chat.say("ok")
        chat.say("ok")
        chat.exit()
    life.check()


def test_the_same_words_by_two_programs_at_once(life):
    with life.start() as ann, life.start() as bob:
        ann.say("I am Ann")
        bob.say("I am Bob")
        for words in ("ok", f"run it {tool('tern')}", "ok"):
            ann.say(words)
            bob.say(words)
        ann.new()
        ann.say("ok")
        bob.exit()
        ann.exit()
    life.check(apart=True)
