"""Lines written by the host's models, from a turn to the tree on disk."""

import json
import re
import time

import pytest
from model_server import ModelServer, RefusedError, plain

from optchat import Entry, Memory

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(240)]

KEY = "sk-proj-Zx9Qw7Lm3Kp5Rt8Yv2Nb4Hc6Jd1Fg0Sa"
OPAQUE = "q7Lm3Kp5Rt8Yv2Nb4Hc6Jd1Fg0SaZx9Qw7Lm3Kp5Rt8Yv2"
ASIDE = (
    "It shall be written down as it is, since others will read of it later and want to know how "
    "it came about. "
)


def long(about):
    """A message too long to stand for itself."""
    return f"This is about {about}. " + ASIDE * 7


SETTLED = (
    "assert talk.provider._session.memory().settle(60), talk.provider._session.memory().status()"
)


@pytest.fixture
def elsewhere():
    """Another endpoint than the main model's."""
    with ModelServer() as running:
        yield running


@pytest.fixture
def apart(home, elsewhere):
    """A profile whose lines are written by another model at another endpoint with another key."""
    home.configure(
        model={"api_key": "main-key-1"},
        auxiliary={
            "provider": "custom",
            "model": "aux-model",
            "base_url": elsewhere.url,
            "api_key": "aux-key-1",
        },
    )
    return home


def nodes(home):
    """The lines on disk, oldest first."""
    files = sorted((home.memory / "tree").glob("*.jsonl"))
    return [
        json.loads(text) for file in files for text in file.read_text(encoding="utf-8").splitlines()
    ]


def makers(home):
    return {node["by"] for node in nodes(home)}


def talk(home, *topics, more=""):
    """A session in which these are spoken of, and the wait for its lines."""
    said = "\n".join(f"talk.say({long(topic)!r})" for topic in topics)
    return home.play(f"talk = Talk('s1')\n{said}\n{SETTLED}\n{more}\ntalk.end()")


def test_lines_are_written_by_the_named_model_with_its_own_key(apart, elsewhere):
    talk(apart, "the harbour", "the museum")

    texts = {node["text"][:31] for node in nodes(apart) if node["by"] == "model"}
    assert texts >= {"user: This is about the harbour", "user: This is about the museum."}
    assert {body["model"] for body in elsewhere.requests} == {"aux-model"}
    assert set(elsewhere.keys) == {"aux-key-1"}
    assert apart.server.for_lines() == []
    status = apart.hermes("memory", "status").stdout
    assert "lines written by: model aux-model" in status
    assert re.search(r"calls: [1-9]\d* today", status)


def test_without_a_named_model_no_call_is_made(home):
    home.configure(auxiliary=False)

    talk(home, "the harbour", "the museum")

    assert home.server.for_lines() == []
    assert "local" in makers(home)
    assert "model" not in makers(home)


def test_the_main_model_writes_where_the_user_said_always(home):
    home.configure(auxiliary=False)
    home.settings(summarizer="model")

    talk(home, "the harbour")

    assert {body["model"] for body in home.server.for_lines()} == {"main-model"}
    assert "model" in makers(home)


def test_an_account_without_credit_costs_few_calls_and_status_says_so(apart, elsewhere):
    def refuse(body):
        raise RefusedError(402, "insufficient credits")

    elsewhere.auxiliary = refuse
    apart.play(
        f"""
        talk = Talk("s1")
        talk.say("hello there")
        from importlib import import_module
        entry = import_module(type(talk.provider).__module__.partition(".hermes.")[0] + ".base.record").Entry
        memory = talk.provider._session.memory()
        memory.record([entry(kind="user", text=f"number {{n}}: " + {long("this and that")!r}, session="s1") for n in range(100)])
        time.sleep(6)
        out["status"] = memory.status()["model"]
        talk.end()
        """
    )

    assert 1 <= len(elsewhere.requests) <= 5
    assert apart.server.for_lines() == []
    assert "fallback" not in makers(apart)
    status = apart.hermes("memory", "status").stdout
    assert re.search(r"model: paused: .*no credit", status), status


def test_of_two_profiles_in_one_process_each_has_its_lines_from_its_own_model(apart, elsewhere):
    with ModelServer() as third:
        apart.play(
            f"""
            import json
            from pathlib import Path
            from plugins.memory import load_memory_provider
            second = Path(f"{{home}}-second")
            second.mkdir()
            config = json.loads((home / "config.yaml").read_text())
            config["auxiliary"]["optchat_compact"].update(base_url={third.url!r}, api_key="third-key")
            (second / "config.yaml").write_text(json.dumps(config))
            talk = Talk("s1")
            other = load_memory_provider("optchat")
            other.initialize("s2", hermes_home=str(second), platform="cli", agent_context="primary")
            for round in range(3):
                talk.say(f"round {{round}}: " + {long("the harbour")!r})
                text = f"round {{round}}: " + {long("the museum")!r}
                other.sync_turn(text, "fine", session_id="s2", messages=[m for n in range(round + 1) for m in (
                    {{"role": "user", "content": f"round {{n}}: " + {long("the museum")!r}}}, {{"role": "assistant", "content": "fine"}})])
            for memory in (talk.provider._session.memory(), other._session.memory()):
                assert memory.settle(60), memory.status()
            out["second"] = [other._session.memory().message(0).text, str(other._session.memory().root)]
            other.shutdown()
            talk.end()
            """
        )

        assert len(elsewhere.requests) >= 3
        assert len(third.requests) >= 3
        assert "museum" not in json.dumps(elsewhere.requests)
        assert "harbour" not in json.dumps(third.requests)
        assert (set(elsewhere.keys), set(third.keys)) == ({"aux-key-1"}, {"third-key"})


def test_a_slow_model_slows_no_hook(apart, elsewhere):
    def slow(body):
        time.sleep(8)
        return plain(body["messages"][-1]["content"])[:100]

    elsewhere.auxiliary = slow
    out = apart.play(
        f"""
        talk = Talk("s1")
        provider, took = talk.provider, {{}}
        for name in ("on_turn_start", "prefetch", "sync_turn", "handle_tool_call", "on_session_end", "shutdown"):
            def timed(*args, real=getattr(provider, name), name=name, **kwargs):
                began = time.monotonic()
                try:
                    return real(*args, **kwargs)
                finally:
                    took[name] = max(took.get(name, 0), time.monotonic() - began)
            setattr(provider, name, timed)
        talk.say({long("the beach")!r})
        calls, until = provider._session.memory().builder._model_calls, time.monotonic() + 30
        while not calls.busy and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(2)
        out["busy"] = calls.busy
        for number in range(5):
            talk.say(f"number {{number}}: " + {long("the harbour")!r} + ' @@call optchat_zoom {{"id": 0}}@@')
        talk.end()
        out["took"] = took
        """
    )

    assert out["busy"]
    assert elsewhere.requests, "the model was at work meanwhile"
    assert {"prefetch", "sync_turn", "shutdown"} <= set(out["took"])
    assert max(out["took"].values()) < 1.5, out["took"]


def test_secrets_do_not_reach_the_model_that_writes_lines(apart, elsewhere):
    topics = (
        f"the key {KEY} of mine",
        json.dumps({"api_key": OPAQUE}),
        f"a login with password={OPAQUE} there",
    )

    talk(apart, *topics)

    assert len(elsewhere.requests) >= 3
    sent = json.dumps(elsewhere.requests)
    assert KEY not in sent
    assert OPAQUE not in sent
    assert not any(
        KEY in node["text"] or OPAQUE in node["text"]
        for node in nodes(apart)
        if node["by"] == "model"
    )


def test_the_command_inside_the_host_has_its_model_write(apart, elsewhere):
    with Memory.open(apart.memory, compact=False) as memory:
        memory.record(
            [
                Entry(kind="user", text=long(topic), session="before")
                for topic in ("the harbour", "the museum")
            ]
        )

    done = apart.hermes("optchat", "compact")

    assert done.stdout == "built 3 lines; all 3 lines are there\n", done.stdout + done.stderr
    assert set(elsewhere.keys) == {"aux-key-1"}
    assert "model aux-model" in apart.hermes("optchat", "status").stdout


def test_in_a_plugin_process_of_its_own_lines_are_written_by_the_same_model(apart, elsewhere):
    if apart.host.name == "a":
        pytest.skip("host 0.19 runs plugins in its own process only")
    config = json.loads((apart.path / "config.yaml").read_text())
    (apart.path / "config.yaml").write_text(
        json.dumps({**config, "plugins": {"isolation": "host"}})
    )

    apart.play(
        f"""
        talk = Talk("s1")
        talk.say({long("the harbour")!r})
        until = time.monotonic() + 40
        while time.monotonic() < until and '"by":"model"' not in "".join(file.read_text() for file in (home / "optchat" / "tree").glob("*")):
            time.sleep(0.2)
        talk.end()
        """
    )

    assert set(elsewhere.keys) == {"aux-key-1"}
    assert "model" in makers(apart)
