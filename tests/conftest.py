"""What every test stands on.

An environment without a user's profile or keys, no network, and a memory that is checked when it is
left.
"""

import os
import socket
import sqlite3
from pathlib import Path

import pytest
from clock import Clock
from hypothesis import settings
from soundness import assert_sound

from optchat.base.settings import Settings
from optchat.log import sqlite
from optchat.memory import Memory

_FOREIGN = (
    "HERMES_",
    "OPTCHAT_",
    "OPENAI_",
    "ANTHROPIC_",
    "OPENROUTER_",
    "GEMINI_",
    "GOOGLE_",
    "MISTRAL_",
    "GROQ_",
    "XAI_",
    "DEEPSEEK_",
)

settings.register_profile("quick", max_examples=10)
_FULL = settings.get_profile("default").max_examples
_SLOW = {"test_crash.py", "test_damage.py", "test_fuzz.py", "test_model_processes.py"}
"""Files whose tests strike at every operation or every byte of whole lives, or live whole lives of
several processes.
"""


def pytest_itemcollected(item):
    """A quick run leaves the slow files out, and tries fewer examples."""
    if item.path.name in _SLOW:
        item.add_marker("slow")
    if settings.default.max_examples < _FULL:
        _tries_less(getattr(item, "obj", None), settings.default.max_examples)


def _tries_less(test, usual):
    """A test that names a number of examples tries the same share of them as one that names none.

    Never less than those.
    """
    own = getattr(
        test, "_hypothesis_internal_use_settings", None
    )  # there is no public way to ask a test for its settings
    if own is None or own.max_examples <= usual or hasattr(test, "examples_named"):
        return
    test.examples_named = own.max_examples  # a test with parameters is collected once for each
    test._hypothesis_internal_use_settings = settings(
        own, max_examples=max(usual, own.max_examples * usual // _FULL)
    )


@pytest.fixture(autouse=True)
def _no_profile_and_no_network(monkeypatch):
    """A test that forgets to say which home or which model it means must fail, not use the ones of
    whoever runs it.
    """
    for name in list(os.environ):
        if name.startswith(_FOREIGN) or name.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(name)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk():
    """No test pulls the plug; those about durability count the syncs (``faults.py``).

    Waiting for each would take minutes. Also the fixtures that several tests share do without.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        # Both: SQLite syncs as it begins its log, and we then set what is right for users.
        patch.setattr(sqlite3, "connect", _unsynced(sqlite3.connect))
        patch.setattr(sqlite, "connect", _unsynced(sqlite.connect))
        yield


def _unsynced(connect):
    def unsynced(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    return unsynced


def _guarded(connect):
    def guarded(self, address):
        if (
            self.family != getattr(socket, "AF_UNIX", None)
            and str(address[0]) not in ("localhost", "::1")
            and not str(address[0]).startswith("127.")
        ):
            raise AssertionError(f"a test reaches out to {address}")
        return connect(self, address)

    return guarded


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def root(tmp_path):
    """Where a memory may be; nothing is there yet."""
    return tmp_path / "memory"


@pytest.fixture
def opened(root, clock):
    """Opens memories that are closed when the test ends, without a background thread unless asked
    for.
    """
    memories = []

    def open_(path: Path | None = None, **options):
        options = {"settings": Settings(), "compact": False, "clock": clock} | options
        memories.append(Memory.open(path or root, **options))
        return memories[-1]

    yield open_
    for memory in memories:
        memory.close()


@pytest.fixture
def memory(opened):
    """A new memory; when the test ends it must be sound."""
    memory = opened()
    yield memory
    assert_sound(memory)
