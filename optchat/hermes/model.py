"""Which model of the host's writes our lines.

Holds the name of the auxiliary task and how the host's configuration names a model for it. Does not call a model.
Called by the provider, setup and status.
"""

from __future__ import annotations

from typing import Any, Final

TASK: Final = "optchat_compact"


def named_model(config: Any) -> str:
    """The model ``auxiliary.optchat_compact`` names, or an empty string.

    The host reads a missing model, and the word ``auto``, as "the main model": that is no model named for this, and using it
    would spend the user's dearest tokens unasked.
    """
    auxiliary = config.get("auxiliary") if isinstance(config, dict) else None
    task = auxiliary.get(TASK) if isinstance(auxiliary, dict) else None
    model = task.get("model") if isinstance(task, dict) else None
    name = model.strip() if isinstance(model, str) else ""
    return "" if name.lower() == "auto" else name


def host_config() -> dict[str, Any]:
    """The configuration of the profile in force, as the host itself reads it."""
    from hermes_cli.config import load_config

    config = load_config()
    return config if isinstance(config, dict) else {}
