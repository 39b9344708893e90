"""What ``hermes memory status`` prints about the memory.

Holds the rows and their words. Opens the memory for reading only, builds nothing and makes no
directory. Called by the provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import OptchatError
from . import config_json, dependencies
from .model import TASK, host_config, named_model

if TYPE_CHECKING:
    from pathlib import Path

    from ..memory.reports import Status


def rows(hermes_home: str | Path) -> dict[str, str]:
    """Label and text of each row.

    A fault is a row as well, so that asking for the status never fails.
    """
    root = config_json.memory_root(hermes_home)
    shown = {"directory": str(root)}
    if lacking := dependencies.advice(dependencies.missing()):
        return {**shown, "not available": lacking}
    if not root.is_dir():
        return {
            **shown,
            "messages": "0 (nothing has been said yet)",
            "model named for lines": _model(),
        }
    from .shared_memories import open_memory

    try:
        with open_memory(root, compact=False) as memory:
            return {**shown, **_rows(memory.status()), "model named for lines": _model()}
    except OptchatError as error:
        return {**shown, "not readable": str(error)}


def _rows(status: Status) -> dict[str, str]:
    from ..commands.output import count, model_rows, remedy

    backlog = count(status.get("lines_ready", 0), "line")
    if behind := status.get("full_text_behind"):
        backlog += f", {count(behind, 'message')} for the full text"
    shown = {
        "messages": f"{status.get('messages', 0):,}",
        "lines built": f"{status.get('lines_built', 0):,}",
        "still to build": backlog,
        "last append": str(status.get("last_append") or "never"),
        "last error": str(status.get("last_error") or "none"),
        "lines written by": str(status.get("summarizer") or "unknown"),
        **dict(model_rows(status.get("model") or {})),
    }
    if todo := remedy(status.get("model") or {}):
        shown["what to do"] = todo
    for number, warning in enumerate(status.get("warnings") or (), start=1):
        shown[f"warning {number}"] = str(warning)
    return shown


def _model() -> str:
    """Which model the host's configuration names for us. Only the host knows."""
    return f"{named_model(host_config()) or 'none'} (auxiliary.{TASK})"
