"""optchat: endless memory for an AI agent.

This package is also the plugin directory of a Hermes memory provider.

Holds ``register``, which the host calls for every agent it builds, and the public names, each
loaded when first asked for. Imports nothing but the standard library while it is being loaded: the
host hides a provider whose import fails, and then nobody could install what it lacks. (The host
finds us by the words MemoryProvider and register_memory_provider near the top of this file.)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base.errors import OptchatError
    from .base.record import Entry
    from .base.settings import Settings
    from .memory import Memory

__all__ = ["Entry", "Memory", "OptchatError", "Settings", "register"]

_HOMES = {
    "__version__": ".base.version",
    "Entry": ".base.record",
    "Memory": ".memory",
    "OptchatError": ".base.errors",
    "Settings": ".base.settings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def register(ctx: Any) -> None:
    """Give the host a provider, and where it can be told of one, the name of the task our model
    calls run under.
    """
    from .hermes import lists
    from .hermes.model import TASK, TIMEOUT_S
    from .hermes.provider import OptchatProvider

    ctx.register_memory_provider(OptchatProvider())
    lists.follow(ctx)
    # Host 0.19 hands over a context without this method, and an AttributeError here would cost it
    # the provider.
    if hasattr(ctx, "register_auxiliary_task"):
        ctx.register_auxiliary_task(
            TASK,
            display_name="optchat memory lines",
            description=(
                "writes the one-line summaries of past messages; a small, cheap model is enough"
            ),
            defaults={"timeout": TIMEOUT_S},
        )
