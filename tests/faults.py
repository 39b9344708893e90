"""A file layer that fails, falls short or dies at the n-th operation, in place of the one
`log/files.py` uses.

Operations are the calls that change a disk: opening for writing, write, fsync, ftruncate, replace,
unlink and mkdir; if asked for, also the commits of SQLite. Its own files are not touched: a
transaction that is left by an exception is lost as it is in a crash.

A ``Plug`` can be pulled besides: it gives the directory as a power cut would leave it, without what
was not synced.
"""

import contextlib
import errno
import os
import shutil
import sqlite3
import sys
from pathlib import Path
from unittest import mock

from optchat.log import files, sqlite


class Crash(BaseException):
    """The process died here: nothing after it may reach the disk."""


class Disk:
    """Counts operations and lets one of them, or all from it on, go wrong."""

    def __init__(self):
        self.operations = []  # (operation, file name), in order
        self.at = None  # number of the operation that goes wrong
        self.only = None  # if set, only operations of this name are numbered
        self.how = None
        self.for_ever = False
        self.late = False
        self.broken = False

    def __getattr__(self, name):
        return getattr(os, name)

    def _meets(self, operation, name, do, short=None):
        if self.only is not None and operation != self.only:
            if self.broken and self.for_ever:
                raise self.how()
            return do()
        number = len(self.operations)
        self.operations.append((operation, name))
        if number == self.at or (self.broken and self.for_ever):
            self.broken = True
            if short is not None:
                short()
            elif self.late and number == self.at:
                do()
            raise self.how()
        return do()

    def heal(self):
        """From now on nothing goes wrong any more."""
        self.at, self.broken = None, False

    def _name_of(self, file):
        return Path(os.readlink(f"/proc/self/fd/{file}")).name

    # -- what log/files.py calls

    def open(self, path, flags, mode=0o777, **more):
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or Path(path).suffix == ".lock":
            return os.open(path, flags, mode, **more)
        return self._meets("open", Path(path).name, lambda: os.open(path, flags, mode, **more))

    def write(self, file, data):
        short = (lambda: os.write(file, data[: self.bytes])) if self.bytes else None
        return self._meets("write", self._name_of(file), lambda: os.write(file, data), short)

    def fsync(self, file):
        return self._meets("fsync", self._name_of(file), lambda: os.fsync(file))

    def ftruncate(self, file, size):
        return self._meets("ftruncate", self._name_of(file), lambda: os.ftruncate(file, size))

    bytes = 0  # of a write that goes wrong, how many land all the same


class Plug(Disk):
    """Remembers what was synced, and can give a directory as it would be found after a power cut.

    A file has the bytes of its last sync; a name is there if its directory was synced since.
    Derived databases and lock files are taken as they are: SQLite syncs by itself, and both may be
    missing.
    """

    def __init__(self):
        super().__init__()
        self._bytes = {}  # inode -> what is safe of it
        self._names = {}  # directory -> {name: inode, or None for a directory}
        self._held = []  # files kept open, so that no inode is used twice

    def watch(self, root):
        """All that is there now is safe."""
        self._sync_dir(root.parent)
        for path in [root, *root.rglob("*")] if root.exists() else []:
            if path.is_dir():
                self._sync_dir(path)
            else:
                self._bytes[path.stat().st_ino] = path.read_bytes()

    def open(self, path, flags, mode=0o777, **more):
        file = super().open(path, flags, mode, **more)
        inode = os.fstat(file).st_ino
        if flags & os.O_CREAT and inode not in self._bytes and not _is_derived(Path(path).name):
            self._bytes[inode] = b""
            self._held.append(os.dup(file))
        return file

    def fsync(self, file):
        super().fsync(file)
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if path.is_dir():
            self._sync_dir(path)
        else:
            self._bytes[os.fstat(file).st_ino] = path.read_bytes()

    def _sync_dir(self, path):
        self._names[path] = (
            {entry.name: None if entry.is_dir() else entry.inode() for entry in os.scandir(path)}
            if path.exists()
            else {}
        )

    def pull(self, root, target, *, names_landed=False):
        """Make ``target`` what is left of ``root``.

        ``names_landed``: what was made, replaced or removed stays so, though nothing synced it.
        """
        if names_landed:
            self._sync_all(root)
        if root.name in self._names[root.parent]:
            self._restore(root, target)
        else:
            target.mkdir()

    def _sync_all(self, root):
        for path in [root.parent, root, *root.rglob("*")] if root.exists() else []:
            if path.is_dir():
                self._sync_dir(path)

    def _restore(self, path, target):
        target.mkdir(mode=0o700)
        for name, inode in self._names.get(path, {}).items():
            if inode is None:
                self._restore(path / name, target / name)
            elif not _is_derived(name):
                (target / name).write_bytes(self._bytes.get(inode, b""))
        for one in path.iterdir() if path.exists() else []:
            if _is_derived(one.name):
                shutil.copy(one, target / one.name)

    def let_go(self):
        while self._held:
            os.close(self._held.pop())


def _is_derived(name):
    return ".sqlite" in name or name.endswith(".lock")


def no_space():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def disk_error():
    return OSError(errno.EIO, os.strerror(errno.EIO))


def _as_sqlite_says_it(error):
    full = error.errno == errno.ENOSPC
    said = sqlite3.OperationalError("database or disk is full" if full else "disk I/O error")
    said.sqlite_errorcode = sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_IOERR_FSYNC
    return said


@contextlib.contextmanager
def disk(
    at=None,
    how=disk_error,
    *,
    only=None,
    for_ever=False,
    landing=0,
    late=False,
    commits=False,
    layer=Disk,
):
    """Every file operation of the storage room goes through the `Disk` this gives.

    ``at``: the operation that goes wrong, from 0. ``how``: makes what it raises; `Crash` means that
    nothing works afterwards. ``only``: number only operations of this name. ``for_ever``: all later
    ones fail as well. ``landing``: bytes of a failing write that reach the file. ``late``: what
    fails has been done all the same. ``commits``: those of SQLite are operations too. ``layer``:
    the class of the disk.
    """
    one = layer()
    one.late = late
    one.at, one.how, one.only, one.for_ever, one.bytes = (
        at,
        how,
        only,
        for_ever or how is Crash,
        landing,
    )

    def met(name, function):
        def call(self, *args, **options):
            if sys._getframe(1).f_globals is not vars(
                files
            ):  # the lock library makes directories of its own accord
                return function(self, *args, **options)
            return one._meets(name, self.name, lambda: function(self, *args, **options))

        return call

    def execute(self, sql, *values, real=sqlite.Database.execute):
        if sql != "COMMIT":
            return real(self, sql, *values)
        try:
            return one._meets("commit", self.path.name, lambda: real(self, sql, *values))
        except OSError as error:
            raise _as_sqlite_says_it(error) from error

    with (
        mock.patch.object(sqlite.Database, "execute", execute)
        if commits
        else contextlib.nullcontext(),
        mock.patch.object(files, "os", one),
        mock.patch.object(Path, "replace", met("replace", Path.replace)),
        mock.patch.object(Path, "unlink", met("unlink", Path.unlink)),
        mock.patch.object(Path, "mkdir", met("mkdir", Path.mkdir)),
    ):
        yield one
