"""What a question brings out of a long memory, in the requests of both hosts."""

import re

import pytest
from model_server import memory_blocks

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

BUDGET = 4_000
NAMES = [f"Quorvex{chr(97 + k)}{chr(107 + k)}" for k in range(20)]


@pytest.fixture
def full(home):
    """A memory far longer than its view, in which each of twenty names is spoken once."""
    home.settings(view_budget_chars=BUDGET, focus_chars=1_000, search_tool=True)
    said = []
    for name in NAMES:
        said += [
            (
                ("user", "talk")[n % 2],
                f"matter {len(said) + n}: " + f"word{(len(said) + n) * 7} " * 12,
            )
            for n in range(20)
        ]
        said.append(("user", f"{name} is the word for what is kept in the cellar."))
    return home.seed(
        *said,
        *((("user", "talk")[n % 2], f"later matter {n}: " + f"term{n} " * 12) for n in range(200)),
    )


def shown(body):
    """Characters of memory in one request, with what the host puts around each block."""
    return sum(len(block) for block in memory_blocks(body))


def test_a_question_brings_its_message_into_the_first_request(full):
    full.play(
        """talk = Talk("s1"); talk.say("What is kept under the name Quorvexcm?"); talk.end()"""
    )

    (block,) = memory_blocks(full.server.chats()[-1])
    assert re.search(
        r"^  62\+1\|user: Quorvexcm is the word for what is kept in the cellar\.$",
        block,
        re.MULTILINE,
    )
    assert len(block) <= BUDGET + 300


def test_twenty_turns_that_each_point_somewhere_stay_within_their_limit(full):
    full.play(
        f"""talk = Talk("s1"); [talk.say(f"What does {{name}} mean?") for name in {NAMES!r}]; talk.end()"""
    )

    first, last = full.server.chats()[0], full.server.chats()[-1]
    assert len(last["messages"]) > 38
    assert shown(first) > BUDGET / 2
    assert shown(last) <= 1.3 * BUDGET
    later = memory_blocks(last)[1:]
    assert later, "as long as there is room, later questions bring their messages too"
    for name in NAMES[1 : 1 + len(later)]:
        assert sum(f"{name} is the word" in block for block in memory_blocks(last)) == 1


def test_the_model_may_search_where_that_is_set(full):
    full.play(
        """talk = Talk("s1"); talk.say('look @@call optchat_search {"query": "Quorvexhr cellar"}@@'); talk.end()"""
    )

    answers = [
        message["content"]
        for message in full.server.chats()[-1]["messages"]
        if message["role"] == "tool"
    ]
    assert "167+1|user: Quorvexhr is the word" in str(answers)
