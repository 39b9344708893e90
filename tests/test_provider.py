"""The provider without a host: which hook does what, and that none of them can hurt a turn."""

import contextvars
import gc
import importlib.util
import inspect
import json
import logging
import sys
import threading
import time
import types
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from optchat.base.errors import AddressError, OptchatError, StoreError
from optchat.hermes import dependencies, guard, lists, shared_memories, system_prompt, tools
from optchat.hermes.guard import ErrorReporter, empty, guarded, silence
from optchat.hermes.session import Session
from optchat.recall.shown import Standing


class FakeMemory:
    """Remembers what is asked of it."""

    opened: ClassVar = []
    failing = None

    def __init__(self, root, compact):
        self.root, self.compact, self.closed = root, compact, False
        self.recorded, self.warnings, self.asked, self.total = [], [], [], 40
        self.shown = FakeCapture()
        self.switches = []
        FakeMemory.opened.append(self)

    @classmethod
    def open(cls, root, settings=None, *, compact=True, **_):
        if cls.failing:
            raise cls.failing
        return cls(root, compact)

    def record(self, entries, *, timeout_s=5.0):
        if FakeMemory.failing:
            raise FakeMemory.failing
        self.recorded += entries
        return list(range(len(entries)))

    def recall(self, query, session="", standing=None):
        if FakeMemory.failing:
            raise FakeMemory.failing
        self.standing = standing
        return f"<chat>\n0+1|asked {query!r}\n1+1|in {session}\n</chat>"

    def zoom(self, id, n=1, page=1):  # noqa: A002
        if id == 99:
            raise AddressError("there is no message 99", hint="Use an id from 0 to 3")
        return f"{id}/{n}/{page}"

    def date(self, id):  # noqa: A002
        return f"date of {id}"

    def search(self, query, limit=20, *, newest=False):
        return (
            []
            if query == "nothing"
            else [SimpleNamespace(line=f"3+1|user: {query}/{limit}/{newest}")]
        )

    def list_shown(self, session, messages):
        self.shown.list_shown(session, messages)

    def compressed(self, parent, session):
        self.switches.append(("compressed", parent, session))

    def status(self):
        return {"messages": self.total}

    def lines(self, first, end, max_chars, session=""):
        self.asked.append((first, end, max_chars, session))
        return f"{first}+1|lines"

    def close(self):
        self.closed = True


class FakeCapture:
    """Writes down what it is told; every method takes what it is given."""

    def __init__(self, failing=None):
        self.calls, self.failing = [], failing

    def __getattr__(self, name):
        def told(*args, **kwargs):
            if self.failing:
                raise self.failing
            self.calls.append((name, args, kwargs))

        return told


@pytest.fixture
def provider_class(monkeypatch):
    """Our provider on a stand-in for the host's base class.

    The real ones are walked in the host tests.
    """
    FakeMemory.opened, FakeMemory.failing = [], None
    base = types.ModuleType("agent.memory_provider")
    base.MemoryProvider = type("MemoryProvider", (), {})
    monkeypatch.setitem(sys.modules, "agent", types.ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.memory_provider", base)
    monkeypatch.setattr("optchat.memory.Memory.open", FakeMemory.open)
    monkeypatch.setattr(
        Session, "capture", lambda self: self.__dict__.setdefault("fake", FakeCapture())
    )
    monkeypatch.delitem(sys.modules, "optchat.hermes.provider", raising=False)
    from optchat.hermes.provider import OptchatProvider

    yield OptchatProvider
    monkeypatch.delitem(sys.modules, "optchat.hermes.provider", raising=False)


@pytest.fixture
def begin(provider_class, tmp_path):
    """A provider in a session; shut down at the end."""
    begun = []

    def start(session="s1", home=tmp_path, platform="cli", **options):
        provider = provider_class()
        begun.append(provider)
        provider.initialize(session, hermes_home=str(home), platform=platform, **options)
        return provider

    yield start
    for provider in begun:
        provider.shutdown()


def captured(provider):
    return [call[0] for call in provider._session.capture().calls]


# -- registration


def test_register_gives_a_provider_and_names_the_task_where_it_can(provider_class):
    import optchat

    class Older:
        def register_memory_provider(self, provider):
            self.provider = provider

    class Newer(Older):
        def register_hook(self, name, callback):
            self.hook = (name, callback)

        def register_auxiliary_task(self, key, *, display_name, description, defaults):
            self.task = (key, display_name, description, defaults)

    older, newer = Older(), Newer()
    optchat.register(older)
    optchat.register(newer)

    assert older.provider.name == "optchat"
    assert newer.task[0] == "optchat_compact"
    assert newer.task[3]["timeout"] >= 120, (
        "a view of the memory is long to read for a model on the user's own machine"
    )
    assert newer.hook == ("pre_llm_call", lists.turn_begins)
    assert older.provider is not newer.provider


def test_the_older_host_is_listened_to_once(provider_class, monkeypatch):
    import optchat

    manager = SimpleNamespace(_hooks={})
    plugins = types.ModuleType("hermes_cli.plugins")
    plugins.get_plugin_manager = lambda: manager
    plugins.PluginManifest = lambda name: name
    plugins.PluginContext = lambda _manifest, manager: SimpleNamespace(
        register_hook=lambda name, callback: manager._hooks.setdefault(name, []).append(callback)
    )
    monkeypatch.setitem(sys.modules, "hermes_cli", types.ModuleType("hermes_cli"))
    monkeypatch.setitem(sys.modules, "hermes_cli.plugins", plugins)
    for _agent in range(3):
        optchat.register(SimpleNamespace(register_memory_provider=lambda _provider: None))

    assert manager._hooks == {"pre_llm_call": [lists.turn_begins]}


def test_the_public_names_load_when_asked_for_and_no_others_do():
    import optchat

    assert optchat.OptchatError is OptchatError
    assert set(optchat.__all__) <= set(dir(optchat))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = optchat.nonsense


def test_a_missing_package_makes_it_unavailable_and_is_said_once(
    provider_class, monkeypatch, caplog
):
    monkeypatch.setattr(dependencies, "missing", lambda: ["orjson"])

    assert [provider_class().is_available() for _ in range(3)] == [False] * 3
    assert "needs orjson" in provider_class().unavailable_reason()
    assert sum("needs orjson" in record.message for record in caplog.records) == 1


def test_nothing_is_opened_before_a_session(provider_class):
    provider = provider_class()

    assert provider.is_available()
    assert {schema["name"] for schema in provider.get_tool_schemas()} == {
        "optchat_zoom",
        "optchat_date",
        "optchat_search",
    }
    assert provider.prefetch("x") == provider.system_prompt_block() == ""
    assert provider.backup_paths() == []
    assert provider.identity_signature() == {}
    provider.sync_turn("a", "b", messages=[])
    provider.shutdown()
    assert FakeMemory.opened == []


# -- a session


def test_the_memory_is_that_of_the_home_given_not_of_the_environment(begin, tmp_path, monkeypatch):
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "elsewhere"))

    begin(home=tmp_path / "mine")

    assert FakeMemory.opened[0].root == tmp_path / "mine" / "optchat"


def test_without_a_home_there_is_no_memory_and_no_guess(provider_class, monkeypatch, tmp_path):
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    told = []
    provider = provider_class()

    provider.initialize("s1", platform="cli", warning_callback=told.append)

    assert FakeMemory.opened == []
    assert "did not say which profile" in told[0]


def test_each_hook_reaches_the_capture(begin):
    provider = begin()

    provider.on_turn_start(1, "hello", author_name="Ann", model="m")
    provider.sync_turn(
        "hello",
        "hi",
        session_id="s1",
        messages=[{"role": "user", "content": "hello"}],
        turn_author={"id": "7", "name": "Ann"},
    )
    provider.on_session_switch(
        "s2", parent_session_id="s1", reset=True, reason="new_session", something_newer=1
    )
    provider.on_session_end([])

    calls = provider._session.capture().calls
    assert [call[0] for call in calls] == [
        "initialized",
        "turn_started",
        "turn_ended",
        "switched",
        "ended",
    ]
    assert calls[1][1:] == (("hello",), {"author": "Ann", "length": 0, "last": None})
    assert calls[2][1:] == (([{"role": "user", "content": "hello"}], "hello"), {"author": "Ann"})
    assert calls[3][1:] == (
        ("s2",),
        {"parent": "s1", "reset": True, "rewound": False, "reason": "new_session"},
    )


def test_what_is_recalled_is_of_the_session_the_agent_is_in(begin):
    provider = begin()
    assert "in s1" in provider.prefetch("q")

    provider.on_session_switch("s2", parent_session_id="s1")

    assert "in s2" in provider.prefetch("q")
    assert "in other" in provider.prefetch("q", session_id="other")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            [{"type": "text", "text": "hello"}, {"type": "input_text", "text": "there"}],
            "hello\nthere",
        ),
        (None, ""),
        ({}, ""),
        (7, "7"),
    ],
)
def test_what_a_host_says_may_be_of_the_shape_of_any_content(begin, content, words):
    provider = begin()
    provider.on_turn_start(1, content)
    assert f"asked {words!r}" in provider.prefetch(content)
    provider.sync_turn(content, content, messages=[{"role": "user", "content": content}])
    provider.on_session_switch(content)
    started, ended, _ = provider._session.capture().calls[-3:]
    assert (started[0], started[1][0]) == ("turn_started", words)
    assert (ended[0], ended[1][1]) == ("turn_ended", None)
    assert provider._session.id == "s1"


def test_a_session_is_called_as_it_is_written_on_disk(begin):
    """Half a character in a name, as some hosts cut one out of a chat's title."""
    provider = begin("s\ud83d")
    assert "in s\ufffd" in provider.prefetch("q")
    assert "in t\ufffd" in provider.prefetch("q", session_id="t\ud83d")
    provider.on_session_switch("u\ud83d", parent_session_id="s\ud83d")
    assert "in u\ufffd" in provider.prefetch("q")
    name, args, facts = provider._session.capture().calls[-1]
    assert (name, args, facts["parent"]) == ("switched", ("u\ufffd",), "s\ufffd")


def test_what_stands_in_front_of_the_model_is_followed(begin):
    provider = begin()
    memory = FakeMemory.opened[0]
    messages = [{"role": "user", "content": "hello"}]

    provider.prefetch("q")
    assert memory.standing is None, "no list was shown"
    lists.turn_begins(session_id="s1", conversation_history=messages, turn_id="t")
    provider.prefetch("q")
    assert memory.standing == Standing()
    provider.prefetch("q", session_id="s1")
    assert memory.standing is None, "that list was of the turn before"
    provider.sync_turn("hello", "hi", session_id="s1", messages=messages)
    provider.on_session_switch("s1", parent_session_id="s1", rewound=True)
    provider.on_session_switch("s1", parent_session_id="s1", reason="compression")
    provider.on_session_switch("s2", parent_session_id="s1", reason="branch")
    provider.on_session_switch("s3", parent_session_id="s2", reason="compression")

    assert memory.shown.calls == [
        ("list_shown", ("s1", messages), {}),
        ("branched", ("s1", "s2"), {}),
    ]
    assert memory.switches == [("compressed", "s1", "s1"), ("compressed", "s2", "s3")]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"session_id": 7, "conversation_history": []},
        {"session_id": "s1", "conversation_history": "text"},
        {"session_id": "s1", "conversation_history": [None, {}, 7]},
    ],
)
def test_an_odd_list_at_a_turns_start_is_no_trouble(begin, odd):
    provider = begin()
    lists.turn_begins(**odd)
    assert "in s1" in provider.prefetch("q")


def test_turns_without_a_prefetch_are_forgotten(begin):
    for number in range(500):
        lists.turn_begins(session_id=f"x{number}", conversation_history=[])
    assert len(lists._begun) < 100
    assert lists.begun("x499").standing == Standing()


def test_what_was_shown_failing_costs_no_turn_its_log(begin):
    provider = begin()
    FakeMemory.opened[0].shown.failing = KeyError("x")

    provider.sync_turn("hello", "hi", messages=[{"role": "user", "content": "hello"}])

    assert "turn_ended" in captured(provider)


def test_a_delegation_is_work_and_a_memory_write_is_a_note(begin):
    provider = begin()

    provider.on_delegation("count to three", "1 2 3", child_session_id="c", model="m")
    provider.on_memory_write("add", "user", "likes tea", metadata={"tool_name": "memory"})
    provider.on_memory_write("replace", "memory", "tea", {"old_text": "coffee"})
    provider.on_memory_write("remove", "memory", "", {"previous_content": "old thing"})

    calls = [(name, args) for name, args, _ in provider._session.capture().calls[1:]]
    assert calls[0] == ("delegated", ("count to three", "1 2 3"))
    assert calls[1] == ("noted", ("added to the notes about the user: likes tea", "likes tea"))
    assert "coffee" in calls[2][1][0]
    assert calls[3][1][0] == "struck from the notes to memory: old thing"


def test_the_compressor_gets_the_lines_of_what_has_come_since_the_last_compression(begin):
    provider = begin()
    memory = FakeMemory.opened[0]

    text = provider.on_pre_compress([{"role": "user", "content": "x"}])
    assert text.endswith("\n0+1|lines")
    assert "optchat_zoom" in text
    provider.on_session_switch("s1", parent_session_id="s1", reset=False, reason="compression")
    memory.total = 90
    provider.on_pre_compress([])

    assert [(first, end, session) for first, end, _, session in memory.asked] == [
        (0, 40, "s1"),
        (40, 90, "s1"),
    ]
    assert memory.asked[0][2] + len(text) - len("0+1|lines") == 6_000
    assert captured(provider)[:2] == ["initialized", "list_seen"]


@pytest.mark.parametrize(
    "options",
    [
        {"platform": "cron"},
        {"platform": "subagent"},
        {"agent_context": "cron"},
        {"agent_context": "flush"},
    ],
)
def test_programs_may_look_and_leave_nothing_behind(begin, options):
    provider = begin(**options)

    provider.on_turn_start(1, "tick")
    provider.sync_turn("tick", "tock", messages=[])
    provider.on_session_switch("s2", parent_session_id="s1", reset=True)
    provider.on_turn_start(2, "tick")
    provider.sync_turn("tick", "tock", messages=[])
    provider.on_delegation("a", "b")
    provider.on_memory_write("add", "user", "x")
    provider.on_pre_compress([])
    provider.on_session_end([])

    assert captured(provider) == []
    assert FakeMemory.opened[0].recorded == []
    assert FakeMemory.opened[0].compact is False
    assert "0+1|" in provider.prefetch("q")
    assert json.loads(provider.handle_tool_call("optchat_zoom", {"id": 3}))["text"] == "3/1/1"


def test_a_platform_switched_off_opens_nothing(begin, tmp_path):
    (tmp_path / "optchat").mkdir()
    (tmp_path / "optchat" / "config.json").write_text('{"platforms_off": ["telegram"]}')

    provider = begin(platform="telegram")
    provider.on_turn_start(1, "x")
    provider.sync_turn("x", "y", messages=[])

    assert FakeMemory.opened == []
    assert provider.prefetch("q") == provider.system_prompt_block() == ""
    assert provider.get_tool_schemas() == []
    assert "switched off" in provider.handle_tool_call("optchat_zoom", {"id": 1})


def test_the_system_prompt_is_the_same_bytes_whatever_has_happened(begin):
    provider = begin()
    first = provider.system_prompt_block()
    provider.prefetch("q")
    provider.on_session_switch("s2")

    assert (
        provider.system_prompt_block()
        == begin("s9", platform="telegram").system_prompt_block()
        == first
        == system_prompt.BLOCKS["hybrid"]
    )


def test_recall_status_counts_the_lines_of_the_last_prefetch(begin, monkeypatch):
    provider = begin()
    provider.prefetch("q")
    assert provider.recall_status() is None

    monkeypatch.setattr(
        sys.modules["agent.memory_provider"], "RecallStatus", lambda **facts: facts, raising=False
    )
    assert provider.recall_status() == {"provider_label": "optchat", "count": 2}

    FakeMemory.failing = StoreError("gone")
    provider.prefetch("q")
    assert provider.recall_status() is None


# -- troubles


def test_no_hook_raises_into_the_host(begin):
    provider = begin()
    provider._session.capture().failing = ValueError("boom")
    FakeMemory.failing = RuntimeError("broken")

    provider.on_turn_start(1, "x")
    provider.sync_turn("x", "y", messages=[{}])
    provider.on_delegation("a", "b")
    provider.on_memory_write("add", "user", "x")
    provider.on_session_switch("s2")
    provider.on_session_end([])
    assert provider.prefetch("q") == provider.on_pre_compress([]) == ""
    provider.shutdown()


def test_the_user_is_told_once_when_memory_fails_and_once_when_it_works_again(begin, caplog):
    told = []
    provider = begin(warning_callback=told.append)
    capture = provider._session.capture()

    capture.failing = StoreError("cannot append to main: No space left", hint="Free some space")
    for turn in range(10):
        provider.on_turn_start(turn, "x")
        provider.sync_turn("x", "y", messages=[])
    assert len(told) == 1
    assert "No space left" in told[0]
    assert "Free some space" in told[0]

    capture.failing = None
    for turn in range(3):
        provider.on_turn_start(turn, "x")
        provider.sync_turn("x", "y", messages=[])
    assert told[1:] == ["Memory works again."]
    assert sum("sync_turn failed" in record.message for record in caplog.records) == 1


def test_a_failing_callback_of_the_host_is_no_failure_of_ours(begin):
    def broken(message):
        raise RuntimeError("no console")

    provider = begin(warning_callback=broken)
    FakeMemory.failing = StoreError("gone")

    assert provider.prefetch("q") == ""


@pytest.mark.parametrize("platform", ["cli", "cron"])
def test_a_memory_that_could_not_be_opened_is_opened_later(begin, platform):
    told = []
    FakeMemory.failing = StoreError("cannot lock")
    provider = begin(platform=platform, warning_callback=told.append)
    assert FakeMemory.opened == []
    assert ["cannot lock" in line for line in told] == [True]

    FakeMemory.failing = None

    assert provider.system_prompt_block()
    assert len(told) == 1
    assert "0+1|" in provider.prefetch("q")
    assert told[1:] == ["Memory works again."]


def test_a_memory_that_is_opened_only_by_a_turn_s_end_is_said_to_work(begin):
    told = []
    FakeMemory.failing = StoreError("cannot lock")
    provider = begin(warning_callback=told.append)
    FakeMemory.failing = None
    provider.sync_turn("x", "y", messages=[])
    assert told[1:] == ["Memory works again."]


def test_a_memory_that_hangs_holds_up_no_turn_and_no_exit(begin, monkeypatch):
    monkeypatch.setattr(
        guard, "_within", lambda seconds, *rest, within=guard._within: within(seconds / 20, *rest)
    )
    told = []
    provider = begin(warning_callback=told.append)
    answers = threading.Event()

    def hang(*_args, **_kwargs):
        answers.wait(30)
        return "late"

    for name in ("turn_started", "list_seen", "switched", "ended", "shutdown"):
        setattr(provider._session.capture(), name, hang)
    monkeypatch.setattr(FakeMemory, "record", hang)
    monkeypatch.setattr(FakeMemory, "recall", hang)
    began = time.monotonic()
    try:
        assert provider.on_turn_start(1, "x") is None
        assert provider.prefetch("x") == ""
        provider.on_memory_write("add", "user", "x")
        assert provider.on_pre_compress([]) == ""
        provider.on_session_switch("s2")
        provider.on_session_end([])
        provider.shutdown()
    finally:
        answers.set()
    assert time.monotonic() - began < 5
    assert len(told) == 1
    assert "has not answered" in told[0]


@pytest.mark.parametrize("error", [None, StoreError("cannot append: the disk is gone")])
def test_how_it_comes_out_when_nobody_waits_any_more_is_told_all_the_same(caplog, error):
    told, gate, over = [], threading.Event(), threading.Event()

    class Slow:
        troubles = ErrorReporter()

        @guarded(silence, 0.01)
        def remember(self):
            gate.wait(30)
            if error:
                raise error

    slow = Slow()
    slow.troubles.tell_through(told.append)
    ended, slow.troubles.ended_late = (
        slow.troubles.ended_late,
        lambda *how: (ended(*how), over.set()),
    )
    assert slow.remember() is None
    assert ["has not answered" in line for line in told] == [True]
    gate.set()
    assert over.wait(30)
    if error:
        assert "the disk is gone" in caplog.text
    else:
        assert told[1:] == ["Memory works again."]


def test_a_hook_that_is_waited_for_keeps_the_context_and_the_errors_of_its_caller():
    which = contextvars.ContextVar("which")
    which.set("mine")
    assert guard._within(5, which.get, pytest.fail) == "mine"
    with pytest.raises(StoreError, match="full"):
        guard._within(5, lambda: (_ for _ in ()).throw(StoreError("full")), pytest.fail)


def test_a_hook_works_also_while_the_interpreter_ends(monkeypatch):
    def no_thread(_self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    assert guard._within(5, lambda: "done", pytest.fail) == "done"


def test_a_trouble_is_over_when_every_hook_that_had_it_works(caplog):
    told, troubles = [], ErrorReporter()
    troubles.tell_through(told.append)

    troubles.failed("prefetch", StoreError("a"))
    troubles.failed("sync_turn", StoreError("b"))
    troubles.worked("prefetch")
    assert len(told) == 1
    troubles.worked("sync_turn")
    troubles.mention(["w", "w"])

    assert told[1:] == ["Memory works again.", "Memory: w"]


def test_a_guarded_hook_shows_the_host_its_own_signature():
    """Hosts look at it to see which keywords they may pass."""

    class Some:
        troubles = ErrorReporter()

        @guarded(empty)
        def prefetch(self, query, *, session_id=""):
            return query

    assert list(inspect.signature(Some().prefetch).parameters) == ["query", "session_id"]


def test_a_bug_of_ours_is_logged_with_its_traceback_and_an_expected_error_without(caplog):
    caplog.set_level(logging.WARNING)
    troubles = ErrorReporter()
    try:
        raise KeyError("x")
    except KeyError as error:
        troubles.failed("prefetch", error)
    troubles.failed("sync_turn", StoreError("full"))

    assert [bool(record.exc_info) for record in caplog.records] == [True, False]


# -- one memory for many providers


def test_providers_of_one_home_share_a_memory_and_the_last_one_closes_it(begin, tmp_path):
    first, second = begin("s1"), begin("s2")
    (tmp_path / "link").symlink_to(tmp_path)
    third = begin("s3", home=tmp_path / "link")
    assert len(FakeMemory.opened) == 1

    first.shutdown()
    first.shutdown()
    third.shutdown()
    assert not FakeMemory.opened[0].closed

    second.shutdown()
    assert FakeMemory.opened[0].closed
    begin("s4")
    assert len(FakeMemory.opened) == 2


def test_a_reader_does_not_share_with_a_writer(begin):
    begin("s1")
    begin("s2", platform="cron")

    assert sorted(memory.compact for memory in FakeMemory.opened) == [False, True]


def test_initialize_again_keeps_the_memory_open(begin, tmp_path):
    provider = begin("s1")

    provider.initialize("s1", hermes_home=str(tmp_path), platform="cli")

    assert len(FakeMemory.opened) == 1
    assert not FakeMemory.opened[0].closed
    provider.shutdown()
    assert FakeMemory.opened[0].closed


def test_a_provider_dropped_without_a_word_gives_its_memory_back(provider_class, tmp_path):
    for number in range(30):
        provider_class().initialize(f"s{number}", hermes_home=str(tmp_path), platform="cli")
    gc.collect()
    last = provider_class()

    last.initialize("s30", hermes_home=str(tmp_path), platform="cli")
    last.shutdown()

    assert all(memory.closed for memory in FakeMemory.opened)
    assert shared_memories._shared == {}


def test_many_threads_borrow_and_give_back(provider_class, tmp_path):
    def live(number):
        for _ in range(20):
            provider = provider_class()
            provider.initialize(f"s{number}", hermes_home=str(tmp_path), platform="cli")
            assert not provider._session.memory().closed
            provider.shutdown()

    threads = [threading.Thread(target=live, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(memory.closed for memory in FakeMemory.opened)
    assert shared_memories._shared == {}


def test_the_package_imported_under_two_names_writes_one_log(tmp_path):
    """Hosts do that; each copy then has memories of its own, which know nothing of each other."""
    import optchat
    from optchat import Entry, Memory

    place = Path(optchat.__file__).parent
    spec = importlib.util.spec_from_file_location(
        "another_name", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    twin = importlib.util.module_from_spec(spec)
    sys.modules["another_name"] = twin
    try:
        spec.loader.exec_module(twin)
        assert twin.Memory is not Memory
        with Memory.open(tmp_path) as ours, twin.Memory.open(tmp_path) as theirs:
            for number in range(5):
                ours.record([Entry(kind="user", text=f"ours {number}")])
                theirs.record([twin.Entry(kind="user", text=f"theirs {number}")])
            said = [ours.message(number).text for number in range(10)]
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "another_name"]:
            del sys.modules[name]

    assert said == [f"{whose} {number}" for number in range(5) for whose in ("ours", "theirs")]


# -- tools


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({"id": 12, "n": 4}, "12/4/1"),
        ({"id": "12", "n": "4", "page": "2"}, "12/4/2"),
        ({"id": 12.0, "n": 4.0}, "12/4/1"),
        ({"id": "12+4"}, "12+4/1/1"),
        ({"id": 12, "n": None, "page": ""}, "12/1/1"),
    ],
)
def test_arguments_are_taken_in_every_form_models_send_them(tmp_path, arguments, asked):
    assert json.loads(tools.call(FakeMemory(tmp_path, False), "optchat_zoom", arguments)) == {
        "text": asked
    }


@pytest.mark.parametrize("name", ["optchat_zoom", "optchat_date", "optchat_none"])
@pytest.mark.parametrize("arguments", [{}, {"id": None}, {"id": ""}])
def test_a_call_without_an_id_is_answered_with_a_call_that_works(tmp_path, name, arguments):
    answer = json.loads(tools.call(FakeMemory(tmp_path, False), name, arguments))

    assert set(answer) == {"error", "instead"}
    assert "optchat_zoom(id" in answer["instead"]


def test_a_wrong_address_is_answered_with_what_to_use_instead(tmp_path):
    answer = json.loads(tools.call(FakeMemory(tmp_path, False), "optchat_zoom", {"id": 99}))

    assert answer == {"error": "there is no message 99", "instead": "Use an id from 0 to 3"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"query": "a name"}, "3+1|user: a name/10/False"),
        ({"query": "a name", "limit": "5", "newest": "true"}, "3+1|user: a name/5/True"),
        ({"query": "a name", "limit": 5.0, "newest": True}, "3+1|user: a name/5/True"),
        ({"query": "a name", "limit": "many"}, "3+1|user: a name/10/False"),
        ({"query": "a name", "limit": 1_000}, "3+1|user: a name/50/False"),
        ({"query": "nothing"}, "no message holds these words; other words may find it"),
    ],
)
def test_a_search_is_answered_with_lines_that_can_be_opened(tmp_path, arguments, text):
    assert json.loads(tools.call(FakeMemory(tmp_path, False), "optchat_search", arguments)) == {
        "text": text
    }


@pytest.mark.parametrize("arguments", [{}, {"query": " "}, {"query": None}])
def test_a_search_for_nothing_is_answered_with_a_call_that_works(tmp_path, arguments):
    answer = json.loads(tools.call(FakeMemory(tmp_path, False), "optchat_search", arguments))

    assert answer["error"] == "query is missing"
    assert "optchat_search(query=" in answer["instead"]


def test_the_search_tool_is_offered_where_it_is_set(begin, tmp_path):
    assert {schema["name"] for schema in begin().get_tool_schemas()} == {
        "optchat_zoom",
        "optchat_date",
    }
    (tmp_path / "optchat").mkdir()
    (tmp_path / "optchat" / "config.json").write_text('{"search_tool": true}')
    assert {schema["name"] for schema in begin().get_tool_schemas()} == {
        "optchat_zoom",
        "optchat_date",
        "optchat_search",
    }


def test_an_answer_can_be_sent_whatever_is_in_it():
    answer = tools.answer(text="half an emoji: \ud83d, ümlaut")

    assert json.loads(answer.encode())["text"].startswith("half an emoji")
    assert "ümlaut" in tools.answer(text="ümlaut")


def test_a_memory_that_fails_in_a_tool_is_told_to_the_model_not_raised(begin, monkeypatch):
    provider = begin()
    monkeypatch.setattr(FakeMemory, "zoom", lambda *_: 1 / 0)

    answer = json.loads(provider.handle_tool_call("optchat_zoom", {"id": 1}))

    assert "could not be read" in answer["error"]
    assert json.loads(provider.handle_tool_call("optchat_zoom", None))["error"]
