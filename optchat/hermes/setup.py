"""The dialogue of ``hermes memory setup optchat``: install, ask, say who writes the lines, activate.

Holds the order of these steps and their words. Does not decide what a value may be (``configuration.py``) or how packages get in
(``dependencies.py``). Called by the host through the provider, on the console, once for each setup.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

from ..config_schema import FIELDS, Field
from ..core.errors import OptchatError
from . import configuration, dependencies
from .model import TASK, named_model

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES: Final = 3

_SNIPPET: Final = f"""\
    auxiliary:
      {TASK}:
        provider: auto            # your main provider; or openrouter, anthropic, custom, ...
        model: some-small-model   # its name as that provider spells it"""


def run(hermes_home: str, config: dict[str, Any], say: Callable[[str], None] = print) -> None:
    """Set the provider up for one profile. ``config`` is the host's configuration; activation is saved into it last.

    Where a package is missing and cannot be installed, nothing is activated: a provider that is selected and not available leaves
    the user without memory, on older hosts without a word.
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
    say(f"\n  Memory provider: {configuration.DIRECTORY} (saved to config.yaml)")
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
    """Ask for each setting and keep what is answered at once: a break-off loses only what was not reached."""
    stored = configuration.read_config(hermes_home)
    say(f"  Settings, kept in {configuration.config_file(hermes_home)}. Enter keeps the value in brackets.\n")
    for field in FIELDS:
        if field.asked:
            answer = _ask(field, stored.get(field.key, configuration.default(field)), say)
            if answer is not None:
                configuration.save_config({field.key: answer}, hermes_home)


def _ask(field: Field, current: Any, say: Callable[[str], None]) -> Any:
    """The value the user gives, or None to leave things as they are: an empty line, no console, or three bad answers."""
    for value, meaning in field.choices:
        say(f"    {value}: {meaning}")
    for _ in range(_TRIES):
        sys.stdout.write(f"  {field.label}: {field.description} [{configuration.as_text(current) or 'none'}]: ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            say("")
        text = line.strip()
        if not text:
            return None
        value = configuration.native(field, "" if text.lower() == "none" and field.kind == "json" else text)
        try:
            configuration.check(field, value)
        except OptchatError as error:
            say(f"    {error}")
        else:
            return value
    say(f"    Left as it is: {configuration.as_text(current) or 'none'}")
    return None


def _who_writes(hermes_home: str, config: dict[str, Any]) -> str:
    """What is in force for the lines of the view, and what the user may want to do about it."""
    try:
        chosen = configuration.read_config(hermes_home).get("summarizer", "auto")
    except OptchatError:
        chosen = "auto"  # the settings cannot be read, which has been said; the default is in force
    model = named_model(config)
    if chosen == "local":
        return "  Lines are written on this machine, free of cost (summarizer: local)."
    if model:
        return f"  The model {model} is named for writing lines (auxiliary.{TASK})."
    price = (
        "  Until then your MAIN model writes the lines, at its price (summarizer: model)."
        if chosen == "model"
        else "  Until then lines are written on this machine: free of cost, nothing is sent anywhere, plainer than a model's."
    )
    return (
        "  No model is named for writing lines. To name a small, cheap one, add this to config.yaml\n"
        f"  (under its `auxiliary:` line, where it has one):\n\n{_SNIPPET}\n\n{price}"
    )


def _activate(config: dict[str, Any]) -> None:
    from hermes_cli.config import save_config

    memory = config.get("memory")
    if not isinstance(memory, dict):
        memory = config["memory"] = {}
    memory["provider"] = configuration.DIRECTORY
    save_config(config)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
