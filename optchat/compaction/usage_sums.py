"""What model calls have cost, as running sums, and the line of ``usage.jsonl`` that carries them.

Each line says what one call took and, beside it, the sums of all calls up to and with this one:
whoever reads the last line knows everything, however long the file is. Pure: reads no file and no
clock. Called by ``usage.py``.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ..base.json_line import encode_line, is_damaged, load_line

DAYS_KEPT: Final = 3
"""Days before the present one whose sums are carried along.

A clock that is set back, or a user who flies west, comes to a day that has been worked on already:
without its sums that day would get a second budget.
"""

FORGIVEN_AFTER: Final = 20
"""Answered calls after which a failure is no longer told.

One lane that works must not hide at once that another does not.
"""

VALUE_MAX: Final = 1 << 32
"""Largest number of tokens or milliseconds taken from one call.

An endpoint may claim anything, and a line holds 64-bit numbers.
"""

_WEIGHT: Final = 8
"""The newest call counts an eighth in the mean of recent calls."""


class Event(NamedTuple):
    """One model call, or without ``what`` only something counted; ``calls`` is 0 then.

    Times in milliseconds, ``date`` in ISO 8601.

    ``down``: the model could not be had, so the time it took says nothing of how long calls take.
    ``paused``: the reason why the compactor pauses from here on, "" that it goes on, None that
    nothing changes.
    """

    date: str
    what: str = ""
    model: str = ""
    place: tuple[int, int] | None = None
    calls: int = 0
    tokens_in: int = 0
    cached: int = 0
    tokens_out: int = 0
    estimated: bool = False
    ms: int = 0
    error: str = ""
    down: bool = False
    paused: str | None = None
    lines: int = 0
    retained: int = 0
    not_retained: int = 0

    @property
    def day(self) -> str:
        """The calendar day on the clock of whoever made the call."""
        return self.date[:10]

    def joined(self, later: Event) -> Event:
        """Two events of one day as one that counts as both; what each took for itself is lost."""
        summed = {name: getattr(self, name) + getattr(later, name) for name in Sums._fields}
        return later._replace(
            what=later.what or self.what,
            model=later.model or self.model,
            estimated=self.estimated or later.estimated,
            error=later.error or self.error,
            down=self.down and later.down,
            paused=self.paused if later.paused is None else later.paused,
            **summed,
        )


class Sums(NamedTuple):
    """What a number of calls came to."""

    calls: int = 0
    tokens_in: int = 0
    cached: int = 0
    tokens_out: int = 0
    ms: int = 0
    lines: int = 0
    retained: int = 0
    not_retained: int = 0

    @property
    def spent(self) -> int:
        """Tokens, read and written, from a cache or not: what a day's budget is counted in."""
        return self.tokens_in + self.tokens_out

    def plus(self, event: Event) -> Sums:
        """The sums with one more event in them."""
        return Sums(
            *[value + getattr(event, name) for name, value in zip(self._fields, self, strict=True)]
        )


class State(NamedTuple):
    """Everything the last line tells.

    ``mean_ms``: of recent calls, -1 while there is none. ``successes_since_error``: calls answered
    since ``error``.
    """

    day: str = ""
    today: Sums = Sums()
    total: Sums = Sums()
    before: tuple[tuple[str, Sums], ...] = ()
    paused: str = ""
    model: str = ""
    error: str = ""
    error_date: str = ""
    successes_since_error: int = 0
    mean_ms: int = -1

    def of_day(self, day: str) -> Sums:
        """The sums of one calendar day, as far as they are remembered."""
        return self.today if day == self.day else dict(self.before).get(day, Sums())

    def after(self, event: Event) -> State:
        """The state once one more event has happened."""
        before = self.before
        if event.day != self.day:
            known = [(self.day, self.today), *before] if any(self.today) else before
            before = tuple([(day, sums) for day, sums in known if day != event.day][:DAYS_KEPT])
        state = self._replace(
            day=event.day,
            today=self.of_day(event.day).plus(event),
            total=self.total.plus(event),
            before=before,
            paused=self.paused if event.paused is None else event.paused,
            model=event.model or self.model,
        )
        return _answered(state, event) if event.calls else state


def _answered(state: State, event: Event) -> State:
    """The state with what one call says of how calls go.

    How long they take, and whether they fail.
    """
    mean = state.mean_ms
    if not event.down:
        took = event.ms // event.calls
        mean = took if mean < 0 else mean + (took - mean) // _WEIGHT
    if event.error:
        return state._replace(
            mean_ms=mean, error=event.error, error_date=event.date, successes_since_error=0
        )
    if state.error and state.successes_since_error + 1 < FORGIVEN_AFTER:
        return state._replace(mean_ms=mean, successes_since_error=state.successes_since_error + 1)
    return state._replace(mean_ms=mean, error="", error_date="", successes_since_error=0)


# ---- the line

_NAMES: Final = ("calls", "in", "cached", "out", "seconds", "lines", "retained", "not_retained")
"""The fields of ``Sums`` in their order, as they are called on disk."""


def encode(event: Event, state: State) -> bytes:
    """The line of an event, newline included; ``state`` is that after it.

    What is 0 or empty in the sums is left out.
    """
    line: dict[str, Any] = {"date": event.date, "model": state.model, "what": event.what}
    if event.place is not None:
        line["l"], line["i"] = event.place
    if event.calls:
        line |= {
            "in": event.tokens_in,
            "cached": event.cached,
            "out": event.tokens_out,
            "seconds": event.ms / 1000,
        }
    if event.calls > 1:
        line["calls"] = event.calls  # made while nothing could be written
    line |= {key: True for key in ("estimated", "down") if getattr(event, key)}
    if event.error:
        line["error"] = event.error
    if state.paused:
        line["paused"] = state.paused
    line |= {"day": {"date": state.day} | _sums(state.today), "all": _sums(state.total)}
    if state.before:
        line["before"] = [{"date": day} | _sums(sums) for day, sums in state.before]
    if state.error:
        line["last_error"] = {
            "text": state.error,
            "date": state.error_date,
            "good": state.successes_since_error,
        }
    if state.mean_ms >= 0:
        line["mean"] = state.mean_ms / 1000
    return encode_line(line)


def decode(line: bytes) -> State | None:
    """The state a line carries; None where it is torn, damaged or nothing of ours.

    One written by hand needs no checksum.
    """
    try:
        raw = load_line(line)
        if is_damaged(line, raw):
            return None
        return _state(raw)
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ):  # whatever else stands there, the line before is asked instead
        return None


def _sums(sums: Sums) -> dict[str, int | float]:
    values = [
        value / 1000 if name == "seconds" else value
        for name, value in zip(_NAMES, sums, strict=True)
    ]
    return {name: value for name, value in zip(_NAMES, values, strict=True) if value}


def _state(raw: dict[str, Any]) -> State:
    error = raw.get("last_error") or {}
    return State(
        day=_text(raw["day"]["date"]),
        today=_read_sums(raw["day"]),
        total=_read_sums(raw["all"]),
        before=tuple((_text(each["date"]), _read_sums(each)) for each in raw.get("before", ())),
        paused=_text(raw.get("paused", "")),
        model=_text(raw.get("model", "")),
        error=_text(error.get("text", "")),
        error_date=_text(error.get("date", "")),
        successes_since_error=_count(error.get("good", 0)),
        mean_ms=_ms(raw["mean"]) if "mean" in raw else -1,
    )


def _read_sums(raw: dict[str, Any]) -> Sums:
    return Sums(
        *[
            _ms(raw.get(name, 0)) if name == "seconds" else _count(raw.get(name, 0))
            for name in _NAMES
        ]
    )


def _ms(value: object) -> int:
    if isinstance(value, float) and 0 <= value < 2**53:
        value = round(value * 1000)
        return _count(value)
    return _count(value) * 1000


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise TypeError("is no count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("is no text")
    return value
