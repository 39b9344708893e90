"""What every memory must be when a test leaves it."""

import contextlib
import sqlite3


def assert_sound(memory):
    """Nothing of the truth is damaged, and all that is derived from it agrees with it."""
    report = memory.check()
    assert report["damage"] == []
    assert report["disagreements"] == []
    return report


def named(column):
    return f"(SELECT name FROM files f WHERE f.id = {column})"


def index_says(root):
    """All that is derived, without the numbers a making of it gives at will."""
    questions = [
        (
            f"SELECT id, {named('file')}, offset, length, bytes, (SELECT name FROM sessions s "
            "WHERE s.id = session), kind FROM messages ORDER BY id"
        ),
        (
            f"SELECT level, idx, {named('file')}, offset, length, bytes, chars, by, spare FROM "
            "nodes ORDER BY level, idx"
        ),
        "SELECT last, level, bytes, cost, spare FROM ready ORDER BY 1, 2",
        "SELECT uid, id FROM uids ORDER BY 1",
        "SELECT room, name, known FROM files WHERE known > 0 ORDER BY 1, 2",
        "SELECT session, type, key, body FROM notes ORDER BY 1, 2, 3, 4",
    ]
    with contextlib.closing(sqlite3.connect(root / "index.sqlite")) as database:
        return [database.execute(question).fetchall() for question in questions]
