"""Taking a source into a memory so that importing it again, grown, renamed or after more was said,
adds only what is new.

What makes an entry new: per session, the n-th time a source says something is new only if the log's
session holds it fewer than n times. So replays add nothing, also of sessions that were captured
live, and real repeats stay repeats.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, Final

from ..base.canon import canon
from ..base.json_line import clean
from .memory_directory import MemoryDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..base.record import Entry
    from ..memory import Memory
    from .rows import Item
    from .sources import Source

BATCH_ENTRIES: Final = 1000
BATCH_CHARS: Final = 8_000_000
"""One durable write for so many entries or so much text, whichever comes first."""
FAULTS_SHOWN: Final = 5
"""Lines that could not be read which are named one by one; the rest are counted."""


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What one import did.

    ``left_out`` counts what is no message of the conversation, by what it is. ``whole``: a memory
    that was taken over with its numbers, and ``lines`` of its tree.
    """

    path: str
    form: str
    added: int = 0
    known: int = 0
    unreadable: int = 0
    faults: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    whole: bool = False
    lines: int = 0

    @property
    def usable(self) -> bool:
        """Whether anything in the source could be read."""
        return bool(self.added or self.known or self.left_out or not self.unreadable)

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "file": self.path,
            "form": self.form,
            "added": self.added,
            "known": self.known,
            "unreadable": self.unreadable,
            "left_out": dict(self.left_out),
            "sessions": len(self.sessions),
            "whole": self.whole,
            "lines": self.lines,
            "faults": self.faults,
        }

    def text(self, typed: Callable[[str], str]) -> str:
        """As lines for people; ``typed`` makes of a command what they have to type for it."""
        lines = [f"{self.path} (read as {self.form})"]
        within = (
            f" in {len(self.sessions):,} session{'' if len(self.sessions) == 1 else 's'}"
            if self.added or self.known
            else ""
        )
        lines.append(
            f"{self.added:,} added, {self.known:,} known already, {self.unreadable:,} "
            f"unreadable{within}"
        )
        lines += [f"left out: {what}: {count:,}" for what, count in self.left_out.most_common()]
        lines += [f"unreadable: {fault}" for fault in self.faults]
        if self.unreadable > len(self.faults):
            lines.append(f"unreadable: {self.unreadable - len(self.faults):,} more")
        if self.whole:
            lines.append(f"Taken over with their numbers, and {self.lines:,} lines of the tree")
            if self.unreadable:
                lines.append(f"To see what cannot be read: {typed('check')}")
        elif self.added:
            lines.append(
                f"Their lines are built while Hermes runs. To build them now: {typed('compact')}"
            )
        return "\n".join(lines)


def import_source(
    memory: Memory, source: Source, progress: Callable[[str, int, int], None]
) -> ImportReport:
    """Record what is new in a source, batch by batch in its order.

    What was recorded stays if a later batch fails.
    """
    report = ImportReport(path=str(source.path), form=source.form)
    if isinstance(source, MemoryDirectory) and _taken_over(memory, source, report, progress):
        return report
    with closing(_Occurrences(memory)) as occurrences:
        for position, entries in _batches(_entries(source, report)):
            fresh = occurrences.new(entries)
            if fresh:
                memory.record(fresh)
            report.added += len(fresh)
            report.known += len(entries) - len(fresh)
            progress("importing", position, source.total)
    return report


def _taken_over(
    memory: Memory,
    source: MemoryDirectory,
    report: ImportReport,
    progress: Callable[[str, int, int], None],
) -> bool:
    taken = memory.take_over(source.path, progress)
    if taken is None:
        return False
    report.added, report.lines, report.unreadable, report.sessions = taken
    report.whole = True
    return True


def _entries(source: Source, report: ImportReport) -> Iterator[tuple[int, Entry]]:
    """The entries of a source, each with a session; counts everything else."""
    own_session = ""
    for item in source.items():
        if item.entry is None:
            _count(item, report)
            continue
        entry = item.entry
        # What a memory holds without a session is known again by having none.
        if not entry.session and not isinstance(source, MemoryDirectory):
            own_session = own_session or _session_name(entry)
            entry = replace(entry, session=own_session)
        report.sessions.add(entry.session)
        yield item.position, entry


def _count(item: Item, report: ImportReport) -> None:
    if item.left_out:
        report.left_out[item.left_out] += 1
        return
    report.unreadable += 1
    if len(report.faults) < FAULTS_SHOWN:
        report.faults.append(f"{item.place} {item.fault}")


def _session_name(first: Entry) -> str:
    """A session for what names none.

    From the source's first entry, so that it stays the same when the file is renamed or grows.
    """
    return f"import-{sha256(clean(f'{first.kind}: {first.text}').encode()).hexdigest()[:12]}"


def _batches(entries: Iterator[tuple[int, Entry]]) -> Iterator[tuple[int, list[Entry]]]:
    batch: list[Entry] = []
    chars = position = 0
    for position, entry in entries:
        batch.append(entry)
        chars += len(entry.text)
        if len(batch) >= BATCH_ENTRIES or chars >= BATCH_CHARS:
            yield position, batch
            batch, chars = [], 0
    if batch:
        yield position, batch


class _Occurrences:
    """How often the log and the source have said each thing, as prints in a scratch table that
    SQLite moves to disk when it grows.

    A dictionary would take some 200 bytes a message, for as many messages as the file has.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._sessions: set[str] = set()
        # The empty name is a database of SQLite's own, in memory or a temporary file, and gone with
        # the connection.
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute(
            "CREATE TABLE said (print BLOB PRIMARY KEY, log INTEGER NOT NULL, source INTEGER "
            "NOT NULL) WITHOUT ROWID"
        )

    def close(self) -> None:
        """Give up the scratch table."""
        self._table.close()

    def new(self, entries: list[Entry]) -> list[Entry]:
        """Those of the entries, which come next in the source, that the log does not hold yet."""
        self._table.execute("BEGIN")
        for session in {entry.session: None for entry in entries}:
            if session not in self._sessions:
                self._sessions.add(session)
                self._load(session)
        fresh = [entry for entry in entries if self._is_new(entry)]
        self._table.execute("COMMIT")
        return fresh

    def _load(self, session: str) -> None:
        add = "INSERT INTO said VALUES (?, 1, 0) ON CONFLICT (print) DO UPDATE SET log = log + 1"
        prints = (
            (key,) for message in self._memory.session_entries(session) for key in _prints(message)
        )
        self._table.executemany(add, prints)

    def _is_new(self, entry: Entry) -> bool:
        keys = _prints(entry)
        add = (
            "INSERT INTO said VALUES (?, 0, 1) ON CONFLICT (print) DO UPDATE SET source = source "
            "+ 1"
        )
        self._table.execute(add, (keys[0],))
        log, source = self._table.execute(
            "SELECT log, source FROM said WHERE print = ?", (keys[0],)
        ).fetchone()
        if source <= log:
            return False
        # The same message under the host's own id: its text may differ, as the host masks secrets
        # differently from turn to turn.
        return all(
            self._table.execute("SELECT 1 FROM said WHERE print = ?", (key,)).fetchone() is None
            for key in keys[1:]
        )


def _prints(entry: Entry) -> list[bytes]:
    """Prints of what an entry says and, if it has one, of the host's id of it.

    Said is the text without outer white space, which hosts strip when they reload, and of the
    user's words the form that survives the host.
    """
    text = canon(entry.text) if entry.kind == "user" else entry.text.strip()
    said = [f"said\0{entry.session}\0{entry.kind}\0{text}"]
    if entry.uid:
        said.append(f"uid\0{entry.session}\0{entry.kind}\0{entry.call}\0{entry.uid}")
    return [blake2b(clean(key).encode(), digest_size=16).digest() for key in said]
