"""Reads what is noted in ``capture/`` and compares it with the notes the index holds.

Changes nothing; called by ``check.py``.

Notes have no numbers, so that of a bad line only its form tells whether a crash cut it, before
anybody relied on it, or whether it was whole once. Nothing is kept of a note but its print: a log
of a million messages has as many notes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..base.json_line import BadLineError, is_cut
from ..log import reads
from ..log.index import TURN
from ..log.note_lines import LATEST_ONLY, decode_note, encode_note, key_of
from ..log.session_notes import SHORTER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ..log.day_files import DayLog
    from .findings import Report
    from .snapshot import Snapshot


class NotesCheck:
    """One reading of all notes."""

    def __init__(self, log: DayLog, report: Report) -> None:
        self._log = log
        self._report = report
        self._prints: Counter[str] = Counter()  # by type, of all notes that are never replaced
        self._latest: dict[tuple[str, str], int] = {}  # by session and type: the print of the last
        self._keyed: dict[
            tuple[str, str, str], int
        ] = {}  # by session, type and key: the print of the first
        self._turns: set[str] = set()  # that were bound to a message, or settled
        self._told: set[str] = set()  # those of them that no message in the log names

    @property
    def turns_left(self) -> int:
        """How many turns are known to be over by notes alone."""
        return len(self._told)

    def forget_turn(self, turn: str) -> None:
        """A message in the log says that this turn is over."""
        self._told.discard(turn)

    def read(self, known: dict[tuple[str, str], int] | None, damage: Iterable[str]) -> None:
        """Every line of the day files up to where the index knows them, and of the files of notes
        that are on their way there.

        ``damage``: what the index remembers of it. That a whole file has gone shows nowhere else.
        """
        for text in damage:
            if text.startswith("capture/") and text.endswith(SHORTER):
                self._report.damage.add(text)
        for name in self._log.sizes():
            end = None if known is None else known.get((self._log.room, name), 0)
            self._read_file(self._log.path(name), end, self._take)
        for path in sorted(self._log.directory.glob("pending-*.jsonl")):
            self._read_file(path, None, lambda _note: None)

    def compare(self, snapshot: Snapshot) -> None:
        """What the index must hold is what the day files say, but for turns that are over.

        Those it may have forgotten.

        Raises:
            StoreError: the index cannot be read.
        """
        expected, found = Counter(self._prints), Counter[str]()
        for (_, type_), mark in self._latest.items():
            expected[type_] += mark
        for (_, type_, key), mark in self._keyed.items():
            if type_ != "draft" or not self._is_over(key, snapshot):
                expected[type_] += mark
        for session, type_, key, body in snapshot.notes():
            if type_ != "draft" or not self._is_over(key, snapshot):
                found[type_] += _print(session, type_, key, body)
        for type_ in sorted({*expected, *found}):
            if expected[type_] != found[type_]:
                self._report.disagreements.add(
                    f"index.sqlite and capture/ differ in what is noted of the type {type_[:40]!r}"
                )

    # -- inside

    def _is_over(self, token: str, snapshot: Snapshot) -> bool:
        return token in self._turns or snapshot.id_of(TURN + token) is not None

    def _read_file(
        self, path: Path, end: int | None, take: Callable[[dict[str, Any]], None]
    ) -> None:
        for piece in reads.scan(path):
            if end is not None and piece.offset >= end and piece.ended:
                break  # noted since
            if not piece.line.strip():
                continue  # nothing, or something that was redacted as a whole
            try:
                take(decode_note(piece.line))
            except BadLineError as error:
                where = f"capture/{path.name}, byte {piece.offset}"
                if is_cut(piece.line):
                    self._report.notes.add(
                        f"{where}: a line cut by a crash before it was acknowledged; stepped over"
                    )
                else:
                    self._report.damage.add(f"{where}: {error}")

    def _take(self, note: dict[str, Any]) -> None:
        session, type_, key = note["session"], note["type"], key_of(note)
        mark = _print(session, type_, key, encode_note(note)[:-1])
        if type_ in LATEST_ONLY:
            self._latest[session, type_] = mark
        elif key:
            self._keyed.setdefault((session, type_, key), mark)
        else:
            self._prints[type_] += mark
        if type_ in ("bind", "settled") and note.get("turn"):
            self._turns.add(note["turn"])
            self._told.add(note["turn"])


def _print(session: str, type_: str, key: str, body: bytes) -> int:
    return hash((session, type_, key, body)) & (1 << 62) - 1
