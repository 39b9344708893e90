"""The dialogue of ``hermes memory setup optchat``.

Install, ask, say who writes the lines, activate.

Holds the order of these steps and their words. Does not decide what a value may be
(``config_json.py``) or how packages get in (``dependencies.py``). Called by the host through the
provider, on the console, once for each setup.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

from ..base.errors import OptchatError
from ..config_schema import FIELDS, Field
from . import config_json, dependencies
from .model import TASK, main_model, named_model

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES: Final = 3

_NAMING: Final = f"""\
    hermes config set auxiliary.{TASK}.provider auto    # your main provider; \
or openrouter, anthropic, ...
    hermes config set auxiliary.{TASK}.model NAME       # as that provider spells it

  Hermes may call these keys unknown; it keeps them and reads them. A running gateway takes them \
up when it is restarted."""


def run(hermes_home: str, config: dict[str, Any], say: Callable[[str], None] = print) -> None:
    """Set the provider up for one profile.

    ``config`` is the host's configuration; activation is saved into it last.

    Where a package is missing and cannot be installed, nothing is activated: a provider that is
    selected and not available leaves the user without memory, on older hosts without a word.
    """
    say("\n  optchat: endless memory\n")
    if not _install(say):
        return
    try:
        _ask_all(hermes_home, say)
    except OptchatError as error:
        say(f"  {error}\n  Until then the default settings are in force.")
    except KeyboardInterrupt:
        say("\n  Cancelled. Nothing was activated.\n")
        return
    say("\n" + _who_writes(hermes_home, config))
    _activate(config)
    say(f"\n  Memory provider: {config_json.DIRECTORY} (saved to config.yaml)")
    say("  Start a new session to use it. State of the memory: hermes memory status\n")


def _install(say: Callable[[str], None]) -> bool:
    names = dependencies.missing()
    if not names:
        return True
    say(f"  Installing {', '.join(names)} ...")
    complaint = dependencies.install(names)
    if complaint:
        command = shlex.join(dependencies.command(dependencies.missing()))
        say(f"  Could not install them:\n{_indented(complaint)}")
        say(f"  Not activated. Run this, then the setup again:\n    {command}\n")
        return False
    say("  Installed.")
    return True


def _ask_all(hermes_home: str, say: Callable[[str], None]) -> None:
    """Ask for each setting and keep what is answered at once.

    A break-off loses only what was not reached.
    """
    stored = config_json.read_config(hermes_home)
    say(
        f"  Settings, kept in {config_json.config_file(hermes_home)}. Enter keeps the "
        "value in brackets.\n"
    )
    for field in FIELDS:
        if field.asked:
            answer = _ask(field, stored.get(field.key, config_json.default(field)), say)
            if answer is not None:
                config_json.save_config({field.key: answer}, hermes_home)


def _ask(field: Field, current: Any, say: Callable[[str], None]) -> Any:
    """The value the user gives, or None to leave things as they are.

    An empty line, no console, or three bad answers.
    """
    for value, meaning in field.choices:
        say(f"    {value}: {meaning}")
    for _ in range(_TRIES):
        sys.stdout.write(
            f"  {field.label}: {field.description} [{config_json.as_text(current) or 'none'}]: "
        )
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            say("")
        text = line.strip()
        if not text:
            return None
        value = config_json.native(
            field, "" if text.lower() == "none" and field.kind == "json" else text
        )
        try:
            config_json.check(field, value)
        except OptchatError as error:
            say(f"    {error}")
        else:
            return value
    say(f"    Left as it is: {config_json.as_text(current) or 'none'}")
    return None


def _who_writes(hermes_home: str, config: dict[str, Any]) -> str:
    """What is in force for the lines of the view, and what the user may want to do about it."""
    try:
        stored = config_json.read_config(hermes_home)
    except OptchatError:
        stored = {}  # the settings cannot be read, which has been said; the defaults are in force
    chosen, model = stored.get("summarizer", "auto"), named_model(config)
    if chosen == "local":
        return "  Lines are written on this machine, free of cost (summarizer: local)."
    if model:
        return f"  The model {model} writes the lines (auxiliary.{TASK}).\n{_limits(stored)}"
    if chosen == "model":
        main = f" {name}" if (name := main_model(config)) else ""
        return (
            f"  No model is named for writing lines: your MAIN model{main} writes them, at "
            "its price (summarizer: model).\n"
            f"{_limits(stored)}\n  To name a small, cheap one in its place:\n\n{_NAMING}"
        )
    return (
        "  No model is named for writing lines: they are written on this machine, free of "
        "cost; nothing is sent anywhere, and they\n"
        f"  are plainer than a model's. To have a small, cheap one write them:\n\n{_NAMING}"
    )


def _limits(stored: dict[str, Any]) -> str:
    """What is sent to a model, and how much a day."""
    limit = stored.get("compact_tokens_per_day", 5_000_000)
    most = (
        f"at most {limit:,} tokens a day"
        if isinstance(limit, int) and limit > 0
        else "without a limit for a day"
    )
    return (
        f"  What you and your agent say is sent to it, known secrets masked, {most}. Tool output "
        "is summed up here."
    )


def _activate(config: dict[str, Any]) -> None:
    from hermes_cli.config import save_config

    memory = config.get("memory")
    if not isinstance(memory, dict):
        memory = config["memory"] = {}
    memory["provider"] = config_json.DIRECTORY
    save_config(config)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
