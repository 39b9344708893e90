"""Bytes to disk and back: what an append promises when the disk does not play along, and locks."""

import os
import stat
import threading
import time

import faults
import pytest
from filelock import FileLock, Timeout

from optchat.base.errors import LockTimeoutError, StoreError
from optchat.log import files, reads


@pytest.fixture
def day(tmp_path):
    return tmp_path / "2026-05-01.jsonl"


def test_an_append_says_where_its_bytes_lie(day):
    assert files.append(day, b"one\n") == 0
    assert files.append(day, b"two\n") == 4
    assert reads.read_at(day, 4, 3) == b"two"
    assert reads.read_many(day, [(4, 3), (0, 3)]) == [b"two", b"one"]


def test_a_torn_tail_is_ended_before_something_new_is_written(day):
    day.write_bytes(b"whole\nto")
    assert files.append(day, b"new\n") == 10
    assert (
        day.read_bytes() == b"whole\nto\n\nnew\n"
    )  # the empty line says that the one before was cut


def test_an_append_is_synced_and_so_is_the_name_of_a_new_file(day):
    with faults.disk() as disk:
        files.append(day, b"one\n")
        files.append(day, b"two\n")
    steps = [step for step, _ in disk.operations]
    assert steps == ["open", "fsync", "write", "fsync", "open", "write", "fsync"]
    assert disk.operations[1][1] == day.parent.name


@pytest.mark.parametrize("how", [faults.no_space, faults.disk_error])
@pytest.mark.parametrize("before", [b"", b"old\n", b"old\nto"])
def test_a_failed_append_leaves_the_file_as_it_was_whichever_step_fails(day, before, how):
    day.write_bytes(before)
    with faults.disk() as disk:
        files.append(day, b"x" * 50 + b"\n")
    steps = len(disk.operations)
    assert steps == (3 if before else 4)
    for step in range(steps):
        day.write_bytes(before)
        with faults.disk(at=step, how=how, landing=7), pytest.raises(StoreError):
            files.append(day, b"x" * 50 + b"\n")
        assert day.read_bytes() == before


def test_a_failed_append_leaves_no_new_file_that_looks_written(day):
    for step in range(1, 4):
        with faults.disk(at=step, landing=3), pytest.raises(StoreError):
            files.append(day, b"one\n")
        assert reads.size_of(day) == 0
    assert files.append(day, b"one\n") == 0


def test_a_write_that_takes_only_a_part_is_gone_on_with(day, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:3]))
    files.append(day, b"0123456789\n")
    assert day.read_bytes() == b"0123456789\n"


def test_an_interrupted_append_is_cut_back_too(day):
    day.write_bytes(b"old\n")
    for step in ("write", "fsync"):
        with (
            faults.disk(at=0, how=KeyboardInterrupt, only=step, landing=2),
            pytest.raises(KeyboardInterrupt),
        ):
            files.append(day, b"new\n")
        assert day.read_bytes() == b"old\n"


def test_an_append_through_a_symbolic_link_is_refused(day, tmp_path):
    day.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        files.append(day, b"one\n")
    assert not (tmp_path / "elsewhere").exists()


def test_files_and_directories_are_only_for_their_owner(tmp_path, day):
    old = os.umask(0)
    try:
        files.make_dir(tmp_path / "a" / "b")
        files.append(day, b"one\n")
        files.replace_file(tmp_path / "view.json", b"{}")
        files.make_private(tmp_path / "x.sqlite")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert {
        stat.S_IMODE(p.stat().st_mode) for p in (day, tmp_path / "view.json", tmp_path / "x.sqlite")
    } == {0o600}


def test_wider_rights_of_what_exists_are_taken_back(tmp_path):
    (tmp_path / "wide").mkdir(mode=0o755)
    (tmp_path / "x.sqlite").touch(mode=0o644)
    files.make_dir(tmp_path / "wide")
    files.make_private(tmp_path / "x.sqlite")
    assert stat.S_IMODE((tmp_path / "wide").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "x.sqlite").stat().st_mode) == 0o600


@pytest.mark.parametrize("how", [faults.disk_error, faults.Crash])
def test_a_replaced_file_is_the_old_one_or_the_new_whichever_step_fails(tmp_path, how):
    path = tmp_path / "view.json"
    with faults.disk() as disk:
        files.replace_file(path, b"old")
    for step in range(len(disk.operations)):
        files.replace_file(path, b"old")
        with faults.disk(at=step, how=how), pytest.raises((StoreError, faults.Crash)):
            files.replace_file(path, b"new")
        assert path.read_bytes() in (b"old", b"new")
        if how is faults.disk_error:
            assert os.listdir(tmp_path) == ["view.json"]


def test_lines_are_scanned_with_their_places(day):
    day.write_bytes(b"one\n\nthree\nfo")
    assert list(reads.scan(day)) == [
        (0, b"one", True),
        (4, b"", True),
        (5, b"three", True),
        (11, b"fo", False),
    ]
    assert list(reads.scan(day, 5)) == [(5, b"three", True), (11, b"fo", False)]
    assert list(reads.scan(day.with_name("none"))) == []


def test_only_day_files_are_listed_and_one_that_vanishes_does_not_hide_the_others(tmp_path):
    (tmp_path / "2026-05-01.jsonl").write_bytes(b"12345")
    (tmp_path / "2026-04-30.jsonl").write_bytes(b"1")
    (tmp_path / "2026-05-02.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "2026-05-03.jsonl").mkdir()
    (tmp_path / "notes.jsonl").write_bytes(b"1")
    assert reads.day_files(tmp_path) == {"2026-04-30.jsonl": 1, "2026-05-01.jsonl": 5}


def test_errors_say_the_act_the_thing_the_cause_and_what_to_do(tmp_path):
    (tmp_path / "main").write_bytes(b"")
    with pytest.raises(StoreError) as caught:
        files.make_dir(tmp_path / "main")
    assert "cannot make" in str(caught.value)
    assert str(tmp_path / "main") in str(caught.value)
    assert "A file stands where a directory should be" in str(caught.value)
    with pytest.raises(StoreError, match="A file stands where a directory should be"):
        files.append(tmp_path / "main" / "2026-05-01.jsonl", b"x")


def test_a_lock_keeps_threads_and_other_lock_objects_out(tmp_path):
    one, other = files.Lock(tmp_path / "write.lock"), files.Lock(tmp_path / "write.lock")
    had = []
    with one.held(1):
        thread = threading.Thread(target=lambda: had.append((one.acquire(0.05), other.acquire(0))))
        thread.start()
        thread.join()
    assert had == [(False, False)]
    assert other.acquire(0)
    other.release()


def test_a_lock_that_is_not_had_says_so_in_time(tmp_path):
    lock = files.Lock(tmp_path / "write.lock")
    held, let_go = threading.Event(), threading.Event()

    def hold():
        with files.Lock(tmp_path / "write.lock").held(1):
            held.set()
            let_go.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    began = time.monotonic()
    with pytest.raises(LockTimeoutError, match="another process has held it"), lock.held(0.2):
        pass
    assert 0.15 < time.monotonic() - began < 2
    let_go.set()
    thread.join()
    with lock.held(1):
        pass


def test_an_old_lock_file_means_nothing(tmp_path):
    (tmp_path / "write.lock").write_bytes(b"12345")
    with files.Lock(tmp_path / "write.lock").held(0.5):
        pass


def test_a_lock_that_cannot_be_made_is_a_plain_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(StoreError, match="cannot lock"),
        files.Lock(tmp_path / "file" / "write.lock").held(0.1),
    ):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_forked_while_the_lock_is_held_leaves_it_to_its_parent(tmp_path):
    lock, other = files.Lock(tmp_path / "write.lock"), files.Lock(tmp_path / "write.lock")
    with lock.held(1):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                lock.renew()
                lock.release()
                status = 0 if not lock.acquire(0.05) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not other.acquire(0)
    assert other.acquire(0)
    other.release()


def test_a_lock_whose_file_was_replaced_is_that_of_the_new_file(tmp_path):
    one, other = files.Lock(tmp_path / "write.lock"), files.Lock(tmp_path / "write.lock")
    with one.held(1):
        (tmp_path / "write.lock").unlink()
        with other.held(1):
            assert not one._mutex.acquire(blocking=False)
            assert not files.Lock(tmp_path / "write.lock").acquire(0)


def test_the_lock_of_the_library_and_ours_keep_each_other_out(tmp_path):
    """Another release of this package may be at work on the same memory."""
    with files.Lock(tmp_path / "write.lock").held(1), pytest.raises(Timeout):
        FileLock(tmp_path / "write.lock").acquire(timeout=0.05)
    with FileLock(tmp_path / "write.lock"):
        assert not files.Lock(tmp_path / "write.lock").acquire(0.05)
