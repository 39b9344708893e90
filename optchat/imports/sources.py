"""Files to import, as a stream of items.

What a file is, told by its content and never by its name, and the readers of line files.

A source reads, it does not judge: whether an entry is new is for ``imports.py``. The reader of
Hermes' database is ``state_db.py``.
"""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

import orjson

from ..base.errors import SourceError
from ..base.record import Entry
from .memory_directory import MemoryDirectory, directory_of
from .rows import Item, NotSaidError, RowError, entries_of, iso_date

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE_BYTES_MAX: Final = 256 << 20
"""A message of 50 MB is read; a file that is one endless line is not."""

_PROBE_BYTES: Final = 64 << 10
_SQLITE_HEAD: Final = b"SQLite format 3\x00"
_PADDING: Final = re.compile(rb"\x00+(?=\r?\n|\Z)")
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class Source(Protocol):
    """A file that can be imported.

    ``total`` and an item's ``position`` are in the same unit, for a progress bar.
    """

    path: Path
    form: str
    total: int

    def items(self) -> Iterator[Item]:
        """Everything in it, in its order, reading as it goes."""
        ...


def open_source(path: Path) -> Source:
    """The source this file is.

    Raises:
        SourceError: it cannot be read, or is none of the forms known.

    """
    try:
        if path.is_dir():
            return _memory_in(path)
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_PROBE_BYTES)
    except FileNotFoundError as error:
        raise SourceError(
            "cannot import: there is no such file", path=path, hint="Check the path"
        ) from error
    except OSError as error:
        raise SourceError(
            f"cannot import: {error.strerror or error}",
            path=path,
            hint="Make it readable, or import a copy",
        ) from error
    if head.startswith(_SQLITE_HEAD):
        from .state_db import HermesDatabase

        return HermesDatabase(path)
    _refuse_unreadable(path, head)
    lines = [
        line.strip()
        for line in head.removeprefix(b"\xef\xbb\xbf").splitlines()
        if line.strip(b" \t\r\n\x00")
    ]
    if any(line.startswith(b"{") for line in lines[:20]):
        return JsonLines(path, size)
    return NoteLines(path, size)


def _memory_in(path: Path) -> Source:
    found = directory_of(path)
    if found is None:
        raise SourceError(
            "cannot import: there is no memory in this directory",
            path=path,
            hint="Name a memory directory, or the file in it, such as state.db",
        )
    return MemoryDirectory(found)


def _refuse_unreadable(path: Path, head: bytes) -> None:
    if not head.strip(b" \t\r\n\x00"):
        raise SourceError("cannot import: the file is empty", path=path, hint="Nothing was changed")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SourceError(
            "cannot import: the file is UTF-16",
            path=path,
            hint=f"Run: iconv -f UTF-16 -t UTF-8 '{path}' > utf8.jsonl",
        )
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"[{", b"[\n", b"[\r\n", b"[ ")):
        hint = f"Make it one object a line: jq -c '.[]' '{path}' > messages.jsonl"
        raise SourceError("cannot import one JSON array", path=path, hint=hint)
    # Padding of fixed-width records is no sign of a binary file; zeros and control characters
    # anywhere else are.
    controls = len(_CONTROLS.findall(_PADDING.sub(b"", head)))
    if controls > len(head) // 100:
        raise SourceError(
            "cannot import a binary file",
            path=path,
            hint="Known are JSONL, a Hermes state.db and an OptMem LOG.txt",
        )


class JsonLines:
    """One JSON object a line.

    A message, or, as ``hermes sessions export`` writes them, a session with its ``messages``.

    A message needs ``role`` or ``kind``, and ``content`` or ``text``; ``date`` or ``timestamp``,
    ``session`` or ``session_id``, ``author``, ``platform``, ``tool``, ``call`` and ``tool_calls``
    are taken where they are. Day files of a memory are of this form.
    """

    form = "JSONL"

    def __init__(self, path: Path, total: int) -> None:
        self.path = path
        self.total = total

    def items(self) -> Iterator[Item]:
        """The messages of each line."""
        for number, end, line in _lines(self.path):
            place = f"line {number}"
            if line is None:
                yield Item(
                    place=place, position=end, fault=f"is longer than {LINE_BYTES_MAX >> 20} MiB"
                )
            elif line.strip():
                yield from self._line_items(place, end, line)

    def _line_items(self, place: str, end: int, line: bytes) -> Iterator[Item]:
        try:
            row = _decode(line)
        except RowError as error:
            yield Item(place=place, position=end, fault=str(error))
            return
        inner = row.get("messages")
        if not isinstance(inner, list):
            yield from _row_items(row, place, end)
            return
        for index, message in enumerate(inner):
            at = f"{place}, message {index + 1}"
            if isinstance(message, dict):
                yield from _row_items(
                    message,
                    at,
                    end,
                    session=str(row.get("id") or ""),
                    platform=str(row.get("source") or ""),
                )
            else:
                yield Item(place=at, position=end, fault="is not a JSON object")


def _row_items(
    row: dict[str, Any], place: str, position: int, *, session: str = "", platform: str = ""
) -> Iterator[Item]:
    try:
        for entry in entries_of(row, session=session, platform=platform):
            yield Item(place=place, position=position, entry=entry)
    except RowError as error:
        yield Item(place=place, position=position, fault=str(error))
    except NotSaidError as reason:
        yield Item(place=place, position=position, left_out=str(reason))


def _decode(line: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        # orjson refuses lone surrogates such as "\ud83d", which JavaScript programs do write; json
        # reads them, and NaN.
        try:
            row = json.loads(line)
        except UnicodeDecodeError as error:
            raise RowError("is not UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise RowError("is not JSON") from error
    if not isinstance(row, dict):
        raise RowError("is not a JSON object")
    return row


_DATE: Final = (
    r"\[?(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: "
    r"?(?:Z|[+-]\d{2}:?\d{2}))?)?)\]?"
)
_NOTE: Final = re.compile(
    rf"(?:(\d+)(?:\+\d+)?\|\s*)?(?:{_DATE}(?:\s*[|:]\s*|\s+|$))?(.*)", re.DOTALL
)


class NoteLines:
    """OptMem's LOG.txt: one memory a line, each becoming a ``note``.

    Its records are padded with spaces to a fixed width; a line of nothing else is a memory that was
    forgotten. Accepted are ``N|text``, ``N date|text``, ``N|date text``, ``date text`` and plain
    text; ids are dropped, because a place in our log is given by our log. A file with other lines
    of text imports just as well, a note a line.
    """

    form = "notes, one a line"

    def __init__(self, path: Path, total: int) -> None:
        self.path = path
        self.total = total

    def items(self) -> Iterator[Item]:
        """The notes, with their dates where they have some."""
        for number, end, line in _lines(self.path):
            place = f"line {number}"
            if line is None:
                yield Item(
                    place=place, position=end, fault=f"is longer than {LINE_BYTES_MAX >> 20} MiB"
                )
                continue
            try:
                text = line.decode().strip(" \t\r\n\x00")
            except UnicodeDecodeError:
                yield Item(place=place, position=end, fault="is not UTF-8")
                continue
            if text:
                yield Item(place=place, position=end, entry=_note(text))


def _note(text: str) -> Entry:
    numbered = re.match(rf"\d+ {_DATE}\|", text)
    if numbered:
        date, text = numbered[1], text[numbered.end() :].strip()
        return Entry(kind="note", text=text, date=iso_date(date))
    match = _NOTE.match(text)
    assert match is not None, "every part of the pattern is optional"
    date, rest = match[2], match[3].strip()
    known = iso_date((date or "").replace(" +", "+").replace(" -", "-"))
    # A line that merely starts like a date, or holds nothing but one, is kept as it was written.
    if not rest or (date and not known):
        return Entry(kind="note", text=text)
    return Entry(kind="note", text=rest, date=known)


def _lines(path: Path) -> Iterator[tuple[int, int, bytes | None]]:
    """Each line with its number and the byte it ends at.

    ``None`` in place of one that is too long to hold in memory.
    """
    end = 0
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            end += len(line)
            if len(line) <= LINE_BYTES_MAX:
                yield number, end, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                continue
            end += _skip_line(file, line)
            yield number, end, None


def _skip_line(file: IO[bytes], line: bytes) -> int:
    skipped = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)
        skipped += len(line)
    return skipped
