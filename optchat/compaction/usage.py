"""``usage.jsonl``.

One line per model call, failed ones too, and from its last line what has been spent and how it
goes.

Only the holder of ``compactor.lock`` writes; any process may read at any time, in the same time
however long the file is. Decides nothing but whether the day's budget still allows a call. Called
by ``write_line.py`` and ``memory/``.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final, TypedDict

from ..base.errors import StoreError
from ..base.json_line import clean
from ..base.secrets import mask
from ..log import files, reads
from .model import ModelDownError, as_it_is
from .plain import clip, tidy
from .usage_sums import VALUE_MAX, Event, State, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from .model import Reply, Said

NAME: Final = "usage.jsonl"
BYTES_PER_TOKEN: Final = 4
"""Of English text.

Other scripts have fewer, so that what they take is estimated too low, about by half at worst.
"""

_TAIL: Final = 16_384
"""Bytes read from the end: several of the longest lines."""
_TAIL_MOST: Final = 1 << 20
"""Bytes looked through for a good line where the end of the file is damaged, as by zeros after a
power cut.
"""
_TEXT_BYTES: Final = 400
"""Most of a model's name, an error or a reason that is kept.

All of it stands in every later line, until it is over.
"""
_UNWRITTEN: Final = 64
"""Calls kept one by one while the disk refuses.

More are joined, so that a file that can never be written costs no memory.
"""
_WAIT_S: Final = 0.1
"""Longest a reader waits for a line that is being written; after that it tells what it knew."""
_UNREAD: Final = object()

logger = logging.getLogger(__name__)


class ModelReport(TypedDict):
    """What the model that writes lines has cost, and has still to do.

    ``name``: its name, "" where there never was one. ``paused``: why no call is made, "" where they
    are. Calls and tokens ``_today`` (in local time) and in all; ``tokens_cached``: of those sent,
    how many an endpoint had in a cache. ``tokens_per_message``: of the log. ``backlog``: lines it
    has still to write; ``seconds_left``: for those, None while no call tells how long one takes.
    ``retained``, ``not_retained``: turns judged worth its words, or not. ``last_error``: with its
    date, "" for none.
    """

    name: str
    paused: str
    calls_today: int
    tokens_in_today: int
    tokens_cached_today: int
    tokens_out_today: int
    calls: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    tokens_per_message: float
    backlog: int
    seconds_left: float | None
    retained: int
    not_retained: int
    last_error: str


class Usage:
    """What the model calls of one memory directory have cost.

    Any thread may call anything; nothing here raises for the disk's sake.

    A day is a calendar day of ``clock``. Where the clock goes back to one of the last few days it
    was on, that day's sums go on; to a day that is not remembered, it gets a budget of its own, for
    it cannot be told from one that is new.
    """

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], datetime],
        *,
        redact: Callable[[str], str] = as_it_is,
    ) -> None:
        """``clock``: local time with zone.

        ``redact``: masks in an error what the host knows to be secret.
        """
        self._path = directory / NAME
        self._clock = clock
        self._redact = redact
        self._mutex = threading.Lock()
        self._base = State()  # as on the disk
        self._pending: list[Event] = []  # what is not on the disk yet
        # Version of the file, and everything known: replaced in one step.
        self._now: tuple[object, State] = (_UNREAD, State())
        self.trouble = ""

    # -- writing, by the holder of compactor.lock

    def note(
        self,
        what: str,
        *,
        model: str,
        sent: Sequence[Said],
        seconds: float,
        reply: Reply | None = None,
        place: tuple[int, int] | None = None,
        error: Exception | None = None,
        paused: str | None = None,
    ) -> None:
        """Count one call and write its line.

        Durable when this returns, unless the disk refuses: then it is kept and written later.

        ``what``: ``line`` or ``retain``. ``reply``: None where the call failed, with ``error`` for
        why. ``place``: level and index of the node. ``paused``: see ``pause``; None changes
        nothing. What the endpoint does not tell of tokens is estimated, also for a call that
        failed: it may have been read and paid for. One that reached no model costs nothing.
        """
        down = isinstance(error, ModelDownError)
        tokens_in, cached, tokens_out, estimated = (
            (0, 0, 0, False) if down else _tokens(sent, reply)
        )
        text = "" if error is None else self._plain(str(error) or type(error).__name__)
        event = Event(
            "",
            what,
            clip(clean(model), _TEXT_BYTES),
            place,
            1,
            tokens_in,
            cached,
            tokens_out,
            estimated=estimated,
            ms=min(max(round(seconds * 1000), 0), VALUE_MAX),
            error=text,
            down=down,
            paused=None if paused is None else self._plain(paused),
        )
        with self._mutex:
            self._add(event)

    def count(self, *, lines: int = 0, retained: int = 0, not_retained: int = 0) -> None:
        """Count lines the model has written, or turns the filter has decided on.

        Reaches the disk with the next line, or at ``close``.
        """
        with self._mutex:
            self._add(Event("", lines=lines, retained=retained, not_retained=not_retained))

    def pause(self, text: str) -> None:
        """Say, to other processes too, that the compactor makes no calls for now, and why.

        Said again with the same text: nothing.
        """
        text = self._plain(text)
        with self._mutex:
            self._refresh()
            if self._now[1].paused != text:
                self._add(Event("", "pause" if text else "resume", paused=text))

    def resume(self) -> None:
        """Say that calls are made again.

        Also for who takes over from a process that ended in a pause.
        """
        self.pause("")

    def close(self) -> None:
        """Write what is counted and not written yet."""
        with self._mutex:
            if self._pending:
                self._add(Event("", "sums"))

    def after_fork(self) -> None:
        """In a forked child.

        Another thread may have been writing, and what it had not written is the parent's to write.
        """
        self._mutex = threading.Lock()
        self._pending = []
        self._now = _UNREAD, self._base

    # -- reading, in any process

    def spent_today(self) -> int:
        """Tokens of today's calls, read and written."""
        return self._state().of_day(self._today()).spent

    def allows(self, limit: int) -> bool:
        """Whether one more call may be made with a day's budget of ``limit`` tokens; 0 sets none.

        Calls in flight are not counted.
        """
        return limit == 0 or self.spent_today() < limit

    @property
    def paused(self) -> str:
        """Why no calls are made, or "" where they are."""
        return self._state().paused

    def facts(
        self, *, name: str = "", backlog: int = 0, jobs: int = 1, messages: int = 0
    ) -> ModelReport:
        """What a user wants to know about the model.

        ``name``: of the model, if not that of the last call. ``backlog``: lines the model has still
        to write, ``jobs`` at once. ``messages``: those of the log, for tokens per message.
        """
        state = self._state()
        today, total = state.of_day(self._today()), state.total
        return {
            "name": name or state.model,
            "paused": state.paused,
            "calls_today": today.calls,
            "tokens_in_today": today.tokens_in,
            "tokens_cached_today": today.cached,
            "tokens_out_today": today.tokens_out,
            "calls": total.calls,
            "tokens_in": total.tokens_in,
            "tokens_cached": total.cached,
            "tokens_out": total.tokens_out,
            "tokens_per_message": round(total.spent / messages, 1) if messages else 0.0,
            "backlog": backlog,
            "seconds_left": _seconds_left(state, backlog, jobs),
            "retained": total.retained,
            "not_retained": total.not_retained,
            "last_error": f"{state.error} ({state.error_date[:16].replace('T', ' ')})"
            if state.error
            else "",
        }

    # -- inside

    def _today(self) -> str:
        return self._clock().date().isoformat()

    def _plain(self, text: str) -> str:
        """One short line without secrets.

        What an endpoint answers may quote the key it was asked with.
        """
        try:
            text = self._redact(clean(text))
        # the host's code; what it could not mask is not written, and the call is counted all the
        # same
        except Exception as error:
            text = (
                f"(its text is left out, for it could not be masked: {type(error).__name__})"
                if text
                else ""
            )
        text = mask(clean(text))
        return clip(tidy(text.replace("\n", " ")), _TEXT_BYTES)

    def _state(self) -> State:
        """Everything known, read anew where another process has written since."""
        seen, state = self._now
        if reads.version_of(self._path) == seen:
            return state
        if not self._mutex.acquire(
            timeout=_WAIT_S
        ):  # a slow disk holds up who writes, never who only asks
            return state
        try:
            self._refresh()
        finally:
            self._mutex.release()
        return self._now[1]

    def _add(self, event: Event) -> None:
        """Count an event, and write the lines that are not written yet; with the mutex.

        Over a file that could not be read nothing is written: its sums would begin again from
        nothing.
        """
        known = self._refresh()
        event = event._replace(date=self._clock().isoformat(timespec="seconds"))
        self._pending.append(event)
        self._now = self._now[0], self._now[1].after(event)
        if event.what and known:
            self._write()
        if len(self._pending) > _UNWRITTEN:
            self._join()

    def _write(self) -> None:
        state, lines = self._base, []
        for event in self._pending:
            state = state.after(event)
            if event.what:
                lines.append(encode(event, state))
        try:
            files.append(self._path, b"".join(lines))
        # the tree must not stop for it: counted in memory, and written once the disk takes it
        except StoreError as error:
            self._tell(error)
            return
        self._base, self._pending = state, []
        self._now = reads.version_of(self._path), state
        self._recovered()

    def _join(self) -> None:
        """Make one event of two that follow each other on one day."""
        for at, (one, two) in enumerate(zip(self._pending, self._pending[1:], strict=False)):
            if one.day == two.day:
                self._pending[at : at + 2] = [one.joined(two)]
                return

    def _refresh(self) -> bool:
        """Read the last line where the file is not as it was last seen.

        Whether what is in it is known then. With the mutex.

        A file that is gone or cannot be read takes nothing from what is known: it would give the
        day a second budget.
        """
        version = reads.version_of(self._path)
        if version == self._now[0]:
            return True
        try:
            state = _last(self._path)
        except StoreError as error:  # what was known still stands, and the next call looks again
            self._tell(error)
            return False
        if state is not None:
            self._base = state
        state = self._base
        for event in self._pending:
            state = state.after(event)
        self._now = version, state
        if not self._pending:
            self._recovered()
        return True

    def _tell(self, error: StoreError) -> None:
        if not self.trouble:
            logger.warning("optchat: what the model costs is not on disk for now: %s", error)
        self.trouble = str(error)

    def _recovered(self) -> None:
        if self.trouble:
            logger.warning("optchat: what the model costs is on disk again: %s", self._path)
        self.trouble = ""


def _last(path: Path) -> State | None:
    """The state of the last good line, None where there is none near the end.

    Reads a bounded part of the file.
    """
    size, length = reads.size_of(path), _TAIL
    while True:
        start = max(0, size - length)
        lines = reads.read_at(path, start, size - start).split(b"\n")
        for line in reversed(lines):  # the first is a part of one, which no line can be taken for
            if line and (state := decode(line)) is not None:
                return state
        if not start or length >= _TAIL_MOST:
            return None
        length *= 4


def _tokens(sent: Sequence[Said], reply: Reply | None) -> tuple[int, int, int, bool]:
    """Tokens in, cached and out, and whether any of them is estimated.

    A 0 for a request or a reply that has words is no number but the lack of one: some endpoints
    send it, and would be free for ever.
    """
    asked = sum(len(clean(said.content).encode()) for said in sent)
    answered = len(clean(reply.text).encode()) if reply else 0
    tokens_in, in_told = _told(reply.tokens_in if reply else None, asked)
    tokens_out, out_told = (
        _told(reply.tokens_out if reply else None, answered) if reply else (0, True)
    )
    cached, _ = _told(reply.cached if reply else None, 0)
    return tokens_in, min(cached, tokens_in), tokens_out, not (in_told and out_told)


def _told(tokens: int | None, bytes_: int) -> tuple[int, bool]:
    """The tokens of a text, and whether they are the endpoint's; else estimated, rounded up."""
    if type(tokens) is int and (tokens > 0 or (tokens == 0 and not bytes_)):
        return min(tokens, VALUE_MAX), True
    return min(-(-bytes_ // BYTES_PER_TOKEN), VALUE_MAX), False


def _seconds_left(state: State, backlog: int, jobs: int) -> int | None:
    """Seconds until a backlog is worked off, from recent calls and how many calls a line has taken.

    At most five, its most tries.
    """
    if not backlog:
        return 0
    if state.mean_ms < 0:
        return None
    tries = min(max(state.total.calls / state.total.lines, 1.0), 5.0) if state.total.lines else 1.0
    return round(backlog * tries * state.mean_ms / 1000 / max(jobs, 1))
