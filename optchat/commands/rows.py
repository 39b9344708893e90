"""One row of somebody's transcript to entries: roles, content parts, tool calls, dates, and what is no message at all.

Pure. Knows the shapes of Hermes' database and of the usual chat JSON. Called by the readers of import files.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import Error as BadBase64
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from ..core.records import KINDS, Entry, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROLES: Final = {"user": "user", "human": "user", "assistant": "talk", "ai": "talk", "tool": "echo", "function": "echo"}
DROPPED_ROLES: Final = ("system", "developer", "session_meta")
"""Instructions to the model, and the host's own rows: nobody said them in the conversation."""

SUMMARY_HEADS: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
MERGED_HEAD: Final = "[PRIOR CONTEXT"
MERGED_END: Final = "[END OF PRIOR CONTEXT"
SUMMARY_END: Final = "--- END OF CONTEXT SUMMARY"
"""Heads of what a host puts in place of older messages when it compresses a context, and what ends it. Taken in as speech it would
stand in the log beside the very messages it sums up."""

NOTICES: Final = ("failed_turn", "hidden", "auto_continue", "model_switch", "personality_switch")
"""The host's ``display_kind`` of rows it wrote itself, in the user's or the agent's name."""
REPORTS: Final = {"async_delegation_complete": "work", "process_complete": "echo"}
_REPORT_HEADS: Final = (("[ASYNC DELEGATION", "work"), ("[IMPORTANT: Background process", "echo"))

_MEMORY_BLOCK: Final = re.compile(r"\s*<\s*memory-context\s*>.*?</\s*memory-context\s*>", re.IGNORECASE | re.DOTALL)
_SKILL_HEAD: Final = re.compile(r'\[IMPORTANT: The user has invoked the "([^"]*)"')
_SKILL_TOLD: Final = "The user has provided the following instruction alongside the skill invocation: "
_BUNDLE_TOLD: Final = "\nUser instruction: "
_THOUGHTS: Final = ("thinking", "redacted_thinking", "reasoning")
_MEDIA_KEYS: Final = ("image_url", "input_image", "input_audio", "audio", "file", "video_url", "source", "data", "url")


class RowError(ValueError):
    """A row that holds no usable message; the text says what is wrong with it."""


class NotSaidError(Exception):
    """A row that is no message of the conversation; the text says what it is instead."""


def entries_of(row: Mapping[str, Any], *, session: str = "", platform: str = "") -> list[Entry]:
    """The entries of one row: an assistant's text and then each of its tool calls, or the one thing it says.

    Raises:
        RowError: it is not understood.
        NotSaidError: it is understood, and nothing to remember.

    """
    common: dict[str, Any] = {
        "date": iso_date(row.get("date") or row.get("timestamp")),
        "session": _word(row, "session", "session_id") or session,
        "author": _word(row, "author"),
        "platform": _word(row, "platform") or platform,
        "uid": _word(row, "uid", "message_uid"),
    }
    kind = row.get("kind")
    if kind is not None:
        if kind not in KINDS:
            raise RowError(f"kind {kind!r} is none of {', '.join(KINDS)}")
        text = _content(row)[0]
        if not text:
            raise NotSaidError("empty messages")
        return [Entry(kind=kind, text=text, tool=_word(row, "tool", "tool_name"), call=_word(row, "call", "tool_call_id"), **common)]
    return list(_said(row, common))


def _said(row: Mapping[str, Any], common: dict[str, Any]) -> Iterator[Entry]:
    role = row.get("role")
    if role in DROPPED_ROLES:
        raise NotSaidError("system rows")
    if role not in ROLES:
        raise RowError("has neither a kind nor a role" if role is None else f"role {role!r} is none of {', '.join(ROLES)}")
    shown_as = row.get("display_kind")
    if shown_as in NOTICES:
        raise NotSaidError("notices of the host")
    text, more = _content(row)
    kind = ROLES[role]
    if kind in ("user", "talk"):
        kind, text = _spoken(kind, text, REPORTS.get(shown_as or ""))
    calls = [*more, *_tool_calls(row.get("tool_calls"))]
    if not text and not calls:
        raise NotSaidError("empty messages")
    if text:
        tool = _word(row, "tool", "tool_name", "name") if kind == "echo" else ""
        yield Entry(kind=kind, text=_own(tool, text), tool=tool, call=_word(row, "call", "tool_call_id"), **common)
    for call in calls:
        yield Entry(**(common | call | {"author": ""}))


def _spoken(kind: str, text: str, report: str | None) -> tuple[str, str]:
    """Kind and text of what a user or the agent said, without what the host wrapped around it."""
    if is_summary(text):
        text = _told_beside_summary(text)
        if not text:
            raise NotSaidError("summaries by the host")
    if kind == "talk":
        return kind, "" if text.strip() in ("", "(empty)") else text
    text = _MEMORY_BLOCK.sub("", text)
    if report is None:
        report = next((kind for head, kind in _REPORT_HEADS if text.startswith(head)), None)
    return (report or kind), _without_skill(text)


def is_summary(text: str) -> bool:
    """Whether a host wrote this text in place of older messages."""
    return text.lstrip().startswith((*SUMMARY_HEADS, MERGED_HEAD))


def _told_beside_summary(text: str) -> str:
    """The real message a host glued to its summary, before or after it; empty if there is none."""
    text = text.lstrip()
    if text.startswith(MERGED_HEAD):
        return text.partition("\n")[2].partition(MERGED_END)[0].strip()
    return text.partition(SUMMARY_END)[2].partition("\n")[2].strip()


def _without_skill(text: str) -> str:
    """What the user typed, where the host replaced it by a skill's whole text: ``/name`` and the instruction."""
    head = _SKILL_HEAD.match(text)
    if not head:
        return text
    name = head[1] if head[1].startswith("/") else f"/{head[1]}"
    if _SKILL_TOLD in text:
        told = text.rpartition(_SKILL_TOLD)[2].partition("\n\n[Runtime note:")[0]
    else:
        told = text.partition(_BUNDLE_TOLD)[2].partition("\n\n[Loaded as part of the ")[0]
    return f"{name} {told.strip()}".strip()


def _own(tool: str, text: str) -> str:
    """A mark in place of what our own tools returned: it is in the log already, word for word."""
    return f"({tool}: shown from memory)" if tool.startswith("optchat_") else text


def _content(row: Mapping[str, Any]) -> tuple[str, list[dict[str, str]]]:
    """The text of a row's content, and the tool calls and results that stand among its parts."""
    content = row["content"] if "content" in row else row.get("text")
    if content is None:
        if "content" in row or "text" in row or row.get("tool_calls"):
            return "", []
        raise RowError("has no content and no text")
    if isinstance(content, str):
        return clean(content), []
    if isinstance(content, (bool, int, float)):
        return str(content), []
    parts = content if isinstance(content, list) else [content] if content else []
    calls = [call for part in parts if isinstance(part, dict) for call in _part_calls(part)]
    return clean("\n".join(text for part in parts if (text := _part_text(part)))), calls


def _part_text(part: object) -> str:
    """One part of a list content as text; what is no text as a mark that names its type, bytes and SHA-256."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return json.dumps(part, ensure_ascii=False)
    kind = part.get("type")
    text = part.get("text")
    if isinstance(text, str) and kind in (None, "text", "input_text", "output_text"):
        return text
    if kind in ("tool_use", "tool_result", *_THOUGHTS):
        return ""
    return _mark(str(kind or "object"), next((part[key] for key in _MEDIA_KEYS if part.get(key)), part))


def _mark(kind: str, payload: Any) -> str:
    while isinstance(payload, dict) and (inner := next((payload[key] for key in _MEDIA_KEYS if payload.get(key)), None)):
        payload = inner
    if isinstance(payload, str) and payload.startswith(("http://", "https://")) and len(payload) < 2_000:
        return f"[{kind}: {payload}]"
    raw = _payload_bytes(payload)
    return f"[{kind}: {len(raw):,} bytes, sha256 {sha256(raw).hexdigest()}]"


def _payload_bytes(payload: Any) -> bytes:
    if not isinstance(payload, str):
        return json.dumps(payload, sort_keys=True).encode()
    head, comma, body = payload.partition(",")
    try:
        if comma and head.startswith("data:"):
            return b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
        return b64decode(payload, validate=True)
    except (BadBase64, ValueError):
        return clean(payload).encode()


def _part_calls(part: dict[str, Any]) -> Iterator[dict[str, str]]:
    if part.get("type") == "tool_use":
        yield _call(part.get("id"), part.get("name"), part.get("input"))
    elif part.get("type") == "tool_result":
        yield {"kind": "echo", "text": _content({"content": part.get("content") or ""})[0], "call": str(part.get("tool_use_id") or "")}


def _tool_calls(calls: Any) -> Iterator[dict[str, str]]:
    if isinstance(calls, str):
        try:
            calls = json.loads(calls) if calls else None
        except ValueError as error:
            raise RowError("its tool_calls are not JSON") from error
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            inner = call.get("function")
            function: dict[str, Any] = inner if isinstance(inner, dict) else call
            given = next((function[key] for key in ("arguments", "args", "input") if key in function), None)
            yield _call(call.get("id"), function.get("name"), given)


def _call(number: Any, name: Any, given: Any) -> dict[str, str]:
    """A tool call as an entry: the tool's name and its input as JSON, the model's own spelling of it where there is one."""
    tool = clean(str(name or "unknown tool"))
    shown = given if isinstance(given, str) else json.dumps(given if given is not None else {}, ensure_ascii=False)
    return {"kind": "tool", "text": clean(f"{tool} {shown}".rstrip()), "tool": tool, "call": str(number or "")}


def iso_date(value: object) -> str:
    """ISO 8601 with offset from such a text, or from seconds (or milliseconds) since 1970; empty where it is neither.

    A date without an offset is taken as local time: the exports that have none were written by programs on this machine.
    """
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seconds = value / 1000 if value > 100_000_000_000 else value
            return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(timespec="milliseconds")
        if isinstance(value, str) and value:
            if re.fullmatch(r"\d{9,13}(\.\d+)?", value):
                return iso_date(float(value))
            date = datetime.fromisoformat(value)
            return value if date.tzinfo and value[10:11] == "T" else date.astimezone().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
    return ""


def _word(row: Mapping[str, Any], *names: str) -> str:
    """The first of these values that is a text or a number, as text."""
    for name in names:
        value = row.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return clean(str(value))
    return ""
