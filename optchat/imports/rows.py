"""One row of somebody's transcript to entries.

Either in our own words (``kind``, ``text``) or as chat programs write it (``role``).

Pure. Rows with a role are read by ``capture/host_messages.py``, which live capture uses as well:
what an import reads must be, to the letter, what was or will be captured. Called by the readers of
import files.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..base.json_line import clean
from ..base.record import KINDS, Entry
from ..capture.host_messages import read_message, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROLES: Final = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
DROPPED_ROLES: Final = ("system", "developer", "session_meta")
"""Instructions to the model, and the host's own rows: nobody said them in the conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing found in a source.

    An entry, a fault (unreadable, with the reason) or something left out (with what it is).
    """

    place: str
    position: int
    entry: Entry | None = None
    fault: str = ""
    left_out: str = ""


class RowError(ValueError):
    """A row that holds no usable message; the text says what is wrong with it."""


class NotSaidError(Exception):
    """A row that is no message of the conversation; the text says what it is instead."""


def entries_of(row: Mapping[str, Any], *, session: str = "", platform: str = "") -> list[Entry]:
    """The entries of one row.

    An assistant's text and then each of its tool calls, or the one thing it says.

    Raises:
        RowError: it is not understood.
        NotSaidError: it is understood, and nothing to remember.
    """
    common: dict[str, Any] = {
        "date": iso_date(row.get("date") or row.get("timestamp")),
        "session": _word(row, "session", "session_id") or session,
        "platform": _word(row, "platform") or platform,
        "uid": _word(row, "uid", "message_uid"),
    }
    kind = row.get("kind")
    if kind is not None and kind not in KINDS:
        raise RowError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    entries = list(_recorded(row, common) if kind is not None else _said(row, common))
    if not entries:
        raise NotSaidError("empty messages")
    return entries


def _recorded(row: Mapping[str, Any], common: dict[str, Any]) -> Iterator[Entry]:
    """A row in our own words: taken as it stands."""
    text = clean(text_of(_content(row)))
    if text:
        tool, call = _word(row, "tool", "tool_name"), _word(row, "call", "tool_call_id")
        yield Entry(
            kind=row["kind"], text=text, tool=tool, call=call, author=_word(row, "author"), **common
        )


def _said(row: Mapping[str, Any], common: dict[str, Any]) -> Iterator[Entry]:
    """A row with a role, without what a host wrote around and in place of words."""
    role = row.get("role")
    if role in DROPPED_ROLES:
        raise NotSaidError("system rows")
    if role not in ROLES:
        raise RowError(
            "has neither a kind nor a role"
            if role is None
            else f"role {role!r} is none of {', '.join(ROLES)}"
        )
    content = _content(row)
    message = {
        **row,
        "role": ROLES[role],
        "content": content,
        "tool_calls": _decoded(row.get("tool_calls")),
    }
    for key, name in (("tool_name", "tool"), ("tool_call_id", "call")):
        message[key] = _word(row, key, name)
    results = list(_results(content, common))
    items = read_message(message)
    if not items and not results and (text_of(content) or message["tool_calls"]):
        raise NotSaidError("notices of the host")
    for item in items:
        if item.again:
            raise NotSaidError("copies made by the host")
        if item.kind == "gap" and len(items) == 1:
            raise NotSaidError("summaries by the host")
        if item.text and item.kind != "gap":
            author = item.author or (_word(row, "author") if item.said else "")
            yield Entry(
                kind=item.kind,
                text=clean(item.text),
                tool=clean(item.tool),
                call=clean(item.call),
                author=author,
                **common,
            )
    yield from results


def _results(content: object, common: dict[str, Any]) -> Iterator[Entry]:
    """Tool results that stand among the parts of a user's content, as some programs write them."""
    for part in content if isinstance(content, list) else ():
        if (
            isinstance(part, dict)
            and part.get("type") == "tool_result"
            and (text := text_of(part.get("content")))
        ):
            yield Entry(kind="echo", text=clean(text), call=_word(part, "tool_use_id"), **common)


def _content(row: Mapping[str, Any]) -> object:
    if "content" in row or "text" in row:
        return row["content"] if "content" in row else row["text"]
    if row.get("tool_calls"):
        return ""
    raise RowError("has no content and no text")


def _decoded(calls: object) -> object:
    if not isinstance(calls, str):
        return calls
    try:
        return json.loads(calls) if calls else None
    except ValueError as error:
        raise RowError("its tool_calls are not JSON") from error


def iso_date(value: object) -> str:
    """ISO 8601 with offset from such a text, or from seconds (or milliseconds) since 1970.

    Empty where it is neither.

    A date without an offset is taken as local time: the exports that have none were written by
    programs on this machine.
    """
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > 100_000_000_000 else value
            return _local(datetime.fromtimestamp(seconds, UTC)).isoformat(timespec="milliseconds")
        if isinstance(value, str) and value:
            if re.fullmatch(r"\d{9,13}(\.\d+)?", value):
                return iso_date(float(value))
            date = datetime.fromisoformat(value)
            return value if date.tzinfo and value[10:11] == "T" else _local(date).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
    return ""


def _local(date: datetime) -> datetime:
    """The same moment in local time.

    The first and last days of the calendar have none: said as now, they would be far off.
    """
    try:
        return date.astimezone()
    except (ValueError, OverflowError, OSError):
        return date if date.tzinfo else date.replace(tzinfo=UTC)


def _word(row: Mapping[str, Any], *names: str) -> str:
    """The first of these values that is a text or a number, as text."""
    for name in names:
        value = row.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return clean(str(value))
    return ""
