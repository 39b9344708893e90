"""Bytes to disk: locks, durable appends, atomic replacement.

Knows no records; reading is in ``reads.py``.

The only module that opens files for writing, fsyncs, replaces or locks, so that every promise about
durability is kept (and can be broken by a test) in one place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import BaseFileLock, FileLock, Timeout

from ..base.errors import LockTimeoutError, StoreError
from . import reads
from .refusal import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_POLL_S: Final = 0.002
"""The lock library's own 50 ms makes eight writers wait up to 0.3 s for each other.

At 2 ms the 95th percentile is 24 ms.
"""

_BESIDE: Final = re.compile(r"\.(?:format|(?:view|config|context)\.json)\.[0-9]+\.[0-9]+\.tmp")
_BESIDE_S: Final = 3_600
"""A file beside the one it is to replace is written in milliseconds.

One this old (s) is nobody's any more.
"""

_LED_NOWHERE: Final = re.compile(r"format|(?:config|view|context)\.json|usage\.jsonl")
"""Never read through a link, and replaced or left alone where one stands."""

_OURS: Final = re.compile(
    r"main|tree|capture|format|(?:index|search)\.sqlite(?:-wal|-shm|-journal)?|(?:write|compactor"
    r"|pending-[\w-]+)\.lock|pending-[\w-]+\.jsonl"
    rf"|{reads.DAY_FILE.pattern}|{_BESIDE.pattern}|{_LED_NOWHERE.pattern}"
)

_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)


class Lock:
    """An exclusive lock between processes and between threads.

    The file is never deleted and its existence means nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Held for as long as the lock is; it may be given back by another thread.
        self._mutex = threading.Lock()
        self._lock = _file_lock(path)

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock; whether it was had in time. Not twice by one thread.

        Raises: StoreError: the lock cannot be had at all: no permission, no directory, a disk
        without locks.
        """
        until = time.monotonic() + timeout_s
        if not self._mutex.acquire(timeout=timeout_s):
            return False
        had = False
        try:
            had = self._take(until)
        finally:
            if not had:
                self._mutex.release()
        return had

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()
        with contextlib.suppress(
            RuntimeError
        ):  # in a child that was forked while its parent held it
            self._mutex.release()

    def renew(self) -> None:
        """Forget, in a forked child, that it was held.

        The old one is kept: thrown away, it would give back what the parent holds.
        """
        _inherited.append(self._lock)
        self._mutex = threading.Lock()
        self._lock = _file_lock(self.path)

    @contextlib.contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock for a block.

        Raises:
            LockTimeoutError: another process kept it for ``timeout_s`` seconds.

        """
        if not self.acquire(timeout_s):
            raise LockTimeoutError(
                f"cannot lock {self.path}: another process has held it for {timeout_s:g} s",
                path=self.path,
                hint="If no process of yours is busy with this memory, one of them hangs: end it",
            )
        try:
            yield
        finally:
            self.release()

    def _take(self, until: float) -> bool:
        try:
            try:
                self._lock.acquire(
                    timeout=max(0.0, until - time.monotonic()), poll_interval=LOCK_POLL_S
                )
            except (
                FileNotFoundError
            ):  # the directory was removed under us: what is said now is logged all the same
                make_dir(self.path.parent)
                self._lock.acquire(
                    timeout=max(0.0, until - time.monotonic()), poll_interval=LOCK_POLL_S
                )
        except Timeout:
            return False
        except (OSError, NotImplementedError) as error:
            lockless = isinstance(error, NotImplementedError) or error.errno in _LOCKLESS
            raise refused(
                "cannot lock", self.path, error, hint=_NO_LOCKS if lockless else ""
            ) from error
        return True


_LOCKLESS: Final = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)
_NO_LOCKS: Final = "This disk knows no locks: keep the memory on a local disk"
_inherited: Final[list[BaseFileLock]] = []


def _file_lock(path: Path) -> BaseFileLock:
    try:
        # Without this the library may, on disks without flock, fall back to a marker file, which
        # outlives a killed owner.
        return FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)
    except TypeError:  # a release from before the fallback existed
        return FileLock(path, mode=0o600, thread_local=False)


TORN: Final = b"\n\n"
"""Put after a line that has no end.

The newline that it lacks, and an empty line, which says that it was cut and never acknowledged.
"""


def make_dir(path: Path) -> None:
    """Make a directory only its owner may enter, and see to it that what is there of ours is only
    for the owner too.

    The directory itself may be a link, to another disk perhaps; nothing of ours in it may.

    Raises:
        StoreError: it cannot be made, or something in it leads elsewhere.
    """
    try:
        _make_durable(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o700)
        with os.scandir(path) as entries:
            for entry in entries:
                if _OURS.fullmatch(entry.name) and entry.is_symlink():
                    _refuse_link(path, entry)
                elif _OURS.fullmatch(entry.name) and entry.is_file():
                    _look_after(path / entry.name, entry)
    except StoreError:
        raise
    except OSError as error:
        raise refused("cannot make", path, error) from error


def _make_durable(path: Path) -> None:
    """Make a directory, and what leads to it, so that a power cut cannot take it away with all that
    was logged in it.
    """
    if not path.exists():
        if not path.parent.exists():
            _make_durable(path.parent)
        path.mkdir(exist_ok=True, mode=0o700)
    with os.scandir(path) as entries:
        if any(True for _ in entries):
            return
    # Empty: just made, perhaps by a process that was killed before it came to this. A parent may be
    # closed to our eyes and not ours.
    with contextlib.suppress(PermissionError):
        _sync_dir(path.parent)


def _refuse_link(directory: Path, entry: os.DirEntry[str]) -> None:
    """Through a link in the place of a room, a database or a lock we would write to, or empty, a
    file of somebody else's.

    One to nowhere in the place of a day file is no danger: nothing is read through it, and
    appending to it is refused.
    """
    if _LED_NOWHERE.fullmatch(entry.name) or (
        reads.is_day_file(entry.name) and not entry.is_file()
    ):
        return
    raise StoreError(
        f"cannot use {directory / entry.name}: it is a symbolic link",
        path=directory / entry.name,
        hint=(
            "Put the real file or directory in its place; to have the memory elsewhere, link its "
            "whole directory"
        ),
    )


def _look_after(path: Path, entry: os.DirEntry[str]) -> None:
    """Take back rights of others.

    Remove what a process that was killed has left of a file it was replacing.
    """
    with contextlib.suppress(FileNotFoundError):
        found = entry.stat(follow_symlinks=False)
        if _BESIDE.fullmatch(entry.name) and abs(time.time() - found.st_mtime) > _BESIDE_S:
            path.unlink()
        elif stat.S_IMODE(found.st_mode) & 0o077 and os.name != "nt":
            # Disks that know no rights refuse this: the memory is as open there as all else is, and
            # not to be refused for it.
            with contextlib.suppress(PermissionError):
                path.chmod(0o600)


def make_scratch() -> Path:
    """A directory of this process's own, on the disk for temporary files.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=_scratch_prefix()))
    except OSError as error:
        raise refused("cannot make", Path(tempfile.gettempdir()), error) from error


def remove_scratch(path: Path) -> None:
    """Remove such a directory with all that is in it; a forked child leaves its parent's alone."""
    if path.name.startswith(_scratch_prefix()):
        shutil.rmtree(path, ignore_errors=True)


def _scratch_prefix() -> str:
    return f"optchat-{os.getpid()}-"


def make_private(path: Path) -> None:
    """Make a file only its owner may read, also if it existed with wider rights.

    Databases would be made readable to all.

    A file that exists is never opened: closing it again would take away the locks this process
    holds on it as a database, and the next process to leave would then delete the write-ahead log
    that others still write to.
    """
    try:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC | _BINARY, 0o600))
        except FileExistsError:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                path.chmod(0o600)
    except OSError as error:
        raise refused("cannot make", path, error) from error


def append(path: Path, data: bytes) -> int:
    """Append to a file and return, once it is on the disk, the offset at which ``data`` begins.

    A torn tail left by a crash is ended first, so that it cannot swallow the first new line.

    Raises: StoreError: nothing was added, as far as the disk lets us say so; the same data may be
    appended again.
    """
    try:
        file = os.open(
            path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _CLOEXEC | _NOFOLLOW | _BINARY, 0o600
        )
    except OSError as error:
        raise refused("cannot append to", path, error) from error
    try:
        before = os.fstat(file).st_size
        lead = TORN if before and _last_byte(file, before) != b"\n" else b""
        try:
            # and not afterwards: killed in between, we would leave a file whose name nobody makes
            # durable any more
            if not before:
                _sync_dir(path.parent)
            _write_all(file, lead + data)
            os.fsync(file)
        except BaseException:
            _cut_back(file, before)
            raise
    except OSError as error:
        raise refused("cannot append to", path, error) from error
    finally:
        os.close(file)
    return before + len(lead)


def write_over(path: Path, edits: list[tuple[int, bytes, bytes]]) -> None:
    """Write other bytes over some of a file, each time as many.

    (offset, what is there, what shall be). Durable when it returns.

    Nothing moves, so that whoever reads the file or appends to it meanwhile is not disturbed.

    Raises:
        StoreError: something else is there, or the disk refuses.
    """
    if not edits:
        return
    try:
        file = os.open(path, os.O_RDWR | _CLOEXEC | _NOFOLLOW | _BINARY)
        try:
            for offset, old, new in edits:
                os.lseek(file, offset, os.SEEK_SET)
                if reads.read_exactly(file, len(old)) != old or len(new) != len(old):
                    raise StoreError(
                        f"cannot write over {path}: it has changed at byte {offset}", path=path
                    )
                os.lseek(file, offset, os.SEEK_SET)
                _write_all(file, new)
            os.fsync(file)
        finally:
            os.close(file)
    except StoreError:
        raise
    except OSError as error:
        raise refused("cannot write over", path, error) from error


def replace_file(path: Path, data: bytes) -> None:
    """Put ``data`` in place of a file, so that a reader finds the old content or the new, never a
    part.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC | _BINARY, 0o600)
        try:
            _write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        beside.replace(path)
        _sync_dir(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise refused("cannot replace", path, error) from error


def remove_files(*paths: Path) -> None:
    """Remove derived files where they exist."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise refused("cannot remove", path, error) from error


def _write_all(file: int, data: bytes) -> None:
    """Write everything: the system may take only a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _cut_back(file: int, size: int) -> None:
    """Take back what a failed append left.

    Where even that fails, the next append ends the torn line with a newline.
    """
    with contextlib.suppress(OSError):
        os.ftruncate(file, size)
        os.fsync(file)


def _last_byte(file: int, size: int) -> bytes:
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1)


def _sync_dir(path: Path) -> None:
    """Make a new name durable.

    Without this a file's bytes may be safe and the file itself gone after a power cut.
    """
    if os.name == "nt":
        return
    directory = os.open(path, os.O_RDONLY | _CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
