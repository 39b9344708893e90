"""Which model of the host's writes our lines.

Holds the name of the auxiliary task and how the host's configuration names a model for it. Does not
call a model, ``model_client.py`` does. Called by that module, by setup and by status.
"""

from __future__ import annotations

from typing import Any, Final

TASK: Final = "optchat_compact"

TIMEOUT_S: Final = 180.0
"""How long a call may take where ``auxiliary.optchat_compact.timeout`` does not say.

The host's own 30 seconds are too short for a model on the user's machine to read a view of the
memory, and what times out is paid for and asked again.
"""


def task_of(config: Any) -> dict[str, Any]:
    """What the host's configuration says about our task."""
    auxiliary = config.get("auxiliary") if isinstance(config, dict) else None
    task = auxiliary.get(TASK) if isinstance(auxiliary, dict) else None
    return task if isinstance(task, dict) else {}


def named_model(config: Any) -> str:
    """The model ``auxiliary.optchat_compact`` names, or an empty string.

    The host reads a missing model, and the word ``auto``, as "the main model": that is no model
    named for this, and using it would spend the user's dearest tokens unasked.
    """
    name = word(task_of(config), "model")
    return "" if name.lower() == "auto" else name


def main_of(config: Any) -> dict[str, Any]:
    """What the host's configuration says about the main model."""
    main = config.get("model") if isinstance(config, dict) else None
    return main if isinstance(main, dict) else {"default": main} if isinstance(main, str) else {}


def main_model(config: Any) -> str:
    """The name of the main model, or an empty string."""
    return word(main_of(config), "default")


def word(table: dict[str, Any], key: str) -> str:
    """A text of a configuration, without outer white space; empty where there is none."""
    value = table.get(key)
    return value.strip() if isinstance(value, str) else ""


def host_config() -> dict[str, Any]:
    """The configuration of the profile in force, as the host itself reads it."""
    from hermes_cli.config import load_config

    config = load_config()
    return config if isinstance(config, dict) else {}
