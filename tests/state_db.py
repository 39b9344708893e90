"""Makes Hermes databases for tests.

The tables of both hosts as far as they matter, and what a host does to them over time.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

A_COLUMNS = """id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT, tool_call_id TEXT,
tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0,
api_content TEXT"""
B_COLUMNS = (
    A_COLUMNS
    + ", _compressed_summary INTEGER NOT NULL DEFAULT 0, display_kind TEXT, message_uid TEXT"
)
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into this summary."


@dataclass
class StateDb:
    """A database being written, as a host writes it.

    ``newer`` adds the columns of the later host, ids of messages among them.
    """

    path: Path
    newer: bool = False
    clock: float = 1_772_600_000.0
    uids: int = 0
    live: dict[str, list[dict]] = field(default_factory=dict)

    def __post_init__(self):
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute(f"CREATE TABLE messages ({B_COLUMNS if self.newer else A_COLUMNS})")
        self.db.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, "
            "parent_session_id TEXT, end_reason TEXT, model_config TEXT,"
            " display_name TEXT, chat_type TEXT, started_at REAL)"
        )

    def session(self, name, source="cli", **more):
        row = {"id": name, "source": source, "started_at": self.clock, **more}
        self.db.execute(
            f"INSERT INTO sessions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            tuple(row.values()),
        )
        self.live[name] = []
        return name

    def say(self, session, role, content, **more):
        """A message as it is stored when it is said.

        A moment of its own, and on the newer host an id of its own.
        """
        self.clock += 7.25
        self.uids += 1
        row = {"role": role, "content": content, "timestamp": self.clock, **more}
        if self.newer:
            row.setdefault("message_uid", f"{self.uids:032x}")
        self._insert(session, row)
        self.live[session].append(row)

    def turn(self, session, user, answer):
        self.say(session, "user", user)
        self.say(session, "assistant", answer)

    def compress(self, session, head, tail, *, child=None, keep_dates=False):
        """What a compression leaves.

        Head, a summary and tail of the list stored anew, in one burst; in a child session or in
        place.
        """
        old = self.live[session]
        summary = {"role": "assistant", "content": SUMMARY}
        if self.newer:
            self.uids += 1
            summary |= {"_compressed_summary": 1, "message_uid": f"{self.uids:032x}"}
        # A host rolls an older summary into the new one: neither the head nor the tail it keeps has
        # one in it.
        old_summary = next(
            (index for index, row in enumerate(old) if row["content"] == SUMMARY), None
        )
        head = min(head, len(old) if old_summary is None else old_summary)
        tail = min(tail, len(old) - max(head, 0 if old_summary is None else old_summary + 1))
        new = [
            dict(row) for row in (*old[:head], summary, *(old[len(old) - tail :] if tail else []))
        ]
        self.clock += 3
        for row in new:
            if not keep_dates or "timestamp" not in row:
                row["timestamp"] = self.clock
            self.clock = max(self.clock, row["timestamp"]) + 1e-6
        if child is None:
            self.db.execute(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1",
                (session,),
            )
        else:
            self.db.execute(
                "UPDATE sessions SET end_reason = 'compression' WHERE id = ?", (session,)
            )
            self.session(child, parent_session_id=session)
        for row in new:
            self._insert(child or session, row)
        self.live[child or session] = new

    def branch(self, session, child):
        self.session(
            child, parent_session_id=session, model_config=json.dumps({"_branched_from": session})
        )
        for row in self.live[session]:
            copy = dict(row)
            if not self.newer:
                self.clock += 0.004
                copy["timestamp"] = self.clock
            self._insert(child, copy)
            self.live[child].append(copy)

    def close(self):
        self.db.close()
        return self.path

    def _insert(self, session, row):
        row = {"session_id": session, **row}
        self.db.execute(
            f"INSERT INTO messages ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            tuple(row.values()),
        )
