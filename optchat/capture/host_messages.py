"""A host's message list as items.

What was said, done and returned, in order, without what the host wrote itself.

Pure. One message gives none, one or several items; ``list_reader`` reads whole lists, and
``reconcile`` decides which items are new.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as BadBase64
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from ..base.canon import canon, key_of
from ..base.host_phrases import (
    FLAGS,
    HOST_KINDS,
    KIND,
    RESULT_STUBS,
    STEER_KIND,
    SUMMARY_FLAG,
    words_of,
)
from ..base.json_line import clean
from .host_text import (
    assistant_text,
    is_error,
    leading_steers,
    split_steers,
    split_summary,
    user_text,
    without_restatement,
)
from .own_tools import is_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .wrappers import Other

STEER: Final = "steer"
"""Stands in ``tool`` of a user's entry that reached the agent in the middle of its turn."""
_RESULT_STUBS: Final = words_of(*RESULT_STUBS)
ASIDE: Final = "aside"
"""Stands in ``tool`` of an entry that no list shows.

What a subagent reported, or the host's memory tool wrote.
"""
HOST: Final = "host"
"""The author of a reply that is a server's error passed on as speech."""

_FLAGS: Final = tuple(flag.key for flag in FLAGS)
_HOST_KINDS: Final = tuple(mark.value for mark in HOST_KINDS)
_MEDIA_KEYS: Final = (
    "image_url",
    "input_image",
    "input_audio",
    "audio",
    "file",
    "file_data",
    "video_url",
    "source",
    "data",
    "url",
)
_UNSAID_PARTS: Final = ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result")


@dataclass(slots=True)
class Item:
    """One thing in a host's list.

    ``key`` stays the same when the host reloads or rewrites the message that holds it.

    ``said``: it stands in the user's role. ``parts``: its content was a list, which some hosts
    announce without its text. ``again``: a copy the host restated; never new. ``others``: what
    others said around it, which has no place of its own in a list. ``absorbed``: host ids of
    messages joined into this one. ``stamp``: seconds since 1970, where the host knows them.
    ``saved``: the host has put it into its database. ``held``: the log was found to hold all of it;
    noted so that it is not asked again every turn.
    """

    kind: str
    text: str
    key: str
    canon: str = ""
    uid: str = ""
    call: str = ""
    tool: str = ""
    author: str = ""
    said: bool = False
    parts: bool = False
    again: bool = False
    absorbed: tuple[str, ...] = ()
    stamp: float = 0.0
    saved: bool = False
    others: tuple[Other, ...] = ()
    held: bool = field(default=False, compare=False)

    @property
    def steer(self) -> bool:
        """Whether the user said it in the middle of a turn."""
        return self.said and self.tool == STEER


def read_message(message: object) -> list[Item]:
    """The items of one message of a host.

    Never raises: what it cannot read has no items, or its text as it stands.
    """
    if not isinstance(message, dict) or _is_scaffold(message):
        return []
    role = message.get("role")
    if role == "user" and _is_marked(message):
        items = list(_marked(message))
    elif role == "user":
        items = list(_user(message))
    elif role == "assistant":
        items = list(_agent(message))
    elif role in ("tool", "function"):
        items = list(_result(message))
    else:
        return []
    uid, stamp = _word(message.get("message_uid")), _stamp(message.get("timestamp"))
    absorbed = message.get("_absorbed_message_uids")
    more = (
        tuple(_word(name) for name in absorbed if isinstance(name, str))
        if isinstance(absorbed, list)
        else ()
    )
    for at, item in enumerate(items):
        item.uid, item.stamp, item.saved = uid, stamp, bool(uid or message.get("_db_persisted"))
        item.absorbed = more
        if more and at and items[0].steer and not item.steer:
            # A message joined to one into a turn before it has kept no other id than these.
            item.uid, item.absorbed = more[0], more[1:]
    return items


def _is_scaffold(message: Mapping[str, Any]) -> bool:
    """Whether the host wrote the message to its model only, and will take it out again."""
    for name, value in message.items():
        if (
            value
            and isinstance(name, str)
            and name[:1] == "_"
            and (name.endswith("_synthetic") or name in _FLAGS)
        ):
            return True
    return (
        message.get("role") == "assistant"
        and message.get(KIND) in _HOST_KINDS
        and not message.get(SUMMARY_FLAG.key)
    )


def _is_marked(message: Mapping[str, Any]) -> bool:
    """Whether the host says of a row in the user's role that it is none of the user's.

    Any kind but a steer does: a host that learns another one means a row of its own again.
    """
    return message.get(KIND) not in (None, "", False, STEER_KIND.value)


def _marked(message: Mapping[str, Any]) -> Iterator[Item]:
    """What a row of the host's tells.

    What a child or a process reports, or where a summary stands.
    """
    text = text_of(message.get("content"))
    if split_summary(text, flagged=bool(message.get(SUMMARY_FLAG.key))) is not None:
        yield from _user(message)
    elif (what := user_text(text)) is not None and what.kind != "user":
        yield from _said(text, parts=False)


def host_words(message: object) -> str | None:
    """The canonical text of a row in the user's role that the host marks as its own and that says
    nothing; None for another.

    A host announces the turn of such a row by its words alone: they are what its draft is known by.
    """
    if not isinstance(message, dict) or message.get("role") != "user":
        return None
    if not (_is_marked(message) or _is_scaffold(message)) or read_message(message):
        return None
    return canon(text_of(message.get("content")))


def _user(message: Mapping[str, Any]) -> Iterator[Item]:
    content = message.get("content")
    text, parts = text_of(content), isinstance(content, list)
    real = split_summary(text, flagged=bool(message.get(SUMMARY_FLAG.key)))
    if real is not None:
        yield _gap(text)
        for piece in real:
            yield from _said(piece.text, parts=parts)
        return
    if content is None or not isinstance(content, (str, list)):
        if text:
            yield from _said(text, parts=True)
        return
    if parts and not text:
        return  # nothing that could have been said: a blank item would stand between its neighbours
    restated = without_restatement(text)
    if restated is not None:
        for item in _said(restated, parts=parts):
            item.again = True
            yield item
        return
    if text or not parts:  # parts without a word or a file in them are nothing that anybody said
        yield from _said(text, parts=parts)


def _said(text: str, *, parts: bool) -> Iterator[Item]:
    text, joined = leading_steers(text)
    for steer in joined:
        yield _steer(steer, "")
    rest, steers = split_steers(text)
    if rest.strip() or not (steers or joined):
        what = user_text(rest)
        if what is not None and what.kind == "talk":
            yield Item("talk", what.text, key_of("talk", what.text))
        elif what is not None:
            form = canon(what.text)
            yield Item(
                what.kind,
                what.text,
                f"said|{form}",
                canon=form,
                author=what.author,
                said=True,
                parts=parts,
                others=what.others,
            )
    for steer in steers:
        yield _steer(steer, "")


def _steer(text: str, call: str) -> Item:
    form = canon(text)
    return Item("user", text, f"steer|{call}|{form}", canon=form, call=call, tool=STEER, said=True)


def _agent(message: Mapping[str, Any]) -> Iterator[Item]:
    content = message.get("content")
    text = text_of(content)
    real = split_summary(text, flagged=bool(message.get(SUMMARY_FLAG.key)), reply=True)
    if real is None:
        yield from _spoken(text)
    else:
        yield _gap(text)
        for piece in real:
            yield from _spoken(piece.text)
    yield from _calls(message.get("tool_calls"), content)


def _spoken(text: str) -> Iterator[Item]:
    said = assistant_text(text)
    if said.strip():
        yield Item("talk", said, key_of("talk", said), author=HOST if is_error(said) else "")


def _result(message: Mapping[str, Any]) -> Iterator[Item]:
    text, steers = split_steers(text_of(message.get("content")))
    call = _word(message.get("tool_call_id"))
    tool = _word(message.get("tool_name")) or _word(message.get("name"))
    real = split_summary(text, flagged=bool(message.get(SUMMARY_FLAG.key)))
    if real is not None:
        yield _gap(text)
        text = "\n\n".join(piece.text for piece in real)
    if text not in _RESULT_STUBS:
        shown = f"({tool}: shown from memory)" if is_ours(tool, text) else text
        yield Item("echo", shown, key_of("echo", shown, call=call), call=call, tool=tool)
    for steer in steers:
        yield _steer(steer, call)


def _gap(text: str) -> Item:
    return Item("gap", "", f"gap|{blake2b(clean(text).encode(), digest_size=8).hexdigest()}")


def _calls(calls: object, content: object) -> Iterator[Item]:
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            function = call.get("function")
            function = function if isinstance(function, dict) else call
            given = next(
                (function[name] for name in ("arguments", "args", "input") if name in function),
                None,
            )
            yield _call(call.get("id") or call.get("call_id"), function.get("name"), given)
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "tool_use":
            yield _call(part.get("id"), part.get("name"), part.get("input"))


def _call(number: object, name: object, given: object) -> Item:
    """A tool call: the tool's name and its input, in the model's own spelling.

    The input may be broken JSON: a host masks secrets.
    """
    tool, call = _word(name) or "unknown tool", _word(number)
    shown = given if isinstance(given, str) else _dump({} if given is None else given)
    text = f"{tool} {shown}".rstrip()
    return Item("tool", text, key_of("tool", text, call=call), call=call, tool=tool)


def text_of(content: object) -> str:
    """A content of any shape as text.

    Pictures and files as a mark that names type, bytes and SHA-256.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for part in content if (text := _part(part)))
    if content is None or isinstance(content, dict):
        return _part(content)
    return _shown(content, str) if isinstance(content, (bool, int, float)) else ""


def _part(part: object) -> str:
    if isinstance(part, dict):
        return _named_part(part) if part else ""
    if part is None or isinstance(part, str):
        return part or ""
    return _dump(part)


def _named_part(part: dict[str, Any]) -> str:
    kind, text = part.get("type"), part.get("text")
    if isinstance(text, str) and kind in (None, "text", "input_text", "output_text"):
        if "memory-context" not in text and not text.startswith("[System"):
            return text
        # What a host adds to a list, memory or a note, it adds as one more text part.
        what = user_text(text)
        return what.text if what else ""
    if kind in _UNSAID_PARTS:
        return ""
    payload: object = next((part[name] for name in _MEDIA_KEYS if part.get(name)), None)
    if payload is None:
        inner = part.get("content")
        return (
            text_of(inner)
            if isinstance(inner, (str, list))
            else _mark(_word(kind) or "object", part)
        )
    return _mark(_word(kind) or "file", payload)


def _mark(kind: str, payload: object) -> str:
    """A picture or file by what it is.

    Its bytes would swamp the log, and its fingerprint still tells it from any other.
    """
    while isinstance(payload, dict):
        named = payload.get("media_type") or payload.get("mime_type") or payload.get("format")
        kind = _word(named) or kind
        inner = next((payload[name] for name in _MEDIA_KEYS if payload.get(name)), None)
        if inner is None:
            break
        payload = inner
    if (
        isinstance(payload, str)
        and payload.startswith(("http://", "https://"))
        and len(payload) < 2_000
    ):
        return f"[{kind.replace(' ', '_')}: {payload}]"
    if isinstance(payload, str) and payload.startswith("data:"):
        kind = payload[5:].partition(",")[0].partition(";")[0] or kind
    raw = _payload_bytes(payload)
    return f"[{kind.replace(' ', '_')}: {len(raw):,} bytes, sha256 {sha256(raw).hexdigest()}]"


def _payload_bytes(payload: object) -> bytes:
    if not isinstance(payload, str):
        return _dump(payload).encode(errors="replace")
    head, comma, body = payload.partition(",")
    try:
        if comma and head.startswith("data:"):
            return (
                b64decode(body, validate=True)
                if head.endswith(";base64")
                else unquote_to_bytes(body)
            )
        return b64decode(payload, validate=True)
    except (BadBase64, ValueError):
        return clean(payload).encode()


def _dump(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        return _shown(value, repr)


def _shown(value: object, show: Callable[[object], str]) -> str:
    try:
        return show(value)
    # nested too deep, a number of too many digits, or not ours at all: one value must not cost the
    # turn it stands in
    except Exception:
        return f"({type(value).__name__} that cannot be shown)"


def _word(value: object) -> str:
    """A name or number of the host's, as it comes back from the log.

    Half a character in it would make each list bring it anew.
    """
    if isinstance(value, str):
        return clean(value)
    return _shown(value, str) if isinstance(value, int) and not isinstance(value, bool) else ""


def _stamp(value: object) -> float:
    try:
        stamp = (
            float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
        )
    except OverflowError:
        return 0.0
    # What is not a number has no place among dates, before or after.
    return stamp if isfinite(stamp) else 0.0
