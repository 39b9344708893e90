"""What a full disk, a held lock and sessions with the same words leave of a conversation.

All of it, once, in its session.
"""

from __future__ import annotations

import errno
from datetime import datetime
from uuid import uuid4

import pytest
from faults import disk
from hostrows import batch

from optchat.base.errors import OptchatError
from optchat.capture.capture import Capture
from optchat.memory import Memory


class Agent:
    """An agent of a host: it keeps its list, and tells capture what hosts tell.

    ``ids``: its rows have ids.
    """

    def __init__(self, memory, session, *, ids):
        self.ids, self.live = ids, []
        self.capture = Capture(memory.capture_store(), session=session)
        self.capture.initialized()

    def row(self, role, content, **more):
        named = (
            {"message_uid": uuid4().hex, "timestamp": datetime.now().timestamp()}
            if self.ids
            else {}
        )
        self.live = [*self.live, {"role": role, "content": content} | named | more]

    def asks(self, text):
        self.row("user", text)
        self.tells(
            lambda: self.capture.turn_started(text, length=len(self.live), last=self.live[-1])
        )

    def calls(self, name, arguments, result):
        call = {
            "id": uuid4().hex[:8],
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        self.row("assistant", "", tool_calls=[call])
        self.row("tool", result, tool_name=name, tool_call_id=call["id"])

    def answers(self, text):
        asked = next(row["content"] for row in reversed(self.live) if row["role"] == "user")
        self.row("assistant", text)
        self.tells(lambda: self.capture.turn_ended(self.live, asked))

    def turn(self, question, answer):
        self.asks(question)
        self.answers(answer)

    def goes_to(self, session, *, ends=True, **how):
        if ends:
            self.tells(lambda: self.capture.ended(self.live))
        self.tells(
            lambda: self.capture.switched(
                session, **how or {"reset": True, "reason": "new_session"}
            )
        )
        if not how:
            self.live = []

    def exits(self, shown=None):
        self.tells(lambda: self.capture.ended(self.live if shown is None else shown))
        self.tells(self.capture.shutdown)

    def tells(self, act):
        """As the host does: what goes wrong in a hook is not its concern."""
        try:
            act()
        except OptchatError:
            return


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "memory", compact=False) as opened:
        yield opened


@pytest.fixture(params=[False, True], ids=["by place", "by ids"])
def agent(request, memory):
    return lambda session="s1": Agent(memory, session, ids=request.param)


def said(memory, session):
    return [entry.text for entry in memory.session_entries(session)]


def while_the_disk_is_full(act):
    with disk(at=0, how=lambda: OSError(errno.ENOSPC, "full"), for_ever=True):
        act()


def while_the_lock_is_held(memory, monkeypatch, act):
    monkeypatch.setattr("optchat.log.session_notes.LOCK_WAIT_S", 0.05)
    with Memory.open(memory.root, compact=False) as other, other.store.locked():
        act()


def test_words_common_to_two_sessions_make_neither_a_copy(memory, agent):
    first = agent()
    first.turn("paint the fence", "painted")
    first.turn("ok", "great")
    first.exits()

    second = agent("s2")
    for role, text in (
        ("user", "fix the bug"),
        ("assistant", "fixed"),
        ("user", "ok"),
        ("assistant", "great"),
    ):
        second.row(role, text)
    second.turn("and now?", "more")

    assert said(memory, "s2") == ["fix the bug", "fixed", "ok", "great", "and now?", "more"]


def test_the_old_list_at_exit_is_known_after_many_empty_sessions(memory, agent):
    one = agent()
    one.turn("one", "done")
    old = one.live
    for number in range(2, 11):
        one.goes_to(f"s{number}")

    one.exits(old)

    assert said(memory, "s1") == ["one", "done"]
    assert said(memory, "s10") == []


@pytest.mark.parametrize(
    "leave",
    [lambda one: one.goes_to("s2", ends=False), lambda one: one.capture.shutdown()],
    ids=["new", "exit"],
)
def test_an_answer_kept_aside_outlives_its_session(memory, agent, monkeypatch, leave):
    one = agent()
    one.turn("go", "sent")
    one.asks("two")
    while_the_lock_is_held(memory, monkeypatch, lambda: one.answers("done"))

    leave(one)

    assert said(memory, "s1") == ["go", "sent", "two", "done"]


def test_a_switch_is_followed_though_the_disk_is_full(memory, agent):
    one = agent()
    one.turn("one", "done")
    one.asks("cut")
    while_the_disk_is_full(lambda: one.goes_to("s2"))

    one.turn("two", "said")

    assert said(memory, "s1") == ["one", "done", "cut"]
    assert said(memory, "s2") == ["two", "said"]


def test_a_branch_is_noted_once_the_disk_has_room(memory, agent):
    one = agent()
    one.turn("one", "done")
    while_the_disk_is_full(lambda: one.goes_to("s2", parent="s1", reason="branch"))

    one.turn("two", "said")

    assert said(memory, "s1") == ["one", "done"]
    assert said(memory, "s2") == ["two", "said"]


def test_a_turn_the_disk_did_not_take_is_no_other_session_s(memory, agent):
    one = agent()
    one.turn("ok", "great")
    one.goes_to("s2")
    while_the_disk_is_full(lambda: one.asks("ok"))
    one.answers("great")
    one.turn("more", "said")

    assert said(memory, "s1") == ["ok", "great"]
    assert said(memory, "s2") == ["ok", "great", "more", "said"]


def test_a_short_report_is_not_found_in_another_one(memory, agent):
    one = agent()
    one.turn("go", "sent")
    one.capture.delegated("look", "books fine, took 3 s")
    one.capture.delegated("fix the printer", "ok")
    one.turn(batch(1, [("look", "books fine, took 3 s")]), "good")
    one.exits()

    texts = said(memory, "s1")
    assert "fix the printer\n\nok" in texts
    assert "look\n\nbooks fine, took 3 s" not in texts


def test_a_short_report_stands_behind_its_own_call(memory, agent):
    one = agent()
    one.asks("work")
    one.calls("terminal", "{}", "took 3 s, look: ok")
    one.capture.delegated("paint the door", "ok")
    one.calls("delegate_task", '{"goal":"paint the door"}', '{"summary":"ok"}')
    one.answers("done")

    texts = said(memory, "s1")
    assert texts.index("paint the door\n\nok") == texts.index('{"summary":"ok"}') + 1
