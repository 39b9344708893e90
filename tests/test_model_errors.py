"""What a host's exception means.

No model to be had, or one call that failed; and what of it is told.
"""

import pytest

from optchat.compaction.model import CallError, ModelDownError
from optchat.hermes.model_errors import CAUSE_CHARS, fault_of, masked


class RefusedError(Exception):
    def __init__(self, status, text="refused"):
        super().__init__(text)
        self.status_code = status


def named(name, text="something", base=Exception):
    return type(name, (base,), {})(text)


def caused(error, cause):
    error.__cause__ = cause
    return error


def meaning(error):
    return fault_of(error, "small-1", lambda text: text)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RefusedError(401), "key was refused"),
        (RefusedError(402), "no credit"),
        (RefusedError(403), "may not be used"),
        (RefusedError(404), "no such model"),
        (RefusedError(429), "asked too often"),
        (
            RefusedError(400, "small-1 is not a valid model ID, says the model list"),
            "no such model",
        ),
        (RefusedError(400, "The model `small-1` does not exist"), "no such model"),
        (named("RateLimitError"), "asked too often"),
        (
            caused(named("APIConnectionError", "Connection error."), named("ConnectError")),
            "cannot be reached",
        ),
        (
            caused(named("APITimeoutError", "Request timed out."), named("ConnectTimeout")),
            "cannot be reached",
        ),
        (ConnectionRefusedError(111, "refused"), "cannot be reached"),
        (
            RuntimeError(
                "No LLM provider configured for task=optchat_compact provider=auto. Run: "
                "hermes setup"
            ),
            "no provider or no key",
        ),
        (
            RuntimeError("Provider 'zai' is set in config.yaml but no API key was found."),
            "no provider or no key",
        ),
        (named("AuxiliaryClientUnavailable", base=RuntimeError), "no provider or no key"),
        (ModuleNotFoundError("No module named 'anthropic'"), "not installed"),
    ],
    ids=str,
)
def test_a_model_that_cannot_be_had_is_no_fault_of_the_text(error, told):
    fault = meaning(error)

    assert isinstance(fault, ModelDownError)
    assert told in str(fault)
    assert "small-1" in str(fault)


@pytest.mark.parametrize(
    "error",
    [
        RefusedError(400, "context length exceeded for this model"),
        RefusedError(408),
        RefusedError(413),
        RefusedError(500),
        RefusedError(503, "the model is loading"),
        TimeoutError("timed out"),
        caused(named("APITimeoutError", "Request timed out."), named("ReadTimeout")),
        caused(named("APIConnectionError", "Connection error."), named("RemoteProtocolError")),
        RuntimeError("Auxiliary optchat_compact: LLM returned invalid response"),
        AttributeError("'NoneType' object has no attribute 'message'"),
    ],
    ids=str,
)
def test_any_other_failure_is_that_of_one_call(error):
    assert isinstance(meaning(error), CallError)


def test_an_error_that_is_its_own_cause_ends_the_search():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first

    assert isinstance(meaning(first), CallError)


def test_a_cause_is_one_short_line():
    text = str(meaning(RefusedError(500, "<html>\n" + "<p>so sorry</p>\n" * 500)))

    assert "\n" not in text
    assert len(text) < CAUSE_CHARS + 80


def test_an_error_without_words_is_told_by_its_name():
    assert "KeyError" in str(meaning(KeyError()))


def test_what_is_masked_is_masked_before_it_is_cut():
    key = "k" * 40
    error = RefusedError(401, "x" * (CAUSE_CHARS - 10) + key)

    assert "kk" not in str(fault_of(error, "small-1", lambda text: masked(text, [key, ""])))


def test_a_placeholder_is_no_secret():
    assert masked("no such key", ["key"]) == "no such key"
