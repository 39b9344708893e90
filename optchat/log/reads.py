"""Files read: whole, at an offset, line by line; and what is known of them without opening.

Opens nothing for writing.

Knows no records. What cannot be read is an error in our own words; what is not there is empty,
because a file may go at any time.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from .refusal import refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY_FILE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.jsonl")

_CHUNK: Final = 1 << 20
_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)


class Piece(NamedTuple):
    """One line of a file.

    Where it begins, its bytes without the newline, and whether a newline ends it.
    """

    offset: int
    line: bytes
    ended: bool


def read_file(path: Path) -> bytes | None:
    """The content of a small file, or None where there is none. Nothing is read through a link."""
    try:
        file = os.open(path, os.O_RDONLY | _CLOEXEC | _NOFOLLOW | _BINARY)
        try:
            return read_exactly(file, os.fstat(file).st_size)
        finally:
            os.close(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused("cannot read", path, error) from error


def read_at(path: Path, offset: int, length: int) -> bytes:
    """``length`` bytes from ``offset``; fewer where the file ends before, none where it is gone."""
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            return read_exactly(file.fileno(), length)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise refused("cannot read", path, error) from error


def read_many(path: Path, spots: list[tuple[int, int]]) -> list[bytes]:
    """The pieces (offset, length) of one file, opened once."""
    try:
        with path.open("rb", buffering=0) as file:
            pieces = []
            for offset, length in spots:
                file.seek(offset)
                pieces.append(read_exactly(file.fileno(), length))
            return pieces
    except FileNotFoundError:
        return [b""] * len(spots)
    except OSError as error:
        raise refused("cannot read", path, error) from error


def scan(path: Path, offset: int = 0) -> Iterator[Piece]:
    """The lines of a file from ``offset`` on, in bounded memory (but for one line that is itself
    large).
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for raw in file:
                ended = raw.endswith(b"\n")
                yield Piece(offset, raw[:-1] if ended else raw, ended)
                offset += len(raw)
    except FileNotFoundError:
        return
    except OSError as error:
        raise refused("cannot read", path, error) from error


def day_files(directory: Path) -> dict[str, int]:
    """Name and bytes of every ``YYYY-MM-DD.jsonl`` in a directory, by name."""
    found: dict[str, int] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                # One that is gone since, or a link to nowhere, must not make the whole log look
                # empty: its ids would be given anew.
                with contextlib.suppress(FileNotFoundError):
                    if is_day_file(entry.name) and entry.is_file():
                        found[entry.name] = entry.stat().st_size
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise refused("cannot list", directory, error) from error
    return dict(sorted(found.items()))


def is_day_file(name: object) -> bool:
    """Whether this is the name of a day file; a damaged index may offer anything for one."""
    return isinstance(name, str) and DAY_FILE.fullmatch(name) is not None


def size_of(path: Path | str) -> int:
    """Bytes of a file, 0 where there is none."""
    try:
        # A path object for each would double the cost of an append's checks.
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def identity_of(path: Path) -> tuple[int, int] | None:
    """Device and inode: whether a path still leads to the file that was opened."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def names_in(directory: Path) -> list[str]:
    """The names of what is in a directory, in order; none where there is no such directory."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise refused("cannot list", directory, error) from error


def version_of(path: Path) -> tuple[int, int, int] | None:
    """Changes whenever a file was replaced: inode, size and modification time in ns."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def read_exactly(file: int, length: int) -> bytes:
    """Up to ``length`` bytes.

    In portions, because a length out of a damaged index can be anything.
    """
    data = os.read(file, min(length, _CHUNK))
    if len(data) == length:
        return data
    pieces = [data]
    while data and (length := length - len(data)):
        data = os.read(file, min(length, _CHUNK))
        pieces.append(data)
    return b"".join(pieces)
