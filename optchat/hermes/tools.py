"""The tools a model may call to look closer: their schemas, and their answers as JSON strings.

Holds how arguments are read and how a fault is told to a model: what was wrong, and which call to make instead. Reads from a
``Memory``, never writes. Called by the provider, on the path of a turn.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import OptchatError

if TYPE_CHECKING:
    from ..memory import Memory

ZOOM: Final = "optchat_zoom"
DATE: Final = "optchat_date"

_ID: Final = {"type": "integer", "minimum": 0, "description": "Number of the first message: the id of a line `id+n|text`."}

SCHEMAS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": ZOOM,
        "description": (
            "Open one line of the memory. A line `id+n|text` sums up n messages from message id on. With n > 1 you get the two lines it "
            "was made from, each of which can be opened in turn; with n = 1 the message itself, word for word, in pages when it is long."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "id": _ID,
                "n": {"type": "integer", "minimum": 1, "description": "How many messages, as the line says. 1 (default): the message."},
                "page": {"type": "integer", "minimum": 1, "description": "Page of a long message, from 1 (default) on."},
            },
            "required": ["id"],
        },
    },
    {
        "name": DATE,
        "description": "Tell when a message of the memory was written, in local time with its offset.",
        "parameters": {"type": "object", "properties": {"id": _ID}, "required": ["id"]},
    },
)

_ADDRESS: Final = re.compile(r"\s*(\d{1,18})\s*(?:\+\s*(\d{1,18}))?\s*(?:\|.*)?", re.DOTALL)

_EXAMPLES: Final = f"{ZOOM}(id=12, n=4) opens the line 12+4, {ZOOM}(id=12) the message 12, {DATE}(id=12) tells its date"


class _ArgumentError(OptchatError):
    """An argument that is no number."""


def call(memory: Memory, name: str, arguments: dict[str, Any]) -> str:
    """The answer of a tool as a JSON string: ``{"text": …}``, or ``{"error": …, "instead": …}`` where it cannot be given."""
    try:
        first, count = _address(arguments)
        if name == ZOOM:
            page = _number(arguments, "page", 1)
            return answer(text=memory.zoom(first, count, page))
        if name == DATE:
            return answer(text=memory.date(first))
    except OptchatError as error:
        return answer(error=error.message, instead=error.hint or f"{ZOOM}(id, n) with the id and n of a line in view")
    return answer(error=f"optchat has no tool {name}", instead=f"{ZOOM}(id, n) or {DATE}(id)")


def answer(**parts: str) -> str:
    """A JSON object with these texts, which encodes whatever they hold."""
    try:
        json_text = json.dumps(parts, ensure_ascii=False)
        json_text.encode()
    except UnicodeEncodeError:
        # A lone surrogate, from an argument or an old error: escaped, it can at least be sent.
        return json.dumps(parts)
    return json_text


def _address(arguments: dict[str, Any]) -> tuple[int, int]:
    """Id and n. Models also write ``id="12+4"``, the whole address as it stands in the view: that says what is meant."""
    raw = arguments.get("id")
    written = _ADDRESS.fullmatch(raw) if isinstance(raw, str) else None
    if written and written[2] and arguments.get("n") in (None, "", 1, "1"):
        return int(written[1]), int(written[2])
    first = int(written[1]) if written else _number(arguments, "id", None)
    return first, _number(arguments, "n", 1)


def _number(arguments: dict[str, Any], key: str, default: int | None) -> int:
    """A whole number, also as text or as 12.0; models send both.

    Raises:
        _ArgumentError: it is none, or missing without a default.

    """
    raw = arguments.get(key)
    if raw in (None, "") and default is not None:
        return default
    if isinstance(raw, str) and raw.strip().isdecimal() and len(raw) < 20:
        return int(raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    said = "is missing" if raw is None else f"is no whole number: {str(raw)[:80]!r}"
    raise _ArgumentError(f"{key} {said}", hint=_EXAMPLES)
