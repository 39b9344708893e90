"""The JSON lines of ``capture/``: what was noted about a session besides its messages. Pure.

One line is ``{"type":…,"session":…, …, "crc":…}`` (``base/json_line.py``).
Types: ``draft`` (a turn began), ``bind`` (a logged message got a host's id, or is what an open turn
became), ``settled`` (a turn that leaves no message), ``from`` (a session went on from another),
``gap`` (the host summed up its list), ``stands`` (what is in front of the model), ``batch``
(entries that could not be logged in time). Older versions wrote ``shown`` and ``added`` in place of
``stands``.
"""

from __future__ import annotations

from typing import Any, Final

from ..base.json_line import BadLineError, encode_line, is_whole, load_line

LATEST_ONLY: Final = ("gap", "stands", "shown", "added")
"""Types of which only a session's last line counts."""


def key_of(note: dict[str, Any]) -> str:
    """What a note is looked for by, besides its session."""
    return str(note.get({"draft": "token", "from": "parent"}.get(note["type"], ""), ""))


def encode_note(note: dict[str, Any]) -> bytes:
    """A note as one line, newline included."""
    return encode_line(note)


def decode_note(line: bytes) -> dict[str, Any]:
    """The note a line holds.

    Raises:
        BadLineError: it is not JSON, lacks what a note needs, or its checksum does not match.

    """
    note = load_line(line)
    if not isinstance(note.get("type"), str) or not isinstance(note.get("session"), str):
        raise BadLineError("is no note: it needs type and session")
    if not is_whole(line, note):
        raise BadLineError("the checksum does not match")
    del note["crc"]
    return note
