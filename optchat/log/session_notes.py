"""``capture/``.

Notes about sessions (begun turns, host ids, what was shown), first in a file of one's own, then in
the day's.

A turn that begins must be on disk at once and may wait for nobody, so a process jots it down in
``pending-<process>.jsonl``. Whoever next commits under the write lock moves its own notes into the
day file, and those of processes that died. What is already settled by a message in the log is not
moved: the log says it. Meaning is ``capture/``'s; this keeps the lines and finds them by session.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from typing import TYPE_CHECKING, Any, Final

from ..base.errors import LockTimeoutError, OptchatError
from ..base.json_line import BadLineError, clean
from ..base.record import Entry
from . import files, forks, reads
from .day_files import DayLog, names_near
from .index import TURN
from .note_lines import LATEST_ONLY, decode_note, encode_note, key_of
from .recovery import LOCK_WAIT_S
from .redacted import blank, is_blank
from .sqlite import DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from ..base.record import Message
    from .index import Index
    from .reads import Piece
    from .redacted import Traces
    from .store import Store

Note = dict[str, Any]
SHORTER: Final = "is gone or shorter than it was"
_PENDING: Final = "pending-"
_CLOSE_WAIT_S: Final = 1.0


class NoteLog:
    """The notes of one memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log = DayLog(store.root / "capture")
        if not store.read_only:
            files.make_dir(self._log.directory)
        self._own: _Pending | None = None
        self._mutex = threading.Lock()
        forks.watch(self)
        self._generation = -1

    def close(self) -> None:
        """Move what is jotted down into the day file.

        What cannot be moved is for the next process to find.
        """
        forks.forget(self)
        own = self._own
        if own is None:
            return
        with contextlib.suppress(OptchatError):
            if own.read():
                self.commit("", [], [], timeout_s=_CLOSE_WAIT_S)
        own.close()
        self._own = None

    def before_fork(self) -> None:
        """Nothing is held that could not be inherited."""

    def after_fork(self, *, child: bool) -> None:
        """A child jots down in a file of its own: the parent goes on with the one it has."""
        if child:
            self._mutex = threading.Lock()
            if self._own is not None:
                self._own.disown()
                self._own = None

    @property
    def log(self) -> DayLog:
        """The day files of notes."""
        return self._log

    # -- writing

    def append_pending(self, note: Note) -> None:
        """Keep a note; durable when this returns. Waits for no other process.

        Raises:
            StoreError: it could not be kept.

        """
        self._store.must_be_writable()
        with self._mutex:
            if self._own is None or self._was_removed():
                self._own = _Pending.of_this_process(self._log.directory)
            self._own.add(note)

    def commit(
        self,
        session: str,
        entries: list[Entry],
        notes: Sequence[Note],
        *,
        still: Callable[[], bool] = lambda: True,
        timeout_s: float | None = None,
        listed: bool = True,
    ) -> list[Message] | None:
        """Log entries of a session and the notes that go with them.

        None, and nothing written, if ``still`` says no under the lock.

        ``listed``: they come of a host's list, which holds what was kept aside for the session too.
        Entries first: a note lost to a crash in between is found to be missing by whoever next
        reads the host's list.

        Raises:
            LockTimeoutError: another process kept the lock; nothing was written.
            StoreError: the disk refused; the same call may be made again.
        """
        self._store.must_be_writable()
        with (
            self._store.locked(timeout_s=LOCK_WAIT_S if timeout_s is None else timeout_s),
            self._mutex,
        ):
            self._take_in()
            if not still():
                return None
            messages = self._store.record(entries)
            dead = [
                pending
                for path in self._pending_paths()
                if (pending := _Pending.claim_orphan(path))
            ]
            try:
                own = self._own.read() if self._own else []
                left = [note for pending in dead for note in pending.read()]
                kept_aside = [note for note in (*left, *own) if note["type"] == "batch"]
                # One of our own for this session is left out where its host's list has just brought
                # the same entries in again; without a list it is all there is of them.
                again = [note for note in own if listed and note["session"] == session]
                self._land(note for note in kept_aside if note not in again)
                moved = [
                    note
                    for note in (*left, *own)
                    if note["type"] != "batch" and not self._is_there(note)
                ]
                self._append([*moved, *notes])
                for pending in (*dead, *([self._own] if own and self._own else [])):
                    pending.empty()
            finally:
                for pending in dead:
                    pending.close()
        return messages

    def erase(self, traces: Traces, message: Message | None) -> None:
        """Take a logged message's words out of all notes, also those other processes still keep for
        themselves; under the store's lock.

        Of a turn that is logged the note is not needed any more; from what was kept aside the
        message is taken out.
        """
        with self._mutex:
            paths = [self._log.path(name) for name in self._log.sizes()] + self._pending_paths(
                own=True
            )
            tokens = {message.turn} - {""} if message is not None else set()
            for path in paths:
                tokens |= {
                    note["turn"]
                    for _, note in _picked(path, b'"bind"')
                    if note.get("id") == traces.id and note.get("turn")
                }
            marks = tuple(
                mark for mark in (traces.core, *(token.encode() for token in tokens)) if mark
            )
            for path in paths:
                edits = []
                for piece in reads.scan(path):
                    new = (
                        self._without(piece.line, traces, message, tokens)
                        if any(mark in piece.line for mark in marks)
                        else piece.line
                    )
                    if traces.is_remains(piece.line, decode_note):
                        new = blank(piece.line)
                    if new != piece.line:
                        edits.append((piece.offset, piece.line, new))
                files.write_over(path, edits)

    # -- reading

    def notes(self, type_: str, *, session: str = "", key: str = "", after: int = 0) -> list[Note]:
        """Notes of a type, of one session or with one key, oldest first.

        Each with its ``seq`` if it is in a day file (0: not yet).
        """
        session, key = clean(session), clean(key)  # as they were written
        where, values = ["type = ?", "seq > ?"], [type_, after]
        for column, value in (("session", session), ("key", key)):
            if value:
                where.append(f"{column} = ?")
                values.append(value)
        # What is jotted down first: a note on its way into the day file is then seen twice, never
        # not at all.
        jotted = [
            note
            for path in self._pending_paths(own=True)
            for note in _read(path)
            if note["type"] == type_
        ]
        sql = f"SELECT seq, body FROM notes WHERE {' AND '.join(where)} ORDER BY seq"
        kept = self._kept(sql, tuple(values))
        there = {(note["session"], key_of(note)) for note in kept if key_of(note)}
        return kept + [
            note | {"seq": 0}
            for note in jotted
            if session in ("", note["session"])
            and key in ("", key_of(note))
            and (note["session"], key_of(note)) not in there
            and not self._is_closed(note)
        ]

    def _kept(self, sql: str, values: tuple[Any, ...]) -> list[Note]:
        """From the index.

        Asked again where it was made anew meanwhile, because then it holds no notes until they are
        taken in.
        """
        found: list[Note] = []
        for _ in range(2):
            looked = self._follow()
            generation, found = self._store.read(
                lambda index: (index.generation(), _decoded(index.rows(sql, values)))
            )
            if generation == looked:
                break
        return found

    def last_seq(self) -> int:
        """The number of the newest note in the day files."""
        rows = self._store.read(lambda index: index.rows("SELECT max(seq) FROM notes", ()))
        return rows[0][0] or 0

    @contextlib.contextmanager
    def caught_up(self) -> Iterator[None]:
        """Hold the write lock, with all that the day files have in the index."""
        with self._store.locked():
            self._take_in(everything=True)
            yield

    # -- inside

    def _is_closed(self, note: Note) -> bool:
        """Whether a turn that began is in the log or settled."""
        return (
            note["type"] == "draft"
            and self._store.read(lambda index: index.id_of(TURN + note["token"])) is not None
        )

    def _is_there(self, note: Note) -> bool:
        """Whether a note need not be moved.

        Its turn is closed, or who moved it was killed before it could take it out of its own file.
        """
        asked = note["session"], note["type"], key_of(note)
        sql = "SELECT 1 FROM notes WHERE session = ? AND type = ? AND key = ?"
        return self._is_closed(note) or (
            bool(asked[2]) and bool(self._store.read(lambda index: index.rows(sql, asked)))
        )

    def _without(
        self, line: bytes, traces: Traces, message: Message | None, tokens: set[str]
    ) -> bytes:
        try:
            note = decode_note(line)
        except BadLineError:
            return line
        if note["type"] == "draft" and self._is_closed(note):
            return (
                blank(line) if note["token"] in tokens or traces.holds(note.get("text")) else line
            )
        if (
            note["type"] != "batch"
            or message is None
            or note["session"] != message.session
            or note["first"] > message.id
        ):
            return line
        # Left in, it would be logged once more by the process that keeps it: it is not what the log
        # holds any more.
        left = _without_entry_of(message, note["entries"])
        if len(left) == len(note["entries"]):
            return line
        return encode_note(note | {"entries": left})[:-1].ljust(len(line)) if left else blank(line)

    def _land(self, batches: Iterable[Note]) -> None:
        """Log what another's or an earlier attempt could not, except what has come into the log
        since by another way.
        """
        for batch in batches:
            entries = [Entry(**fields) for fields in batch["entries"]]
            there = [
                (m.kind, m.text.strip())
                for m in self._store.session_messages(batch["session"], batch["first"])
            ]
            missing: list[Entry] = []
            for entry in entries:
                if (entry.kind, entry.text.strip()) in there:
                    there.remove((entry.kind, entry.text.strip()))
                elif (
                    not entry.turn
                    or self._store.read(lambda index, e=entry: index.id_of(TURN + e.turn)) is None  # type: ignore[misc]
                ):
                    missing.append(entry)
            self._store.record(missing)

    def _was_removed(self) -> bool:
        """Whether the room was deleted under us; if so it is there again, and empty."""
        if self._log.directory.exists():
            return False
        files.make_dir(self._log.directory)
        if self._own is not None:
            self._own.close()
            self._own = None
        return True

    def _append(self, notes: list[Note]) -> None:
        if not notes:
            return
        self._was_removed()
        now = self._store.clock()
        dated = [
            {
                "type": note["type"],
                "session": note["session"],
                "date": now.isoformat(timespec="seconds"),
            }
            | note
            for note in notes
        ]
        lines = [encode_note(note) for note in dated]
        # The last note of a kind counts, and notes have no numbers: a clock that was put back must
        # not put them before older ones.
        ((newest,),) = self._store.read(
            lambda index: index.rows("SELECT max(name) FROM files WHERE room = 'capture'")
        )
        spots = self._log.append(lines, now, not_before=newest if reads.is_day_file(newest) else "")
        end = spots[-1].offset + spots[-1].length + 1
        self._store.update_index(
            lambda index: _add(index, [decode_note(line) for line in lines], spots[-1].name, end)
        )

    def _follow(self) -> int:
        """Before a reading: see that all notes are in the index, if that was made anew.

        The making of it that was looked at.
        """
        generation = self._store.read(lambda index: index.generation())
        if generation == self._generation:
            return generation
        with contextlib.suppress(
            LockTimeoutError
        ):  # the next reading tries again, and the next commit takes in what is missing
            if self._log.sizes() != self._store.read(lambda index: index.known("capture")):
                with self._store.locked():
                    self._take_in(everything=True)
            self._generation = generation
        return generation

    def _take_in(self, *, everything: bool = False) -> None:
        """Under the lock.

        Bring into the index what the day files have beyond it; all of them, if the index was made
        anew.
        """
        known = self._store.read(lambda index: index.known("capture"))
        names = (
            {*known, *self._log.sizes()}
            if everything or not known
            else {*names_near(self._store.clock()), max(known)}
        )
        sizes = {name: self._log.size(name) for name in sorted(names)}
        if shorter := [name for name, size in sizes.items() if size < known.get(name, 0)]:
            self._store.rebuild_if_stale(f"a file in capture/ {SHORTER}")
            # Nothing else would ever show it: notes have neither numbers nor lines that stand on
            # them.
            for name in shorter:
                self._store.update_index(
                    lambda index, day=name: index.note_damage("capture", day, sizes[day], SHORTER)  # type: ignore[misc]
                )
            known, sizes = {}, self._log.sizes()
        for name, size in sizes.items():
            if size > known.get(name, 0):
                self._store.update_index(
                    lambda index, day=name: _add(  # type: ignore[misc]
                        index, *self._read_day(day, known.get(day, 0), index)
                    )
                )

    def _read_day(self, name: str, offset: int, index: Index) -> tuple[list[Note], str, int]:
        notes: list[Note] = []
        for piece in self._log.scan(name, offset):
            try:
                if piece.line and not is_blank(piece.line):
                    notes.append(decode_note(piece.line))
            except BadLineError as error:
                if not piece.ended:
                    break
                index.note_damage("capture", name, piece.offset, str(error))
            offset = piece.offset + len(piece.line) + piece.ended
        return notes, name, offset

    def _pending_paths(self, *, own: bool = False) -> list[Path]:
        mine = self._own.path.name if self._own else ""
        names = (
            name
            for name in reads.names_in(self._log.directory)
            if name.startswith(_PENDING) and name.endswith(".jsonl")
        )
        return [self._log.directory / name for name in names if own or name != mine]


class _Pending:
    """One process's notes that are not in a day file yet, and the lock that says the process is
    alive.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = files.Lock(path.with_suffix(".lock"))
        self.alone = self._lock.acquire(0.0)

    @classmethod
    def of_this_process(cls, directory: Path) -> _Pending:
        """A file nobody else has, and whose name tells which process to look for when it
        grows old.
        """
        return cls(directory / f"{_PENDING}{os.getpid()}-{secrets.token_hex(4)}.jsonl")

    @classmethod
    def claim_orphan(cls, path: Path) -> _Pending | None:
        """The notes of a process that is gone; None while it lives."""
        found = cls(path)
        return found if found.alone else None

    def add(self, note: Note) -> None:
        files.append(self.path, encode_note(note))

    def read(self) -> list[Note]:
        return _read(self.path)

    def empty(self) -> None:
        """All of it is elsewhere now.

        The file goes as a whole, so that a reader finds either all notes or none.
        """
        files.remove_files(self.path)

    def close(self) -> None:
        """Let the lock go, and its file too where there is nothing left to guard."""
        if not self.path.exists():
            with contextlib.suppress(OptchatError):
                files.remove_files(self._lock.path)
        self._lock.release()

    def disown(self) -> None:
        """Forget it without a trace: it belongs to the parent of this process."""
        self._lock.renew()


def _without_entry_of(message: Message, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was kept aside, without the entry that has become this message in another way."""
    said = (message.kind, message.text.strip())
    by_turn = [
        at for at, entry in enumerate(entries) if message.turn and entry["turn"] == message.turn
    ]
    by_words = [
        at for at, entry in enumerate(entries) if (entry["kind"], entry["text"].strip()) == said
    ]
    gone = next(iter(by_turn + by_words), len(entries))
    return entries[:gone] + entries[gone + 1 :]


def _picked(path: Path, mark: bytes) -> Iterator[tuple[Piece, Note]]:
    """The notes of a file whose lines hold some bytes."""
    for piece in reads.scan(path):
        if mark in piece.line:
            with contextlib.suppress(BadLineError):
                yield piece, decode_note(piece.line)


def _read(path: Path) -> list[Note]:
    notes = []
    for piece in reads.scan(path):
        with contextlib.suppress(BadLineError):  # a note cut by a crash was never acknowledged
            notes.append(decode_note(piece.line))
    return notes


def _decoded(rows: list[tuple[int, bytes]]) -> list[Note]:
    """Notes out of the index, each with its number.

    Their checksums are kept there too: a damaged page can hold anything.
    """
    try:
        return [decode_note(body) | {"seq": seq} for seq, body in rows]
    except BadLineError as error:
        raise DamagedError(f"index.sqlite is damaged: a note in it {error}") from error


def _add(index: Index, notes: list[Note], name: str, end: int) -> None:
    """Bring the notes of a day file up to ``end`` into the index's tables, but for settled turns
    and what is out of date.
    """
    for note in notes:
        if note["type"] in LATEST_ONLY:
            index.write(
                "DELETE FROM notes WHERE session = ? AND type = ?",
                [(note["session"], note["type"])],
            )
        index.write(
            "INSERT INTO notes (session, type, key, body) SELECT ?1, ?2, ?3, ?4 WHERE ?3 = '' "
            "OR NOT EXISTS (SELECT 1 FROM notes WHERE session = ?1 AND type = ?2 AND key = ?3)",
            [(note["session"], note["type"], key_of(note), encode_note(note)[:-1])],
        )
    turns = [
        (TURN + note["turn"], note.get("id") or -1)
        for note in notes
        if note["type"] in ("bind", "settled") and note.get("turn")
    ]
    index.write("INSERT OR IGNORE INTO uids VALUES (?, ?)", turns)
    index.write(
        (
            "DELETE FROM notes WHERE type = 'draft' AND EXISTS (SELECT 1 FROM uids WHERE uid = "
            f"'{TURN}' || notes.key)"
        ),
        [()],
    )
    index.set_known("capture", name, end)
