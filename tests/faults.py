"""A file layer that fails, falls short or dies at the n-th operation, in place of the one `storage/files.py` uses.

Operations are the calls that change a disk: opening for writing, write, fsync, ftruncate, replace, unlink and mkdir. SQLite's own files are
not touched: a transaction that is left by an exception is lost as it is in a crash.
"""

import contextlib
import errno
import os
import sys
from pathlib import Path
from unittest import mock

from optchat.storage import files


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
            raise self.how()
        return do()

    def _name_of(self, file):
        return Path(os.readlink(f"/proc/self/fd/{file}")).name

    # -- what storage/files.py calls

    def open(self, path, flags, mode=0o777, **more):
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
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


def no_space():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def disk_error():
    return OSError(errno.EIO, os.strerror(errno.EIO))


@contextlib.contextmanager
def disk(at=None, how=disk_error, *, only=None, for_ever=False, landing=0):
    """Every file operation of the storage room goes through the `Disk` this gives.

    ``at``: the operation that goes wrong, from 0. ``how``: makes what it raises; `Crash` means that nothing works afterwards. ``only``: number
    only operations of this name. ``for_ever``: all later ones fail as well. ``landing``: bytes of a failing write that reach the file.
    """
    one = Disk()
    one.at, one.how, one.only, one.for_ever, one.bytes = at, how, only, for_ever or how is Crash, landing

    def met(name, function):
        def call(self, *args, **options):
            if sys._getframe(1).f_globals is not vars(files):  # the lock library makes directories of its own accord
                return function(self, *args, **options)
            return one._meets(name, self.name, lambda: function(self, *args, **options))

        return call

    with (
        mock.patch.object(files, "os", one),
        mock.patch.object(Path, "replace", met("replace", Path.replace)),
        mock.patch.object(Path, "unlink", met("unlink", Path.unlink)),
        mock.patch.object(Path, "mkdir", met("mkdir", Path.mkdir)),
    ):
        yield one
