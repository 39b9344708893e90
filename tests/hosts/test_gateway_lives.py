"""Lives in both hosts' own gateway, with branches and compressions as its code does them."""

import pytest
from terminal import QUIET
from test_terminal import tool

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

LONG = "@@more 3000@@"


def said(*lines):
    """A scenario in which one person sends these messages."""
    return f"""
        from messenger import Messenger
        chat = Messenger()
        replies = [chat.say(line) for line in {lines!r}]
        chat.end()
        out["said"], out["replies"] = chat.said, replies
    """


def test_a_branch(life):
    life.play(said("one", f"two {tool('tern')}", "/branch", "three", "two"))
    life.check()


def test_a_branch_of_a_branch_in_another_process(life):
    life.play(said("one", "two", "/branch"))
    life.play(said("three", "/branch", "four"))
    life.check()


def test_a_rotation_by_a_throw_away_compressor(life):
    life.home.configure(**QUIET, compression={"in_place": False})
    life.play(
        said(
            *(f"turn {number} {LONG}" for number in range(8)),
            "/compress",
            "after it",
            "/branch",
            "and then",
        )
    )
    life.check()


def test_a_compression_in_place_then_new(life):
    life.play(
        said(
            *(f"turn {number} {LONG}" for number in range(8)),
            "/compress",
            "after it",
            "/new",
            "after it",
        )
    )
    life.check()


def test_undo_then_the_same_words_then_a_branch(life):
    life.play(said("one", "two", "/undo", "two", "/branch", "two"))
    life.check()


def test_the_same_words_in_two_chats_of_one_gateway(life):
    life.play(
        """
        from messenger import Messenger
        chat = Messenger()
        for words in ("hello", "ok", "ok"):
            chat.say(words, "c1")
            chat.say(words, "c2")
        chat.end()
        out["said"] = chat.said
        """
    )
    life.check(apart=True)
