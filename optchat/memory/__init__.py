"""One object per memory directory: record what is said, show the past, open it, find things in it.

Joins the rooms; decides nothing they could decide. Any number of these objects, in any number of
processes, may be open on one directory at once.
"""

from __future__ import annotations

import codecs
import logging
import threading
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import orjson

from ..base.address import parse_address
from ..base.cost import Costs
from ..base.errors import AddressError, OptchatError, StoreError
from ..base.json_line import clean
from ..base.settings import Settings, read_settings
from ..capture.disk_store import DiskStore
from ..compaction import usage, usage_sums
from ..log import forks, reads
from ..log.format import UPGRADE
from ..log.fulltext import Search
from ..log.recovery import LOCK_WAIT_S
from ..log.session_notes import NoteLog
from ..log.store import Store
from ..log.takeover import take_over
from ..recall import zoom
from ..recall.excerpt import excerpt, spans_of
from ..recall.recall import Recall
from ..recall.search import hits
from ..recall.shown import Shown, ShownNotes, standing_in
from ..tree.live_view import LiveView
from ..tree.spans import gaps
from . import check
from .builder import TreeBuilder, costs_built
from .copies import Copies
from .hiding import HiddenNotes
from .mark import LogMark
from .redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from ..base.record import Entry, Message
    from ..compaction.model import Model
    from ..compaction.scheduler import Compactor
    from ..log.takeover import Taken
    from ..recall.search import Hit
    from ..recall.shown import Standing
    from .reports import CheckReport, RedactReport, Status

FOLLOW_WAIT_S: Final = 0.05
"""Longest the compactor waits to merge the view: a turn that wants to show it waits for as long."""

logger = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now().astimezone()


class Memory:
    """Everything said, kept word for word, and one view of all of it.

    Use ``Memory.open``; it is a context manager. ``store``, ``notes``, ``full_text``, ``live_view``
    and ``builder`` are its parts, for those who look after a memory or test it.
    """

    def __init__(
        self,
        root: Path,
        settings: Settings,
        *,
        compact: bool,
        progress: Callable[[str, int, int], None] | None,
        clock: Callable[[], datetime],
        model: Model | None,
    ) -> None:
        self.root = root
        self.settings = settings
        self.warnings: list[str] = []
        self.store = Store(
            root,
            clock=clock,
            progress=progress,
            costs=Costs(settings.node_bytes, settings.model_kinds),
        )
        try:
            self.notes = NoteLog(self.store)
            self._hidden = HiddenNotes(self.store, self.notes)
            self._log_mark = LogMark(self.store)
            self.full_text = Search(
                self.store.derived / "search.sqlite", self._log_mark, self._hidden
            )
        except BaseException:
            self.store.close()
            raise
        self.shown = Shown(ShownNotes(self.notes))
        if self.store.read_only:
            model, compact = None, False
        awaited = costs_built(settings, model=model is not None)
        self.live_view = LiveView(
            self.store,
            self.store.derived / "view.json",
            settings.view_budget_chars,
            awaited=awaited,
            expected=settings.node_bytes,
            hidden=self._hidden,
        )
        self._recall = Recall(
            self.store,
            self.full_text,
            self.live_view,
            budget=settings.view_budget_chars,
            focus_chars=settings.focus_chars,
        )
        self._closed = threading.Event()
        self.builder = TreeBuilder(
            root,
            settings,
            self.store,
            self.full_text,
            rested=self._follow,
            clock=clock,
            model=model,
            threaded=compact,
            hidden=self._hidden,
        )
        changed = self.builder.nudge
        self.copies = Copies(self.store, self._hidden, self._view_files, changed=changed)
        forks.watch(self)
        self.builder.start()

    @classmethod
    def open(
        cls,
        root: str | PathLike[str],
        settings: Settings | None = None,
        *,
        compact: bool = True,
        progress: Callable[[str, int, int], None] | None = None,
        clock: Callable[[], datetime] = _now,
        model: Model | None = None,
    ) -> Self:
        """Open the memory in ``root``, making the directory if need be.

        ``settings``: None reads ``config.json``; what cannot be used in it is named in
        ``warnings``. ``compact``: whether to run the background thread. ``progress``: called as
        (what, done, total) while an index is made. ``clock``: local time with zone. ``model``:
        writes the lines that are worth one, unless the settings say that none shall.

        Raises:
            StoreError: the directory cannot be read or written.
        """
        path = Path(root).absolute()  # a host may change its directory later on
        warnings: list[str] = []
        if settings is None:
            settings, warnings = load_settings(path)
        memory = cls(path, settings, compact=compact, progress=progress, clock=clock, model=model)
        if memory.read_only:
            warnings.append(f"{path} is only read: {memory.read_only}. {UPGRADE}")
            memory.builder.make_searchable()
        memory.warnings = warnings
        for warning in warnings:
            logger.warning("optchat: %s", warning)
        return memory

    def close(self) -> None:
        """Stop the compactor and let go of all files. What was recorded is on disk already."""
        if self._closed.is_set():
            return
        self._closed.set()
        forks.forget(self)
        self.builder.close()
        self.notes.close()
        self.full_text.close()
        self.store.close()

    @property
    def ledger(self) -> Shown:
        """``shown`` by its first name, for programs that were written with it."""
        return self.shown

    @property
    def compactor(self) -> Compactor:
        """What builds its lines."""
        return self.builder.compactor

    @property
    def read_only(self) -> str:
        """Why nothing can be recorded here, where a later version has written it; else empty."""
        return self.store.read_only

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- saying

    def record(self, entries: list[Entry], *, timeout_s: float = LOCK_WAIT_S) -> list[int]:
        """Log entries in their order as one batch and return their ids.

        Durable, all of them, when this returns.

        Raises: LockTimeoutError: another process kept the lock for ``timeout_s`` seconds; nothing
        was logged. StoreError: the disk refused; nothing was logged, and the same call may be made
        again.
        """
        messages = self.store.record(entries, timeout_s=timeout_s)
        if messages:
            self.builder.nudge()
        return [message.id for message in messages]

    def take_over(self, directory: Path, progress: Callable[[str, int, int], None]) -> Taken | None:
        """Take in another memory's directory, with its numbers, dates, sessions and lines.

        None, and nothing done, if anything is logged here already.

        Raises:
            LockTimeoutError: another process kept the lock.
            StoreError: the disk refused, or the directory cannot be read.
        """
        taken = take_over(self.store, directory, progress)
        self.builder.nudge()
        return taken

    # -- showing

    def view(self) -> str:
        """The view of everything said, at most ``view_budget_chars`` characters."""
        return self.live_view.text()

    def recall(self, query: str = "", session: str = "", standing: Standing | None = None) -> str:
        """What a session is shown before it answers ``query``.

        The view and what the query points to in it.

        Where a view stands in front of the session already, what is missing beside it and what the
        query points to sharply, within tight limits; mostly nothing. Without a session, always the
        view. ``standing``: what the host's list has in front of the model now, where that can be
        told. Empty while nothing is logged.
        """
        session = clean(session)
        if not self.store.total():
            return ""
        if not session or self.settings.recall == "turn":
            return self._recall.view(query)
        if standing is not None:
            self.shown.seen(session, standing)
        else:
            standing = self.shown.standing(session)
        if standing.view:
            own_from, total = self.shown.own_from(session), self.store.total()
            first, _ = next(gaps(standing.covered, own_from, total), (total, total))
            text = self._recall.more(query, self._listed(session, first), own_from, standing)
        else:
            text = self._recall.view(query, standing)
        if text:
            self.shown.offered(session, text)
        return text

    def list_shown(self, session: str, messages: Sequence[Any]) -> None:
        """The host's list after a turn.

        What counts as shown until the next one begins, also in another process.
        """
        self.shown.seen(session, standing_in(messages))
        self.shown.keep(session)

    def compressed(self, parent: str, session: str) -> None:
        """The host has summed up the list of ``parent``, and goes on as ``session``, mostly the
        same.
        """
        self.shown.compressed(clean(parent), clean(session), self.store.total())

    def capture_store(self) -> DiskStore:
        """What ``capture/`` keeps its notes in and logs through."""
        return DiskStore(self.store, self.notes, self._warn)

    # The tool's own word.
    def zoom(self, id: int | str, n: int | str = 1, page: int | str = 1) -> str:  # noqa: A002
        """The two lines that line ``id+n`` was made from, or with n = 1 the message whole, in pages
        of 16,000 characters.

        Raises:
            AddressError: no such line or page; the hint says which to use instead.
        """
        return zoom.zoom(self.store, self._hidden, id, n, page)

    def date(self, id: int | str) -> str:  # noqa: A002
        """When message ``id`` was said, with its session, author and platform where known.

        Raises:
            AddressError: no such message.

        """
        return zoom.date(self.store, id)

    def lines(self, first: int, end: int, max_chars: int, session: str = "") -> str:
        """Lines for messages [first, end), or those of one session among them, in at most
        ``max_chars`` characters.
        """
        spans = spans_of(self.store, clean(session), first, end)
        return "\n".join(excerpt(self.store, spans, max_chars, self.settings.node_bytes))

    def search(self, query: str, limit: int = 20, *, newest: bool = False) -> list[Hit]:
        """Messages that hold the words of ``query``, at most 1,000, best or newest first, each with
        a line ``id+1|kind: text``.

        Raises:
            StoreError: the full text cannot be read.
        """
        return hits(self.store, self.full_text, query, limit, newest=newest)

    def message(self, id: int) -> Message | None:  # noqa: A002
        """One message, word for word, or None if it is lost or was never said."""
        return self.store.message(id)

    def session_entries(self, session: str, first: int = 0) -> Iterator[Message]:
        """What the log holds of one session from message ``first`` on, in order."""
        return self.store.session_messages(session, first)

    # -- looking after it

    def settle(
        self,
        timeout_s: float | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> bool:
        """Wait until no line and no full text is left to build.

        False if ``timeout_s`` seconds were not enough, or if what is left waits for a model that
        cannot be had now: ``status`` says why.

        ``progress`` is called as ("lines", built, expected).

        Raises:
            StoreError: building failed again and again; the text says why.
        """
        self.store.must_be_writable()
        return self.builder.settle(timeout_s, progress)

    def status(self) -> Status:
        """What a user wants to know about this memory."""
        total = self.store.total()
        lines, _ = self.live_view.lines()
        first, last = (self.store.message(id_) if total else None for id_ in (0, total - 1))
        read = self.store.read
        behind, trouble = self._full_text_behind(total)
        aside = sum(len(note["entries"]) for note in self.notes.notes("batch"))
        waiting = (
            [
                (
                    f"kept aside until the lock can be had, and not in the log yet: {aside:,} of "
                    "the newest messages"
                )
            ]
            if aside
            else []
        )
        damage = read(lambda index: index.damage(5))
        return {
            "root": str(self.root),
            "messages": total,
            "sessions": read(lambda index: index.count("sessions")),
            "first_date": first.date if first else "",
            "last_append": last.date if last else "",
            "kept_aside": aside,
            "lines_built": read(lambda index: index.count("nodes")),
            "lines_ready": read(lambda index: index.count("ready")),
            "full_text_behind": behind,
            **self.builder.facts(total),
            "view_lines": len(lines),
            "view_chars": len(self.view()),
            "view_budget_chars": self.settings.view_budget_chars,
            "bytes_on_disk": self._bytes_on_disk(),
            "warnings": [
                *self.warnings,
                *waiting,
                *self.builder.troubles,
                *trouble,
                *(f"damage stepped over: {text}" for text in damage),
            ],
        }

    def check(self, progress: Callable[[str, int, int], None] | None = None) -> CheckReport:
        """Read everything and report what is damaged or does not agree; changes nothing."""
        calls = (self.root / usage.NAME, usage_sums.decode)
        views, notes = self._view_files, self.notes
        report = check.check(self.store, self.full_text, views, progress, notes=notes, usage=calls)
        return {
            "messages": report["messages"],
            "nodes": report["nodes"],
            "damage": report["damage"],
            "disagreements": report["disagreements"],
            "notes": report["notes"],
            "copies": self.copies.facts(report["copies"]),
        }

    def redact(self, id: int | str) -> RedactReport:  # noqa: A002
        """Take the words of message ``id`` out of this memory for good.

        The one edit of what was written. What was done, as facts.

        Its place, kind, date and session stay, and its words in copies elsewhere: the host's own
        database, backups. Done again, it does nothing, or finishes what a crash has cut.

        Raises:
            AddressError: no such message.
            LockTimeoutError: another process kept the lock; nothing was done.
            StoreError: the disk refused; the same call may be made again.
        """
        place = parse_address(id, total=self.store.total())
        if place.level:
            raise AddressError(
                f"{place.address} is a line of {place.n} messages",
                hint=f"Name one message, for instance {place.first}",
            )
        facts = redact(
            place.index,
            self.store,
            self.notes,
            self.full_text,
            mark=self._log_mark,
            views=self._view_files,
        )
        self.builder.nudge()
        return facts

    def before_fork(self) -> None:
        """Let nobody be in the middle of something when this process forks."""
        for part in (self.live_view, self.store, self.full_text):
            part.before_fork()

    def after_fork(self, *, child: bool) -> None:
        """Go on, in the parent or as the child, which has no compactor until it has something to
        say.
        """
        for part in (self.full_text, self.store, self.live_view):
            part.after_fork(child=child)
        if child:
            self._closed = threading.Event()
            self.builder.after_fork()

    # -- inside

    @property
    def _view_files(self) -> tuple[Path, Path]:
        """The saved views: the one that is shown, and the one a model is told of the past by."""
        return self.store.derived / "view.json", self.store.derived / "context.json"

    def _listed(self, session: str, first: int) -> list[int]:
        """The messages from ``first`` on that a session has in its own list.

        Its own, and those it began with as a branch.
        """
        ids: list[int] = []
        names: set[str] = set()
        todo = [(session, self.store.total())]
        while todo:
            name, end = todo.pop()
            if name in names:
                continue
            names.add(name)
            ids += [
                id_
                for id_ in self.store.read(lambda index, name=name: index.session_ids(name, first))  # type: ignore[misc]
                if id_ < end
            ]
            todo += [
                (note["parent"], min(end, note["at"]) if note["at"] >= 0 else end)
                for note in self.notes.notes("from", session=name)
            ]
        return ids

    def _warn(self, text: str) -> None:
        """Tell the user once of each kind of trouble."""
        if text not in self.warnings:
            self.warnings.append(text)
            logger.warning("optchat: %s", text)

    def _follow(self) -> None:
        """The tree is complete for now: the view may merge.

        Failing here harms nobody: the next rendering tries again.
        """
        try:
            self.live_view.update(wait_s=FOLLOW_WAIT_S)
        except OptchatError as error:
            logger.warning("optchat: the view was not saved: %s", error)

    def _full_text_behind(self, total: int) -> tuple[int, list[str]]:
        """Messages that cannot be searched yet, and what is wrong where that cannot be told."""
        try:
            return max(0, total - self.full_text.indexed()), []
        except OptchatError as error:
            return total, [str(error)]

    def _bytes_on_disk(self) -> dict[str, int]:
        rooms = {room: sum(reads.day_files(self.root / room).values()) for room in ("main", "tree")}
        return rooms | {
            name: sum(reads.size_of(self.root / f"{name}.sqlite{end}") for end in ("", "-wal"))
            for name in ("index", "search")
        }


def load_settings(root: Path) -> tuple[Settings, list[str]]:
    """The settings in ``root/config.json`` and a warning, naming it, for each part that cannot be
    used. The file is left as it is.
    """
    path = root / "config.json"
    try:
        data = reads.read_file(path)
        # Some editors put a byte order mark in front, which no JSON reader takes.
        settings, warnings = (
            (Settings(), [])
            if data is None
            else read_settings(orjson.loads(data.removeprefix(codecs.BOM_UTF8)))
        )
    except StoreError as error:
        return Settings(), [f"{error}; all defaults are in force"]
    except orjson.JSONDecodeError as error:
        return Settings(), [
            f"{path} is not JSON ({error}). Correct it; until then all defaults are in force"
        ]
    return settings, [f"{path}: {warning}" for warning in warnings]


__all__ = ["Memory", "StoreError", "load_settings"]
