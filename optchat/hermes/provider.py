"""The memory provider: every hook of the host, each a few lines onto the memory.

Holds what one agent's session is to us: its memory, its capture, and whether it may write. Keeps no conversation of its own; what
must survive is on disk. The host builds one provider for every agent and calls its hooks from several threads at once.
"""

from __future__ import annotations

import logging
from typing import Any

from agent.memory_provider import MemoryProvider

from . import configuration, dependencies, status, tools
from .hooks import Troubles

logger = logging.getLogger(__name__)

READ_ONLY = frozenset({"cron", "subagent", "flush"})
"""Contexts and platforms whose words are a program's: they may look, and leave nothing behind."""


class OptchatProvider(MemoryProvider):  # type: ignore[misc] # the host's types are unknown where this is checked
    """Endless memory for one agent."""

    def __init__(self) -> None:
        self.troubles = Troubles()

    @property
    def name(self) -> str:
        """What the host's configuration calls us."""
        return configuration.DIRECTORY

    def is_available(self) -> bool:
        """Whether everything we need can be imported. Asked for every agent, and by listings: no import, no disk."""
        return not dependencies.missing()

    def unavailable_reason(self) -> str:
        """What is missing and how to get it; newer hosts show it."""
        return dependencies.advice(dependencies.missing())

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Begin a session."""

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools."""
        return [dict(schema) for schema in tools.SCHEMAS]

    def get_config_schema(self) -> list[dict[str, Any]]:
        """The questions of setup."""
        return configuration.schema()

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Merge answers into the settings of a profile. Raises what the host shows: a value that cannot be used."""
        configuration.save_config(values, hermes_home)

    def post_setup(self, hermes_home: str, config: dict[str, Any]) -> None:
        """The whole of ``hermes memory setup optchat``; the host does nothing after it."""
        from . import setup

        setup.run(hermes_home, config)

    def get_status_config(self, _provider_config: dict[str, Any]) -> dict[str, str]:
        """The rows of ``hermes memory status``."""
        from hermes_constants import get_hermes_home

        return status.rows(get_hermes_home())
