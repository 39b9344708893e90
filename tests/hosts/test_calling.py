"""The way to the host's models.

Whose model is called, with whose key, and what its refusals mean.
"""

import json
import time

import pytest
from model_server import ModelServer, RefusedError, plain

pytestmark = pytest.mark.hosts

SECRET = "sk-abcdefghijklmnopqrstuvwxyz1234567890"

BINDING = """
import sys
from plugins.memory import load_memory_provider
package = type(load_memory_provider("optchat")).__module__.partition(".hermes.")[0]
Settings = sys.modules.get(f"{package}.base.settings") or __import__("importlib").import_module(f"{package}.base.settings")
calling = __import__("importlib").import_module(f"{package}.hermes.model_client")
calls = sys.modules[f"{package}.compaction.model"]

def model_of(summarizer="auto", where=home):
    return calling.model_of(Settings.Settings(summarizer=summarizer), where)

def ask(model, text="hello", other=""):
    try:
        return list(model.ask([calls.Said("system", "Write a line."), calls.Said("user", text)], other))
    except (calls.ModelDownError, calls.CallError) as error:
        return [type(error).__name__, str(error)]
"""


@pytest.fixture
def elsewhere():
    """Another endpoint than the main model's."""
    with ModelServer() as running:
        yield running


def ask_one(home, summarizer="auto", **aux):
    """What one call comes back with, under this configuration of our task."""
    home.configure(auxiliary=aux, model={"api_key": "main-key-1"})
    return home.play(
        f"{BINDING}\nmodel = model_of({summarizer!r})\nout['name'] = model and "
        "model.name\nout['reply'] = model and ask(model)"
    )


def called(server):
    return [(body["model"], key) for body, key in zip(server.requests, server.keys, strict=True)]


def test_the_named_model_is_called_with_its_own_address_and_key(home, elsewhere):
    out = ask_one(
        home, provider="custom", model="aux-model", base_url=elsewhere.url, api_key="aux-key-1"
    )

    assert out["name"] == "aux-model"
    assert out["reply"][0] == "Something was said."
    assert out["reply"][1] > 0
    assert out["reply"][2:] == [9, None]
    assert called(elsewhere) == [("aux-model", "aux-key-1")]
    assert home.server.requests == []


@pytest.mark.parametrize("provider", [{}, {"provider": "auto"}])
def test_a_model_named_without_a_provider_is_one_of_the_main_provider(home, provider):
    ask_one(home, model="aux-model", **provider)

    assert called(home.server) == [("aux-model", "main-key-1")]


def test_without_a_name_only_the_setting_model_calls_the_main_model(home):
    assert ask_one(home) == {"name": None, "reply": None}
    assert ask_one(home, model="auto", provider="auto") == {"name": None, "reply": None}
    assert ask_one(home, "local", model="aux-model") == {"name": None, "reply": None}
    assert home.server.requests == []

    assert ask_one(home, "model")["name"] == "main-model"
    assert called(home.server) == [("main-model", "main-key-1")]


REFUSALS = [401, 402, 403, 404, 429]


def test_a_refused_call_is_made_once_and_the_main_model_does_not_step_in(home, elsewhere):
    def refuse(body):
        raise RefusedError(
            int(plain(body["messages"][-1]["content"])), f"no good: {SECRET}, aux-key-1"
        )

    elsewhere.auxiliary = home.server.auxiliary = refuse
    home.configure(
        auxiliary={
            "provider": "custom",
            "model": "aux-model",
            "base_url": elsewhere.url,
            "api_key": "aux-key-1",
        },
        model={"api_key": "main-key-1"},
    )
    scenario = (
        f"{BINDING}\nout['replies'] = [ask(model_of(), str(status)) for status in {REFUSALS}]"
    )
    replies = home.play(scenario)["replies"]

    for status, (kind, text) in zip(REFUSALS, replies, strict=True):
        assert kind == "ModelDownError"
        assert str(status) in text
        assert SECRET not in text
        assert "aux-key-1" not in text
    assert called(elsewhere) == [("aux-model", "aux-key-1")] * len(REFUSALS)
    assert home.server.requests == []

    home.configure(auxiliary={"model": "aux-model"}, model={"api_key": "main-key-1"})
    assert [kind for kind, _ in home.play(scenario)["replies"]] == ["ModelDownError"] * len(
        REFUSALS
    )
    assert called(home.server) == [("aux-model", "main-key-1")] * len(REFUSALS)


def test_a_model_that_cannot_be_reached_or_has_no_key_is_down(home):
    refused = ask_one(
        home,
        provider="custom",
        model="aux-model",
        base_url="http://127.0.0.1:9/v1",
        api_key="aux-key-1",
    )["reply"]
    keyless = ask_one(home, provider="openrouter", model="aux-model")["reply"]

    assert (refused[0], keyless[0]) == ("ModelDownError", "ModelDownError")
    assert "cannot be reached" in refused[1]
    assert home.server.requests == []


def test_without_any_provider_the_main_model_is_down(home):
    (home.path / "config.yaml").write_text(json.dumps({"memory": {"provider": "optchat"}}))

    out = home.play(f"{BINDING}\nout['reply'] = ask(model_of('model'))")

    assert out["reply"][0] == "ModelDownError"
    assert "no provider or no key" in out["reply"][1]


def test_a_late_or_broken_answer_is_one_calls_failure(home, elsewhere):
    def late(body):
        time.sleep(2)
        return "too late"

    elsewhere.auxiliary = late
    slow = ask_one(
        home,
        provider="custom",
        model="aux-model",
        base_url=elsewhere.url,
        api_key="aux-key-1",
        timeout=0.5,
    )["reply"]

    def broken(body):
        raise RefusedError(500)

    elsewhere.auxiliary = broken
    failed = ask_one(
        home, provider="custom", model="aux-model", base_url=elsewhere.url, api_key="aux-key-1"
    )["reply"]

    assert (slow[0], failed[0]) == ("CallError", "CallError")
    assert home.server.requests == []


def test_an_empty_answer_is_an_empty_text(home):
    home.server.auxiliary = lambda body: None

    assert ask_one(home, model="aux-model")["reply"][0] == ""


def test_another_model_may_be_asked_for_with_the_same_provider(home):
    home.play(f"{BINDING}\nout['reply'] = ask(model_of(), other='smaller-model')")

    assert called(home.server) == [("smaller-model", "key")]


def test_a_name_taken_away_while_it_runs_does_not_lead_to_the_main_model(home):
    out = home.play(
        f"""
{BINDING}
import json, time
model = model_of()
path = home / "config.yaml"
config = json.loads(path.read_text())
del config["auxiliary"]
path.write_text(json.dumps(config))
out["reply"] = ask(model)
"""
    )

    assert out["reply"][0] == "ModelDownError"
    assert home.server.requests == []


def test_the_host_masks_what_it_knows_to_be_secret(home):
    out = home.play(f"{BINDING}\nout['text'] = model_of().redact('the key is {SECRET}, keep it')")

    assert SECRET not in out["text"]
    assert "keep it" in out["text"]


TWO = """
import json, os, threading
from pathlib import Path
first, second = home, Path(f"{home}-second")
second.mkdir()

def profile(where, key):
    config = json.loads((home / "config.yaml").read_text())
    config["model"]["api_key"] = key
    task = config["auxiliary"]["optchat_compact"]
    SHAPE
    (where / "config.yaml").write_text(json.dumps(config))

profile(second, "second-key")
profile(first, "first-key")
os.environ["OWN_KEY"] = "first-key"
models = [model_of(SUMMARIZER, where) for where in (first, second)]
replies, finished = [[], []], threading.Semaphore(0)

def one(number):
    replies[number].append(ask(models[number], f"of profile {number}"))
    finished.release()

for _ in range(3):
    for number in (0, 1):
        models[number].spawn(lambda number=number: one(number), "line")
for _ in range(6):
    assert finished.acquire(timeout=30)
out["replies"] = replies
"""

SHAPES = {
    "a key in the task's block": ("auto", 'task["api_key"] = key'),
    "the main provider's key": (
        "auto",
        'config["auxiliary"] = {"optchat_compact": {"model": "aux-model"}}',
    ),
    "the main model": ("model", 'config["auxiliary"] = {}'),
    "a key in the environment file": (
        "auto",
        (
            'del task["api_key"]; task["key_env"] = "OWN_KEY"; (where / '
            '".env").write_text(f"OWN_KEY={key}")'
        ),
    ),
    "a provider of that name": (
        "auto",
        """config["providers"] = {"mine": {"name": "mine", "base_url": task["base_url"], "key_env": "OWN_KEY"}}
    config["auxiliary"] = {"optchat_compact": {"provider": "mine", "model": "aux-model"}}
    (where / ".env").write_text(f"OWN_KEY={key}")""",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_of_two_profiles_in_one_process_each_calls_with_its_own_key(home, shape):
    summarizer, code = SHAPES[shape]

    out = home.play(BINDING + TWO.replace("SHAPE", code).replace("SUMMARIZER", repr(summarizer)))

    sent = [
        (body["messages"][-1]["content"], key)
        for body, key in zip(home.server.requests, home.server.keys, strict=True)
    ]
    assert (
        sorted(sent) == [("of profile 0", "first-key")] * 3 + [("of profile 1", "second-key")] * 3
    ), out
