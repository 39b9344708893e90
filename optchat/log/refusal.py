"""What an operation on a file was refused for, in our own words, with what to do where we
know it.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from ..base.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_HINTS: Final = {
    "ENOSPC": "The disk is full: free some space, then try again",
    "EDQUOT": "Your disk quota is used up: free some space, then try again",
    "EACCES": "Give your user the right to read and write there",
    "EPERM": "Give your user the right to read and write there",
    "EROFS": "The disk is mounted read-only",
    "ELOOP": "It is a symbolic link; put the real file or directory in its place",
    "EEXIST": "A file stands where a directory should be: move it away",
    "EISDIR": "A directory stands where a file should be: move it away",
    "ENOTDIR": "A file stands where a directory should be: move it away",
    "EIO": "The disk reports an error: copy the memory directory to another disk",
}


def refused(act: str, path: Path, error: Exception, *, hint: str = "") -> StoreError:
    """The error of a file operation in our own words, with what to do where we know it."""
    number = getattr(error, "errno", None)
    cause = os.strerror(number) if number else str(error) or type(error).__name__
    failure = StoreError(
        f"{act} {path}: {cause}",
        path=path,
        hint=hint or _HINTS.get(errno.errorcode.get(number or 0, ""), ""),
    )
    failure.errno = number
    return failure
