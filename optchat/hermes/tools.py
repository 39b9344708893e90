"""The tools a model may call to look closer: their schemas, and their answers as JSON strings.

Holds how arguments are read and how a fault is told to a model: what was wrong, and which call to
make instead. Reads from a ``Memory``, never writes. Called by the provider, on the path of a turn.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ..base.errors import OptchatError

if TYPE_CHECKING:
    from ..memory import Memory

ZOOM: Final = "optchat_zoom"
DATE: Final = "optchat_date"
SEARCH: Final = "optchat_search"
SEARCH_MOST: Final = 50
"""Lines of one answer: more would cost what the view was made to save."""

_ID: Final = {
    "type": "integer",
    "minimum": 0,
    "description": "Number of the first message: the id of a line `id+n|text`.",
}

SCHEMAS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": ZOOM,
        "description": (
            "Open one line of the memory. A line `id+n|text` sums up n messages from message "
            "id on. With n > 1 you get the two lines it "
            "was made from, each of which can be opened in turn; with n = 1 the message "
            "itself, word for word, in pages when it is long."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "id": _ID,
                "n": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How many messages, as the line says. 1 (default): the message.",
                },
                "page": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Page of a long message, from 1 (default) on.",
                },
            },
            "required": ["id"],
        },
    },
    {
        "name": DATE,
        "description": (
            "Tell when a message of the memory was written, in local time with its offset."
        ),
        "parameters": {"type": "object", "properties": {"id": _ID}, "required": ["id"]},
    },
    {
        "name": SEARCH,
        "description": (
            "Find messages of the memory by their words: names, paths, numbers, any "
            "language. You get lines `id+1|text`, each of which "
            f"{ZOOM}(id) shows whole; … stands where a long message was cut."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": (
                        "The words; rare ones find most. A date (2026-05-01) finds that day."
                    ),
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": SEARCH_MOST,
                    "description": "Most lines wanted, 10 by default.",
                },
                "newest": {
                    "type": "boolean",
                    "description": "Newest first instead of best first (default: false).",
                },
            },
            "required": ["query"],
        },
    },
)
_EXAMPLES: Final = (
    f"{ZOOM}(id=12, n=4) opens the line 12+4, {ZOOM}(id=12) the message 12, {DATE}(id=12) tells "
    "its date"
)


def schemas(*, search: bool) -> list[dict[str, Any]]:
    """The tools to offer; ``search``: with the one that finds messages by their words."""
    return [dict(schema) for schema in SCHEMAS if search or schema["name"] != SEARCH]


def call(memory: Memory, name: str, arguments: dict[str, Any]) -> str:
    """The answer of a tool as a JSON string.

    ``{"text": …}``, or ``{"error": …, "instead": …}`` where it cannot be given.
    """
    try:
        if arguments.get("id") in (None, "") and name in (ZOOM, DATE):
            return answer(error="id is missing", instead=_EXAMPLES)
        if name == ZOOM:
            return answer(
                text=memory.zoom(*(_argument(arguments, key, 1) for key in ("id", "n", "page")))
            )
        if name == DATE:
            return answer(text=memory.date(_argument(arguments, "id", 0)))
        if name == SEARCH:
            return _found(memory, arguments)
    except OptchatError as error:
        return answer(error=error.message, instead=error.hint or _EXAMPLES)
    return answer(error=f"optchat has no tool {name}", instead=f"{ZOOM}(id, n) or {DATE}(id)")


def _found(memory: Memory, arguments: dict[str, Any]) -> str:
    query, limit = str(arguments.get("query") or ""), _argument(arguments, "limit", 10)
    if not query.strip():
        return answer(error="query is missing", instead=f'{SEARCH}(query="the words to look for")')
    most = min(int(limit), SEARCH_MOST) if str(limit).isdecimal() else 10
    hits = memory.search(query, most, newest=arguments.get("newest") in (True, "true"))
    return answer(
        text="\n".join(hit.line for hit in hits)
        or "no message holds these words; other words may find it"
    )


def answer(**parts: str) -> str:
    """A JSON object with these texts, which encodes whatever they hold."""
    try:
        json_text = json.dumps(parts, ensure_ascii=False)
        json_text.encode()
    except UnicodeEncodeError:
        # A lone surrogate, from an argument or an old error: escaped, it can at least be sent.
        return json.dumps(parts)
    return json_text


def _argument(arguments: dict[str, Any], key: str, default: int) -> int | str:
    """An argument as the memory reads it.

    Whole numbers also come as 12.0, and what is left out as null or an empty text.
    """
    raw = arguments.get(key)
    if raw is None or raw == "":
        return default
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    return raw if isinstance(raw, int) else str(raw)
