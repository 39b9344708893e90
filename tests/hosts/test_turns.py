"""What is in the log after lives lived in both hosts.

Each real message once, in order, none missing, none doubled.
"""

import concurrent.futures
import json
import os
import re

import pytest
from homes import Home
from model_server import ModelServer, memory_blocks, plain

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

SHOTS = int(os.environ.get("OPTCHAT_ONE_SHOTS", "10"))
"""How many one-shot programs are run and looked after.

Read before the tests' own environment is cleared of such names.
"""

LETTERS = {"user": "u", "talk": "a", "tool": "c", "echo": "t", "work": "w", "note": "n"}


def shape(home):
    """The kinds of all messages in their order.

    U user, a answer, c call, t result, w work, n note.
    """
    return "".join(LETTERS[kind] for kind, _ in home.said())


def words(home):
    """What was said by user and agent, in order."""
    return [text for kind, text in home.said() if kind in ("user", "talk")]


def pair(text):
    """A question and the answer the model on loopback gives to it."""
    return [text, f"Answer to: {text}"]


class Sessions:
    """Some sessions of a home's log: what can be asked of a whole home, asked of them."""

    def __init__(self, home, *names):
        self.home, self.names = home, names

    def messages(self):
        return [one for one in self.home.messages() if one["session"] in self.names]

    def said(self):
        return [(message["kind"], message["text"]) for message in self.messages()]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TRIVIAL = ["hi", "ok", "ok", "thanks!", "yes do it", "k", "ok"]

EACH_BY_ITSELF = f"""
talk = Talk("tool")
talk.say('run it @@call terminal {{"command": "echo tern-7"}}@@')
talk.say("and now?")
talk.end()

talk = Talk("parts")
talk.say([{{"type": "text", "text": "what is this"}}, {{"type": "image_url", "image_url": {{"url": "data:image/png;base64,{PIXEL}"}}}}])
talk.say("thanks for that")
talk.end()

talk = Talk("new-1")
talk.say("one before new"); talk.new("new-2"); talk.say("two after new"); talk.say("three after new")
talk.end()

talk = Talk("before")
talk.say("first before it")
talk.say("never mind this @@wait 4@@", interrupt_after=0.7)
talk.say("third after it")
talk.end()

talk = Talk("middle")
talk.say("first by the middle")
talk.say("slowly @@drip 0.5@@@@say one two three four five six seven eight nine ten@@", interrupt_after=1.5)
talk.say("third by the middle")
talk.end()

talk = Talk("error")
talk.say("first to fail"); talk.say("bad @@fail 400@@"); talk.say("third to fail")
talk.end()

talk = Talk("empty")
talk.say("first to hush"); talk.say("hush @@silent@@"); talk.say("third to hush")
talk.end()

talk = Talk("last")
talk.say("first and last"); talk.say("lost? @@wait 4@@", interrupt_after=0.7)
talk.end()

talk = Talk("trivial")
[talk.say(text) for text in {TRIVIAL}]
talk.end()

talk = Talk("undone")
talk.say("one to keep"); talk.say("two to undo"); talk.undo(); talk.say("two to undo"); talk.say("three to keep")
talk.end()

talk = Talk("branch-1")
talk.say("one of the trunk"); talk.branch("branch-2"); talk.say("two of the branch"); talk.say("three of the branch")
talk.end()

old = Talk("evicted", platform="telegram", user_id="1", chat_id="c1")
old.say("one of the old")
old.agent.release_clients()
new = Talk("evicted", platform="telegram", resume=True, user_id="1", chat_id="c1")
new.say("two of the new")
old.end()
new.say("three of the new")
new.end()
"""
"""Talks that know nothing of each other, in one process: to start it takes longer than each."""


@pytest.fixture(scope="module")
def talked(host, tmp_path_factory):
    """The home of a program that has held all those talks; asked for its sessions by name."""
    with ModelServer() as server:
        home = Home(host, tmp_path_factory.mktemp("talked") / "home", server).install()
        home.play(EACH_BY_ITSELF)
    return lambda *names: Sessions(home, *names)


def test_a_tool_turn_is_logged_call_by_call(talked):
    log = talked("tool")

    assert shape(log) == "uctaua"
    _, call, result, *_ = log.messages()
    assert call["tool"] == "terminal"
    assert "echo tern-7" in call["text"]
    assert "tern-7" in result["text"]
    assert call["call"] == result["call"]


def test_a_message_in_parts_is_logged_with_its_texts_and_a_mark_for_the_image(talked):
    log = talked("parts")

    assert shape(log) == "uaua"
    first = log.messages()[0]["text"]
    assert first.startswith("what is this")
    assert "sha256" in first
    assert PIXEL not in json.dumps(log.said())
    assert "memory-context" not in json.dumps(log.said())


def test_new_begins_another_session_and_loses_nothing(talked):
    log = talked("new-1", "new-2")

    assert words(log) == [*pair("one before new"), *pair("two after new"), *pair("three after new")]
    assert [message["session"] for message in log.messages()] == ["new-1"] * 2 + ["new-2"] * 4


def test_a_turn_interrupted_before_its_answer_keeps_what_the_user_said(talked):
    log = talked("before")

    assert shape(log) == "uauua"
    assert words(log) == [
        *pair("first before it"),
        "never mind this @@wait 4@@",
        *pair("third after it"),
    ]


def test_a_turn_interrupted_in_the_middle_of_its_answer(talked):
    log = talked("middle")

    said = log.said()
    users = [text for kind, text in said if kind == "user"]
    assert users[0::2] == ["first by the middle", "third by the middle"]
    assert sum(text.startswith("slowly") for _, text in said) == 1
    assert words(log)[-2:] == pair("third by the middle")
    assert not any("interrupted" in text.lower() for _, text in said)


def test_an_error_of_the_model_is_not_logged_as_speech(talked):
    log = talked("error")

    assert shape(log) == "uauua"
    assert words(log) == [*pair("first to fail"), "bad @@fail 400@@", *pair("third to fail")]


def test_an_empty_answer_is_no_answer(talked):
    log = talked("empty")

    assert shape(log) == "uauua"
    assert words(log) == [*pair("first to hush"), "hush @@silent@@", *pair("third to hush")]


def test_the_last_turn_is_kept_when_it_was_interrupted_and_nothing_follows(talked):
    assert words(talked("last")) == [*pair("first and last"), "lost? @@wait 4@@"]


def test_trivial_prompts_are_messages_like_any_other(talked):
    assert words(talked("trivial")) == [text for prompt in TRIVIAL for text in pair(prompt)]


def test_an_undone_turn_stays_in_the_log_with_a_note(talked):
    log = talked("undone")

    assert shape(log) == "uauanuaua"
    assert words(log) == [
        *pair("one to keep"),
        *pair("two to undo"),
        *pair("two to undo"),
        *pair("three to keep"),
    ]


def test_a_branch_goes_on_from_where_it_left(talked):
    log = talked("branch-1", "branch-2")

    assert words(log) == [
        *pair("one of the trunk"),
        *pair("two of the branch"),
        *pair("three of the branch"),
    ]
    assert [message["session"] for message in log.messages()] == ["branch-1"] * 2 + ["branch-2"] * 4


def test_an_evicted_agent_is_rebuilt_while_the_old_one_lives(talked):
    assert words(talked("evicted")) == [
        *pair("one of the old"),
        *pair("two of the new"),
        *pair("three of the new"),
    ]


def test_no_talk_left_anything_in_the_session_of_another(talked):
    """All that was logged is in the sessions that the tests above look at."""
    names = [
        "tool",
        "parts",
        "new-1",
        "new-2",
        "before",
        "middle",
        "error",
        "empty",
        "last",
        "trivial",
        "undone",
        "branch-1",
        "branch-2",
        "evicted",
    ]
    log = talked(*names)

    assert log.messages() == log.home.messages()


def test_plain_turns_are_remembered_in_the_next_session_of_another_process(home):
    home.play(
        """talk = Talk("s1"); talk.say("My boat is called Tern."); talk.say("She is blue."); talk.end()"""
    )
    home.play("""talk = Talk("s2"); talk.say("What is my boat called?"); talk.end()""")

    assert words(home) == [
        *pair("My boat is called Tern."),
        *pair("She is blue."),
        *pair("What is my boat called?"),
    ]
    (block,) = memory_blocks(home.server.chats()[-1])
    assert "0+1|user: My boat is called Tern." in block
    assert "3+1|talk: Answer to: She is blue." in block
    assert "What is my boat called?" not in block
    assert [message["session"] for message in home.messages()] == ["s1"] * 4 + ["s2"] * 2


def test_what_our_own_tools_answered_is_not_logged_a_second_time(home):
    home.seed(("user", "The harbour code is 4711."))

    home.play("""talk = Talk("s1"); talk.say('look @@call optchat_zoom {"id": 0}@@'); talk.end()""")

    assert shape(home) == "uucta"
    assert sum("4711" in text for _, text in home.said()) == 1


def test_a_session_taken_up_in_another_process_is_logged_on_not_again(home):
    home.play(
        """talk = Talk("s1"); talk.say("one"); talk.say('two @@call terminal {"command": "echo 2"}@@'); talk.end()"""
    )
    home.play(
        """talk = Talk("s1", resume=True); talk.say("three"); talk.say("three"); talk.end()"""
    )

    assert shape(home) == "ua" + "ucta" + "uaua"
    assert words(home)[-4:] == pair("three") * 2


def test_a_compression_changes_nothing_in_the_log(home):
    home.play(
        """
        talk = Talk("s1")
        for number in range(14):
            talk.say(f"turn {number} " + "lorem ipsum dolor " * 300)
        before = len(talk.messages)
        talk.compress()
        out["before"], out["after"] = before, len(talk.messages)
        talk.say("after it")
        talk.say("ok")
        talk.say("ok")
        talk.end()
        """
    )

    assert shape(home) == "ua" * 17
    assert [text.split(" lorem")[0] for text in words(home)[0:28:2]] == [
        f"turn {number}" for number in range(14)
    ]
    assert words(home)[-6:] == [*pair("after it"), *pair("ok"), *pair("ok")]
    asked = [
        plain(message["content"])
        for body in home.server.requests
        if not body.get("tools")
        for message in body["messages"]
    ]
    (summary,) = [text for text in asked if "optchat_zoom(id, n) opens it again" in text]
    # As lines of their own, or within a JSON string.
    assert re.search(r"(\n|\\n)\d+\+\d+\|", summary), (
        "the compressor was given no line of what is about to go"
    )


def test_a_compression_the_host_begins_by_itself_in_the_middle_of_a_turn(home):
    home.configure(model={"context_length": 66_000})

    out = home.play(
        """
        talk = Talk("s1")
        for number in range(14):
            talk.say(f"turn {number} " + "lorem ipsum dolor " * 1500)
        out["left"] = len(talk.messages)
        talk.say("ok")
        talk.end()
        """
    )

    assert out["left"] < 28, "the host has not compressed anything"
    assert shape(home) == "ua" * 15
    assert [text.split(" lorem")[0] for text in words(home)[0:28:2]] == [
        f"turn {number}" for number in range(14)
    ]


def test_what_the_hosts_memory_tool_writes_is_a_note(home):
    call = (
        '@@call memory {"action": "add", "target": "user", "content": "Sails a boat named Tern"}@@'
    )

    home.play(f"""talk = Talk("s1"); talk.say('remember {call}'); talk.end()""")

    assert sorted(shape(home)) == sorted("nucta")
    assert ("note", "added to the notes about the user: Sails a boat named Tern") in home.said()


def test_two_agents_in_one_process_share_a_memory(home):
    out = home.play(
        """
        import threading
        first = Talk("t1", platform="telegram", user_id="1", user_name="Ann", chat_id="c1")
        second = Talk("t2", platform="telegram", user_id="2", user_name="Bob", chat_id="c2")
        def chat(talk, name):
            for number in range(4):
                talk.say(f"{name} {number}")
        runs = [threading.Thread(target=chat, args=pair) for pair in ((first, "ann"), (second, "bob"))]
        [run.start() for run in runs]; [run.join() for run in runs]
        out["shared"] = first.provider._session.memory() is second.provider._session.memory()
        first.end(); second.end()
        out["handles"], out["threads"] = handles(), [name for name in threads() if "optchat" in name]
        """
    )

    for session, name, author in (("t1", "ann", "Ann"), ("t2", "bob", "Bob")):
        mine = [message for message in home.messages() if message["session"] == session]
        assert [message["text"] for message in mine] == [
            text for number in range(4) for text in pair(f"{name} {number}")
        ]
        assert {message.get("author") for message in mine if message["kind"] == "user"} == {author}
    assert out == {"shared": True, "handles": [], "threads": []}


def test_processes_side_by_side_lose_and_double_nothing(home):
    play = """talk = Talk("{0}", platform="{1}"); [talk.say("{0} says " + str(n)) for n in range(5)]; talk.end()"""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(
            pool.map(
                lambda who: home.play(play.format(*who)),
                [("p1", "telegram"), ("p2", "cli"), ("p3", "cli")],
            )
        )

    assert [message["i"] for message in home.messages()] == list(range(30))
    for name in ("p1", "p2", "p3"):
        mine = [message["text"] for message in home.messages() if message["session"] == name]
        assert mine == [text for n in range(5) for text in pair(f"{name} says {n}")]


@pytest.mark.parametrize("platform", ["cron", "subagent"])
def test_a_program_looks_and_leaves_nothing_behind(home, platform):
    home.seed(("user", "The fjord boat leaves at 7:40."))

    home.play(
        f"""
        talk = Talk("p1", platform="{platform}")
        talk.say('look @@call optchat_zoom {{"id": 0}}@@')
        talk.new("p2")
        talk.say("again")
        talk.end()
        """
    )

    assert home.said() == [("user", "The fjord boat leaves at 7:40.")]
    assert list((home.memory / "capture").glob("*.jsonl")) == []
    results = [
        message["content"]
        for body in home.server.chats()
        for message in body["messages"]
        if message["role"] == "tool"
    ]
    assert "7:40" in results[0]


def test_the_memory_stays_with_the_profile_the_agent_began_in(home):
    home.play(
        """
        import os
        talk = Talk("s1")
        os.environ["HERMES_HOME"] = str(home.parent / "elsewhere")
        talk.say("one")
        talk.new("s2")
        talk.say("two")
        talk.end()
        """
    )

    assert words(home) == [*pair("one"), *pair("two")]
    assert not (home.path.parent / "elsewhere" / "optchat").exists()


def test_two_profiles_in_one_process_keep_their_memories_apart(home, tmp_path, server):
    other = Home(home.host, tmp_path / "other", server).install()

    home.play(
        """
        from hermes_constants import reset_hermes_home_override, set_hermes_home_override
        first = Talk("s1")
        token = set_hermes_home_override(str(home.parent / "other"))
        second = Talk("s1")
        reset_hermes_home_override(token)
        first.say("of the first")
        second.say("of the second")
        first.say("of the first again")
        second.end()
        first.end()
        """
    )

    assert words(home) == [*pair("of the first"), *pair("of the first again")]
    assert words(other) == pair("of the second")


def test_what_a_subagent_reports_is_work_and_its_own_words_are_nobodys(home):
    home.play(
        """
        talk = Talk("s1")
        talk.say('hand it over @@call delegate_task {"goal": "count the islands", "context": "none"}@@')
        for _ in range(100):
            if any('"kind":"work"' in file.read_text() for file in (home / "optchat" / "main").glob("*.jsonl")):
                break
            time.sleep(0.1)
        talk.say("and?")
        talk.end()
        """
    )

    work = [text for kind, text in home.said() if kind == "work"]
    assert len(work) == 1
    assert "count the islands" in work[0]
    assert "Answer to: count the islands" in work[0]
    assert words(home)[0].startswith("hand it over")
    assert words(home)[-2:] == pair("and?")
    assert ("user", "count the islands") not in home.said()


@pytest.mark.timeout(120 + 20 * SHOTS)
def test_a_one_shot_has_everything_on_disk_when_it_exits(home):
    for number in range(SHOTS):
        done = home.hermes("-z", f"shot {number}")
        assert done.returncode == 0, done.stdout + done.stderr

    assert words(home) == [text for number in range(SHOTS) for text in pair(f"shot {number}")]


def test_a_chat_continued_by_one_process_after_another(home):
    for number in range(4):
        done = home.hermes(
            "chat", "-Q", *(["--continue"] if number else []), "-q", f"question {number}"
        )
        assert done.returncode == 0, done.stdout + done.stderr

    assert words(home) == [text for number in range(4) for text in pair(f"question {number}")]
    assert len({message["session"] for message in home.messages()}) == 1


def test_thirty_agents_leave_no_thread_no_handle_and_no_lock(home):
    out = home.play(
        """
        def live(number):
            talk = Talk(f"s{number}")
            if number % 10 == 0:
                talk.say(f"life {number}")
            talk.end()
        live(0)
        before = threads()
        for number in range(1, 31):
            live(number)
        gc.collect()
        out["more"] = [name for name in threads() if name not in before]
        out["handles"] = handles()
        from filelock import FileLock
        for name in ("write.lock", "compactor.lock"):
            with FileLock(home / "optchat" / name, timeout=0):
                pass
        """
    )

    assert out == {"more": [], "handles": []}
    assert shape(home) == "ua" * 4
