"""The packages optchat needs beyond the host's, and how they get there.

Holds the list, the check for what is missing, and the installation into the running Python's
environment. Imports none of them. Called by the provider (is it available?), by setup, and by the
status rows: one check, so that they cannot disagree.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import Final

REQUIREMENTS: Final = {
    "orjson": "orjson>=3.9",
    "filelock": "filelock>=3.31",
    "pydantic": "pydantic>=2.5",
    "rich": "rich>=13",
}
"""Module name, and what an installer is asked for.

The same list stands in pyproject.toml and, by name, in plugin.yaml.
"""

_INSTALL_TIMEOUT_S: Final = 300


def missing() -> list[str]:
    """The modules that cannot be imported, found without importing them: some cost a second."""
    return [name for name in REQUIREMENTS if not _present(name)]


def advice(names: list[str]) -> str:
    """One sentence saying what is missing and how to get it; empty when nothing is."""
    if not names:
        return ""
    return (
        f"optchat needs {', '.join(names)}, not installed for {sys.executable}. Run: hermes "
        "memory setup optchat"
    )


def command(names: list[str]) -> list[str]:
    """The command that installs these modules for this Python: pip where it has one, else uv."""
    wanted = [REQUIREMENTS[name] for name in names]
    uv = shutil.which("uv")
    if find_spec("pip") is None and uv:
        return [uv, "pip", "install", "--python", sys.executable, *wanted]
    return [sys.executable, "-m", "pip", "install", *wanted]


def install(names: list[str]) -> str:
    """Install these modules.

    The last lines of the installer's complaint, or an empty string when they can be imported now.
    """
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command with our own list of names
            command(names),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_INSTALL_TIMEOUT_S,
            check=False,
        )
        output = done.stderr.strip() or done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        output = str(error)
    # Without this the import system goes on believing its listing of site-packages from before.
    importlib.invalidate_caches()
    if not missing():
        return ""
    return "\n".join(output.splitlines()[-4:]) or "the installer said nothing"


def _present(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:
        # A module already loaded without a spec, as by a test or a frozen program: it is there.
        return True
