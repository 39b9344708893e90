"""What the model is shown of the memory, and how it looks closer, in real turns of both hosts."""

import json

import pytest
from homes import Home
from model_server import ModelServer, memory_blocks, plain

pytestmark = pytest.mark.hosts

PAST = [
    ("user", "My daughter Ida was born in Bergen."),
    ("talk", "Noted: Ida, born in Bergen."),
    ("user", "The fjord boat leaves at 7:40."),
]


LOOKS = """
import agent.memory_provider as module
talk = Talk("s1")
talk.say("Where was my daughter born?")
status = talk.provider.recall_status()
out["known"], out["count"] = hasattr(module, "RecallStatus"), status and status.count
talk.say('look @@call optchat_zoom {"id": 0, "n": 2}@@ @@call optchat_zoom {"id": "2+1"}@@ @@call optchat_date {"id": 1}@@')
talk.say('look @@call optchat_zoom {"id": 1, "n": 2}@@ @@call optchat_zoom {}@@')
talk.end()
"""


@pytest.fixture(scope="module")
def looked(host, tmp_path_factory):
    """A home whose model was asked, looked closer, and looked in vain; what the host tells."""
    with ModelServer() as server:
        home = Home(host, tmp_path_factory.mktemp("looked") / "home", server).install()
        home.seed(*PAST)
        return home, home.play(LOOKS)


def results(home):
    """What our tools returned, oldest first."""
    return [
        json.loads(message["content"])
        for message in home.server.chats()[-1]["messages"]
        if message["role"] == "tool"
    ]


def test_the_model_gets_the_view_the_tools_and_how_to_use_them(looked):
    home, _ = looked

    body = home.server.chats()[0]
    system = plain(body["messages"][0]["content"])
    assert "# Long-term memory (optchat)" in system
    (block,) = memory_blocks(body)
    assert "0+1|user: My daughter Ida was born in Bergen." in block
    assert block.index("<chat>") < block.index("0+1|") < block.index("</chat>")
    assert {tool["function"]["name"] for tool in body["tools"]} >= {"optchat_zoom", "optchat_date"}


def test_the_model_zooms_and_asks_for_a_date(looked):
    two, one, date, *_ = results(looked[0])

    assert two["text"].splitlines()[0].startswith("0+1|user: My daughter Ida")
    assert "The fjord boat leaves at 7:40." in one["text"]
    assert date["text"].startswith("1: 2")


def test_a_wrong_address_is_answered_with_the_right_call(looked):
    *_, wrong, none = results(looked[0])

    assert "0+2" in wrong["instead"]
    assert "optchat_zoom(id=12, n=4)" in none["instead"]


def test_a_host_that_tells_what_was_recalled_is_told_how_many_lines(looked):
    home, found = looked

    assert found["known"] == (home.host.name == "b")
    assert found["count"] == (len(PAST) if found["known"] else None)


@pytest.mark.parametrize("mode", ["context", "tools"])
def test_the_mode_decides_between_view_and_tools(home, mode):
    home.seed(*PAST).settings(memory_mode=mode)

    home.play("""talk = Talk("s1"); talk.say("Where was my daughter born?"); talk.end()""")

    body = home.server.chats()[0]
    offered = {tool["function"]["name"] for tool in body["tools"]}
    assert bool(memory_blocks(body)) == (mode == "context")
    assert ("optchat_zoom" in offered) == (mode == "tools")
    assert ("optchat_zoom" in plain(body["messages"][0]["content"])) == (mode == "tools")


def test_a_platform_that_is_switched_off_gets_nothing(home):
    home.seed(*PAST).settings(platforms_off=["Telegram"])

    home.play(
        """talk = Talk("s1", platform="telegram", user_id="u", chat_id="c"); talk.say("Where was my daughter born?"); talk.end()"""
    )

    body = home.server.chats()[0]
    assert memory_blocks(body) == []
    assert "optchat" not in json.dumps(body)
    assert [text for _, text in home.said()] == [text for _, text in PAST]
