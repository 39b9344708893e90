"""What the model is shown of the memory, and how it looks closer, in real turns of both hosts."""

import json

import pytest
from model_server import memory_blocks, plain

pytestmark = pytest.mark.hosts

PAST = [
    ("user", "My daughter Ida was born in Bergen."),
    ("talk", "Noted: Ida, born in Bergen."),
    ("user", "The fjord boat leaves at 7:40."),
]


def test_the_model_gets_the_view_the_tools_and_how_to_use_them(home):
    home.seed(*PAST)

    home.play(
        """talk = Talk("s1"); out["answer"] = talk.say("Where was my daughter born?"); talk.end()"""
    )

    body = home.server.chats()[0]
    system = plain(body["messages"][0]["content"])
    assert "# Long-term memory (optchat)" in system
    (block,) = memory_blocks(body)
    assert "0+1|user: My daughter Ida was born in Bergen." in block
    assert block.index("<chat>") < block.index("0+1|") < block.index("</chat>")
    assert {tool["function"]["name"] for tool in body["tools"]} >= {"optchat_zoom", "optchat_date"}


def test_the_model_zooms_and_asks_for_a_date(home):
    home.seed(*PAST)

    home.play(
        """
        talk = Talk("s1")
        talk.say('look @@call optchat_zoom {"id": 0, "n": 2}@@ @@call optchat_zoom {"id": "2+1"}@@ @@call optchat_date {"id": 1}@@')
        talk.end()
        """
    )

    results = [
        json.loads(message["content"])
        for message in home.server.chats()[-1]["messages"]
        if message["role"] == "tool"
    ]
    assert results[0]["text"].splitlines()[0].startswith("0+1|user: My daughter Ida")
    assert "The fjord boat leaves at 7:40." in results[1]["text"]
    assert results[2]["text"].startswith("1: 2")


def test_a_wrong_address_is_answered_with_the_right_call(home):
    home.seed(*PAST)

    home.play(
        """talk = Talk("s1"); talk.say('look @@call optchat_zoom {"id": 1, "n": 2}@@ @@call optchat_zoom {}@@'); talk.end()"""
    )

    results = [
        json.loads(message["content"])
        for message in home.server.chats()[-1]["messages"]
        if message["role"] == "tool"
    ]
    assert "0+2" in results[0]["instead"]
    assert "optchat_zoom(id=12, n=4)" in results[1]["instead"]


def test_a_host_that_tells_what_was_recalled_is_told_how_many_lines(home):
    home.seed(*PAST)

    found = home.play(
        """
        import agent.memory_provider as module
        talk = Talk("s1")
        talk.say("Where was my daughter born?")
        status = talk.provider.recall_status()
        out["known"], out["count"] = hasattr(module, "RecallStatus"), status and status.count
        talk.end()
        """
    )

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
