"""Another memory's files taken into an empty one: numbers, dates, sessions and lines stay as they
are, whatever format they were written in.

Each line is written anew with a checksum over all of it. One that cannot be read comes over as it
is, for a check to name. Messages come first and then what stands on them, so that what a crash
leaves is a memory, which the rest can be imported into as from any other source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..base.address import Place
from ..base.json_line import BadLineError, encode_line, load_line
from ..base.record import decode_message, decode_node
from . import files, reads
from .redacted import is_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .reads import Piece
    from .store import Store

_BYTES_AT_ONCE: Final = 4 << 20
"""Bytes of one durable write."""


class Taken(NamedTuple):
    """What came over: messages, lines of the tree, lines of either that cannot be read, and the
    sessions of the messages.
    """

    messages: int
    lines: int
    unreadable: int
    sessions: set[str]


def take_over(
    store: Store, source: Path, progress: Callable[[str, int, int], None]
) -> Taken | None:
    """Take in the memory directory ``source``; None, and nothing done, if ours is not empty.

    ``progress``: called as ("importing", bytes, bytes in all).

    Raises:
        LockTimeoutError: another process kept the lock.
        StoreError: the disk refused, or the source cannot be read.
    """
    store.must_be_writable()
    with store.locked(everything=True):
        if store.total():
            return None
        taking = _TakeOver(store.root, source, progress)
        taking.messages()
        taking.lines()
        taking.rest()
        store.rebuild_index()
    return Taken(taking.found, taking.built, taking.unreadable, taking.sessions)


class _TakeOver:
    def __init__(self, root: Path, source: Path, progress: Callable[[str, int, int], None]) -> None:
        self.root, self.source = root, source
        self.progress = progress
        self.found = self.built = self.unreadable = 0
        self.sessions: set[str] = set()
        self.end = 0  # the number behind the last message
        self._bytes = sum(sum(reads.day_files(source / room).values()) for room in ("main", "tree"))
        self._done = 0

    def messages(self) -> None:
        self._copy_room("main", self._message)

    def lines(self) -> None:
        self._copy_room("tree", self._line)

    def rest(self) -> None:
        """Notes, also those on their way into a day file, what calls have cost, and settings.

        Their form is the same in all formats.
        """
        names = [
            f"capture/{name}"
            for name in reads.names_in(self.source / "capture")
            if name.endswith(".jsonl")
        ]
        for name in [*names, "usage.jsonl", "config.json"]:
            data = reads.read_file(self.source / name)
            if data and not (self.root / name).exists():
                files.make_dir((self.root / name).parent)
                files.append(self.root / name, data)

    # -- inside

    def _copy_room(self, room: str, read: Callable[[bytes], bool]) -> None:
        for name in reads.day_files(self.source / room):
            portion: list[bytes] = []
            size = 0
            for piece in reads.scan(self.source / room / name):
                portion += self._written_anew(piece, read)
                size += len(piece.line)
                if size > _BYTES_AT_ONCE:
                    self._write(room, name, portion)
                    portion, size = [], 0
                self._done += len(piece.line) + piece.ended
                self.progress("importing", min(self._done, self._bytes), self._bytes)
            self._write(room, name, portion)

    def _written_anew(self, piece: Piece, read: Callable[[bytes], bool]) -> Iterator[bytes]:
        line, end = piece.line, b"\n" if piece.ended else b""
        if not line or is_blank(line):  # the end of a torn line, or what was redacted as a whole
            yield line + end
            return
        try:
            if read(line):
                fields = {key: value for key, value in load_line(line).items() if key != "crc"}
                yield encode_line(fields)
        except BadLineError:
            self.unreadable += piece.ended
            yield line + end

    def _message(self, line: bytes) -> bool:
        message = decode_message(line)
        self.found += 1
        self.sessions.add(message.session)
        self.end = max(self.end, message.id + 1)
        return True

    def _line(self, line: bytes) -> bool:
        """One above messages that were logged since is left out: it would claim that they are lost.

        It is built again.
        """
        node = decode_node(line)
        is_over = Place(node.level, node.index).end <= self.end
        self.built += is_over
        return is_over

    def _write(self, room: str, name: str, lines: list[bytes]) -> None:
        if lines:
            files.append(self.root / room / name, b"".join(lines))
