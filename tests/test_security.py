"""Who may read a memory, where it writes, and what a text in it can do: nothing but be read."""

import os
import socket
import stat
import time
from contextlib import contextmanager

import pytest
from soundness import assert_sound

from optchat.core.errors import SettingsError, StoreError
from optchat.core.records import Entry
from optchat.core.settings import Settings
from optchat.hermes.configuration import read_config, save_config
from optchat.recall.ledger import Shown


def said(count, start=0):
    return [Entry(kind="user", text=f"message {k} about the harbour", session="s") for k in range(start, start + count)]


@contextmanager
def umask(mask):
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def live(memory):
    """Use all that writes files: messages, lines, view, notes, full text."""
    for first in range(0, 60, 20):
        memory.record(said(20, first))
        memory.settle(30)
        memory.recall("the harbour", "s")
    memory.ledger.offered("s", 60)
    memory.ledger._log.note_shown("s", Shown(60))
    memory.view()


def modes(root):
    found = {path.relative_to(root).as_posix(): stat.S_IMODE(path.lstat().st_mode) for path in [root, *root.rglob("*")]}
    return {name: mode for name, mode in found.items() if mode != (0o700 if (root / name).is_dir() else 0o600)}


SMALL = Settings(view_budget_chars=2_000)


# -- who may read it


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o027])
def test_all_that_is_written_is_for_its_owner_alone_whatever_the_umask(opened, root, mask):
    with umask(mask):
        memory = opened(settings=SMALL, compact=True)
        live(memory)
        save_config({"focus_chars": "3000"}, root.parent)
        assert modes(root) == {}  # while it is open: write-ahead logs and locks are there as well
        memory.close()
    assert modes(root) == {}
    names = {path.name for path in root.rglob("*")}
    assert {"main", "tree", "capture", "2026-05-01.jsonl", "view.json", "index.sqlite", "search.sqlite", "write.lock"} <= names


def test_what_existed_with_wider_rights_is_taken_back_when_it_is_opened(opened, root):
    memory = opened(settings=SMALL)
    live(memory)
    memory.close()
    (root / "config.json").write_text("{}")
    (root / "usage.jsonl").write_text("")
    (root / "notes.txt").write_text("somebody's own")
    for path in [root, *root.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    memory = opened(settings=SMALL)
    memory.record(said(1, 60))
    assert set(modes(root)) == {"notes.txt"}


# -- where it writes


OUTSIDE = ["main", "tree", "capture", "index.sqlite", "index.sqlite-wal", "search.sqlite", "write.lock", "compactor.lock"]


@pytest.fixture
def outside(tmp_path):
    """What must not change, and how it looks."""
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "2026-04-01.jsonl").write_bytes(b'{"i":0,"kind":"user","text":"foreign"}\n')
    (directory / "file").write_bytes(b"precious\n")
    directory.chmod(0o755)
    for path in directory.iterdir():
        path.chmod(0o644)

    def state():
        return {path: (stat.S_IMODE(path.stat().st_mode), path.is_file() and path.read_bytes()) for path in [directory, *directory.rglob("*")]}

    before = state()
    yield directory
    assert state() == before


def a_life(opened, root):
    memory = opened(root, settings=SMALL)
    live(memory)
    memory.close()


@pytest.mark.parametrize("there", [True, False], ids=["existing", "new"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_link_in_place_of_what_is_written_to_is_refused_and_what_it_leads_to_left_alone(opened, root, outside, name, there):
    if there:
        a_life(opened, root)
    root.mkdir(exist_ok=True)
    path = root / name
    if path.is_dir():
        path.rename(root / "away")
    path.unlink(missing_ok=True)
    path.symlink_to(outside if "." not in name else outside / "file")
    with pytest.raises(StoreError, match="symbolic link") as caught:
        opened(root)
    assert name in str(caught.value)
    assert "Put the real" in str(caught.value)


@pytest.mark.parametrize("room", ["main", "tree", "capture"])
def test_a_link_in_place_of_a_day_file_is_refused(opened, root, outside, room):
    a_life(opened, root)
    (root / room / "2026-04-01.jsonl").symlink_to(outside / "2026-04-01.jsonl")
    with pytest.raises(StoreError, match="symbolic link"):
        opened(root)


def test_a_link_in_place_of_what_a_turn_began_is_refused(opened, root, outside):
    a_life(opened, root)
    (root / "capture" / "pending-7-ab.jsonl").symlink_to(outside / "file")
    with pytest.raises(StoreError, match="symbolic link"):
        opened(root)


@pytest.mark.parametrize("name", ["view.json", "context.json", "usage.jsonl"])
def test_a_link_in_place_of_a_derived_file_is_not_followed(opened, root, outside, name):
    a_life(opened, root)
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(outside / "file")
    memory = opened(root, settings=SMALL)
    memory.record(said(60, 60))
    memory.settle(30)
    assert "message 119" in memory.view()


def test_settings_are_not_read_through_a_link_and_the_user_is_told(opened, root, tmp_path):
    root.mkdir()
    (tmp_path / "mine.json").write_text('{"view_budget_chars": 2000}')
    (root / "config.json").symlink_to(tmp_path / "mine.json")
    memory = opened(settings=None)
    assert memory.settings.view_budget_chars == 16_000
    assert "symbolic link" in memory.warnings[0]
    home = tmp_path / "home"
    (home / "optchat").mkdir(parents=True)
    (home / "optchat" / "config.json").symlink_to(tmp_path / "mine.json")
    with pytest.raises(SettingsError, match="symbolic link"):
        read_config(home)
    with pytest.raises(SettingsError, match="symbolic link"):
        save_config({"focus_chars": "3000"}, home)
    assert (tmp_path / "mine.json").read_text() == '{"view_budget_chars": 2000}'


def test_a_memory_may_lie_behind_a_link(opened, tmp_path):
    """People move it to another disk."""
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "memory").symlink_to(tmp_path / "disk")
    memory = opened(tmp_path / "memory", settings=SMALL)
    live(memory)
    assert_sound(memory)
    memory.close()
    assert modes(tmp_path / "disk") == {}
    assert "message 59" in opened(tmp_path / "memory").view()


# -- what a killed process leaves


def test_half_written_files_of_killed_processes_are_removed_but_none_that_is_being_written(opened, root):
    a_life(opened, root)
    old, fresh, foreign = (root / name for name in (".view.json.77.1234.tmp", ".view.json.78.99.tmp", ".view.json.mine.tmp"))
    for path in (old, fresh, foreign):
        path.write_bytes(b"{")
    for path in (old, foreign):
        os.utime(path, (time.time() - 7_200,) * 2)
    opened(root)
    assert not old.exists()
    assert fresh.exists()
    assert foreign.exists()


# -- nobody is called


def test_a_whole_life_with_local_lines_reaches_out_to_nobody(opened, root, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a socket was asked for")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname", "socketpair"):
        monkeypatch.setattr(socket, name, refuse)
    memory = opened(settings=SMALL, compact=True)
    live(memory)
    memory.zoom("0+4")
    memory.search("harbour")
    memory.status()
    assert_sound(memory)


# -- two memories in one process


def test_two_memories_in_one_process_share_neither_files_nor_threads(tmp_path, opened):
    homes = [tmp_path / name for name in ("one", "two")]
    memories = [opened(home, settings=SMALL, compact=True) for home in homes]
    threads = [memory._compactor._thread for memory in memories]
    assert threads[0] is not threads[1]
    for turn in range(40):
        for name, memory in zip(("red", "blue"), memories, strict=True):
            memory.record([Entry(kind="user", text=f"{name} {turn} " + f"{name}word " * 30, session="same", uid=f"u{turn}", turn=f"t{turn}")])
            memory.ledger._log.note_shown("same", Shown(turn))
    for memory in memories:
        assert memory.settle(60)
        memory.recall("word", "same")
    for name, other, memory, home in (("red", "blue", memories[0], homes[0]), ("blue", "red", memories[1], homes[1])):
        assert len(list(memory.session_entries("same"))) == 40
        assert other not in memory.view()
        assert not memory.search(f"{other}word")
        assert memory.search(f"{name}word")
        assert_sound(memory)
        memory.close()
        assert other.encode() not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert not any(thread.is_alive() for thread in threads)


def test_a_memory_writes_nowhere_but_in_its_directory(tmp_path, opened, monkeypatch):
    """Neither the environment's home nor the directory a host changes to is where it writes."""
    for name in ("env", "cwd", "tmp"):
        (tmp_path / name).mkdir()
    for name in ("HERMES_HOME", "HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "env"))
    monkeypatch.chdir(tmp_path)
    memory = opened("memory", settings=SMALL, compact=True)
    monkeypatch.chdir(tmp_path / "cwd")
    live(memory)
    memory.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cwd", "env", "memory", "tmp"]
    assert not any(any((tmp_path / name).iterdir()) for name in ("env", "cwd", "tmp"))
