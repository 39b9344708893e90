"""What the host's own database says of where a session came from, and what it costs when it says
nothing.
"""

import sqlite3
import time

import pytest

from optchat.hermes.state_db import NAME, WAIT_S, parent_of


@pytest.fixture
def database(tmp_path):
    db = sqlite3.connect(tmp_path / NAME)
    db.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT)")
    db.executemany("INSERT INTO sessions VALUES (?, ?)", [("branch", "first"), ("first", None)])
    db.commit()
    yield db
    db.close()


def test_a_branch_has_a_parent_and_the_first_has_none(tmp_path, database):
    assert parent_of(tmp_path, "branch") == "first"
    assert parent_of(tmp_path, "first") == parent_of(tmp_path, "unheard of") == ""


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 100])
def test_without_a_database_nothing_is_said_and_none_is_made(tmp_path, content):
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    assert parent_of(tmp_path, "branch") == ""
    assert [path.name for path in tmp_path.iterdir()] == ([] if content is None else [NAME])


def test_a_database_of_another_shape_says_nothing(tmp_path, database):
    database.execute("DROP TABLE sessions")
    database.commit()
    assert parent_of(tmp_path, "branch") == ""


def test_a_locked_database_is_not_waited_for(tmp_path, database):
    database.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    assert parent_of(tmp_path, "branch") == ""
    assert time.monotonic() - began < 10 * WAIT_S


def test_reading_leaves_no_file_behind(tmp_path, database):
    database.close()
    before = (tmp_path / NAME).read_bytes()
    assert parent_of(tmp_path, "branch") == "first"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {NAME: before}
