"""The host's own database as a witness of which session another was made from.

Only ever read, and never needed: where it is absent, locked, slow or of another shape, what the log
holds has to do. Asked when a list shows words that nobody has announced.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "state.db"
WAIT_S: Final = 0.05
"""Longest a question may take. It is one look-up by the primary key, in a file of any size."""
_STEPS: Final = 1_000
"""Steps of SQLite's between two looks at the clock."""

logger = logging.getLogger(__name__)


def parent_of(home: Path, session: str) -> str:
    """The session that ``session`` was made from, by the host's word; "" where it gives none.

    A branch, a compression that renames, and what a subagent does all have one (hosts 0.19 and
    0.22: hermes_state.py, table ``sessions``): the words of both have to say which it is.
    """
    path = home / NAME
    if not path.is_file():
        return ""
    until = time.monotonic() + WAIT_S
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=WAIT_S)
        ) as db:
            db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            row = db.execute(
                "SELECT parent_session_id FROM sessions WHERE id = ?", (session,)
            ).fetchone()
    except sqlite3.Error as error:
        logger.debug(
            "optchat: %s cannot be asked which session %s is a branch of: %s", path, session, error
        )
        return ""
    return row[0] if row and isinstance(row[0], str) else ""
