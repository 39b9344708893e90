"""The host's model as the compactor is given it.

A request goes to the profile's own model, and a reply or one of our errors comes back.

Holds the call and what must be watched about it: that it runs under its profile, reaches the model
that was named, and spends the main model only where the user said so. What a failure means is in
``model_errors.py``. Called when a memory is opened inside the host.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from ..compaction.model import Model, ModelDownError, Reply
from .model import TASK, TIMEOUT_S, host_config, main_model, main_of, named_model, task_of, word
from .model_errors import fault_of, masked
from .profile import Profile, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..base.settings import Settings
    from ..compaction.model import Said

TEMPERATURE: Final = 0.3
"""Low, since a line shall report and not invent.

Not 0, at which a model that is asked again tends to say the same again.
"""

NO_MAIN: Final = "optchat-no-main-model"
"""The name of a provider that does not exist, see ``_Caller._call``."""

_GUESSED_FOR: Final = ("openrouter", "custom")
"""Where the host has no key for one of these it goes on to whatever provider has one.

For any other it says so.
"""

logger = logging.getLogger(__name__)


def model_of(settings: Settings, hermes_home: str | Path) -> Model | None:
    """The model that writes lines for a profile, or None where this machine does.

    ``summarizer`` ``auto``: the one ``auxiliary.optchat_compact`` names; ``model``: the same, and
    where none is named the main model.
    """
    if settings.summarizer == "local":
        return None
    profile = Profile(hermes_home)
    try:
        with profile.in_force():
            config = host_config()
    # no host here: whoever opens the memory is a test, or a part of Hermes that was taken out of it
    except ImportError:
        return None
    # the memory opens all the same: with local lines, or with a model whose first call says what is
    # wrong
    except Exception:
        logger.warning("optchat: the host's configuration cannot be read", exc_info=True)
        config = {}
    name = named_model(config)
    always = settings.summarizer == "model"
    if not name and not always:
        return None
    return Model(
        name or main_model(config) or "the main model",
        _Caller(profile, always=always).ask,
        redact,
        profile.spawn,
    )


def redact(text: str) -> str:
    """What the host knows to be secret, masked.

    What is raised in it is the host's: a text that cannot be masked is not sent.
    """
    try:
        from agent.redact import redact_sensitive_text
    except ImportError:
        return text
    return str(redact_sensitive_text(text, force=True))


class _Caller:
    """Calls the model of one profile, in any number of threads at once.

    Reads the configuration anew for each call, as the host does.
    """

    def __init__(self, profile: Profile, *, always: bool) -> None:
        self._profile = profile
        self._always = always

    def ask(self, request: Sequence[Said], other: str) -> Reply:
        """One request and its reply.

        ``other``: a model to use in place of the one that is named, with the same provider.

        Raises:
            ModelDownError: the model cannot be had.
            CallError: this call failed.
        """
        with self._profile.in_force():
            config = _read_config()
            model = other or named_model(config)
            if not model and not self._always:
                # Taken out of the configuration while we were running: the host would now use the
                # main model.
                raise ModelDownError(
                    f"cannot write lines: auxiliary.{TASK} names no model any more"
                )
            try:
                response = self._call(config, [said._asdict() for said in request], model)
                reply = _reply(response)
            except ModelDownError:
                raise
            except Exception as error:
                # Without its cause: a traceback of the host's may show keys.
                raise fault_of(
                    error,
                    model or main_model(config) or "the main model",
                    lambda text: _without_keys(text, config),
                ) from None
            if model:
                _refuse_main(response, config, model)
            return reply

    def _call(self, config: dict[str, Any], messages: list[dict[str, str]], model: str) -> Any:
        """Where another model than the main one was named, the host must not take the main one when
        that one fails.

        It does so on its own for a provider without credit or connection, and there is no setting
        against it. It asks for the main provider first; within this scope it is told one that does
        not exist.
        """
        from agent.auxiliary_client import call_llm

        task = task_of(config)
        route = _route(config, model, foreign=self._profile.is_foreign)
        named = model and ("provider" in route or word(task, "base_url"))
        if model:
            route["model"] = model
        if not isinstance(task.get("timeout"), (int, float)):
            route["timeout"] = TIMEOUT_S
        # An empty one as well: the context may be that of a turn with a model chosen for that turn.
        with _main_provider({"provider": NO_MAIN} if named else {}):
            return call_llm(task=TASK, messages=messages, temperature=TEMPERATURE, **route)


def _main_provider(runtime: dict[str, str]) -> contextlib.AbstractContextManager[object]:
    """Within this the host takes ``runtime`` for its main provider, where it can be told.

    What answers is looked at all the same.
    """
    try:
        from agent.auxiliary_client import scoped_runtime_main
    except ImportError:
        return contextlib.nullcontext()
    scope: contextlib.AbstractContextManager[object] = scoped_runtime_main(runtime)
    return scope


def _route(config: dict[str, Any], model: str, *, foreign: bool) -> dict[str, Any]:
    """What the host must be told about the way to the model beyond what it reads in the profile's
    configuration itself.
    """
    task = task_of(config)
    provider = word(task, "provider")
    if word(task, "base_url"):
        name = word(task, "key_env") or word(task, "api_key_env")
        if not foreign or word(task, "api_key") or not name:
            return {}
        # Host 0.19 would look into the environment of the process, which is another profile's.
        return {
            "provider": provider or "custom",
            "base_url": word(task, "base_url"),
            "api_key": key_of(name),
        }
    if provider.lower() in ("", "auto"):
        provider = word(main_of(config), "provider") if model else ""
    provider = "" if provider.lower() in ("auto", "moa") else provider
    if foreign or provider.lower() in _GUESSED_FOR:
        found = _found(provider, model or main_model(config))
        if provider.lower() in _GUESSED_FOR and not found:
            raise ModelDownError(
                f"cannot use {model}: Hermes has no address or no key for its provider {provider}"
            )
        if foreign and found:
            return found if provider else {"main_runtime": {**found, "model": main_model(config)}}
    # Named, so that a failure stays with this provider: left to choose, the host tries whatever
    # else has a key.
    return {"provider": provider} if provider else {}


def _found(provider: str, model: str) -> dict[str, Any]:
    """The address and key of a provider in the profile in force.

    Empty where the host has to see to it itself.

    Host 0.19 keeps its connections by provider and model, not by profile: without this one
    profile's calls would go out with the key of whichever profile called first.
    """
    from hermes_cli.runtime_provider import resolve_runtime_provider

    try:
        runtime = resolve_runtime_provider(requested=provider or None, target_model=model or None)
    except Exception:  # the call then says what is wrong, in better words
        logger.debug(
            "optchat: no address and key for %s", provider or "the main provider", exc_info=True
        )
        return {}
    found = {
        key: runtime.get(key)
        for key in ("provider", "base_url", "api_key", "api_mode")
        if runtime.get(key)
    }
    return (
        found if str(found.get("base_url", "")).startswith("http") and found.get("api_key") else {}
    )


def _read_config() -> dict[str, Any]:
    try:
        return host_config()
    except Exception as error:
        raise ModelDownError(f"cannot read Hermes' configuration: {error}") from error


def _reply(response: Any) -> Reply:
    """The text of the answer, empty where it holds none, and what the endpoint tells about its
    cost.
    """
    content = response.choices[0].message.content
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return Reply(
        text=content if isinstance(content, str) else "",
        tokens_in=_count(usage, "prompt_tokens"),
        tokens_out=_count(usage, "completion_tokens"),
        cached=_count(details, "cached_tokens"),
    )


def _count(table: Any, name: str) -> int | None:
    value = table.get(name) if isinstance(table, dict) else getattr(table, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _refuse_main(response: Any, config: dict[str, Any], model: str) -> None:
    """See that the main model did not answer in place of another one.

    One such answer is paid for; what matters is that it is the last.

    Raises:
        ModelDownError: it did.
    """
    answered, main = getattr(response, "model", None), main_model(config)
    chain = task_of(config).get("fallback_chain")
    wanted = (
        {model, *(word(entry, "model") for entry in chain or () if isinstance(entry, dict))}
        if isinstance(chain, list)
        else {model}
    )
    if answered == main and main not in wanted:
        raise ModelDownError(
            f"cannot use {model}: Hermes fell back to the main model {main}, which was not "
            "asked for"
        )


def _without_keys(text: str, config: dict[str, Any]) -> str:
    """A text of the host's without what it knows to be secret and without the keys of the
    configuration.
    """
    try:
        text = redact(text)
    except (
        Exception
    ) as error:  # then the reason is told without its words, which nobody has looked through
        logger.debug("optchat: the host could not mask a text: %s", type(error).__name__)
        return "no reason can be shown"
    return masked(text, [word(table, "api_key") for table in (task_of(config), main_of(config))])
