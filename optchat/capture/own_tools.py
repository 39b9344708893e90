"""Which results are our own: memory text that must not come into the log as something new.

Pure. A host may offer our tools under names of its own (``mcp__optchat__zoom``, ``zoom``) or put
their answers into an object of its own: then the shape of the answer tells, ``{"text": …}`` with
nothing but lines of the memory (``hermes/tools.py``). A result that only quotes such a line is none
of ours. Called by ``host_messages``.
"""

from __future__ import annotations

import json
import re
from typing import Final

_NAME: Final = re.compile(r"\Aoptchat_|(?:\A|[\W_])optchat_+(?:optchat_)?(?:zoom|date|search)\Z")
_VERB: Final = re.compile(r"(?:\A|[\W_])(?:zoom|date|search)\Z")
_LINE: Final = re.compile(r" {0,2}\d{1,15}\+\d{1,15}\|")
_MESSAGE: Final = re.compile(r"\d{1,15}\+1\|(?:user|talk|tool|echo|work|note)(?: \([^\n]*?\))?:")
_DATE: Final = re.compile(r"\d{1,15}: (?:\d{4}-\d\d-\d\dT|at a time not recorded)")
_BROKEN: Final = re.compile(
    r'\s*(?:\{\s*"result"\s*:\s*")?\{\s*\\?"text\\?"\s*:\s*\\?"'
    rf"(?={_LINE.pattern}|{_DATE.pattern})"
)
"""Begins an answer that is no JSON any more: a host masks secrets in results, or cuts them."""
_HEAD_MAX: Final = 80
"""Characters in which an answer of ours, and what a host puts it into, names its text."""


def is_ours(tool: str, text: str) -> bool:
    """Whether a tool's result is an answer of our tools."""
    if _NAME.search(tool):
        return True
    inner = _only_text(text)
    if inner is not None:
        return _is_shown(inner)
    return (
        _is_shown(text)
        if _VERB.search(tool)
        else _is_json(text) is None and bool(_BROKEN.match(text))
    )


def _is_shown(text: str) -> bool:
    """Whether a text is what our tools show: a message, lines or dates, and nothing else."""
    lines = [line for line in text.splitlines() if line.strip()]
    whole = bool(lines) and any(all(form.match(line) for line in lines) for form in (_LINE, _DATE))
    return whole or bool(_MESSAGE.match(text))


def _only_text(result: str) -> str | None:
    """The text of an answer that holds nothing else, alone or as the ``result`` of a host."""
    for name in ("result", "text"):
        value = _is_json(result)
        if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(name), str):
            if name == "text":
                return str(value[name])
            result = value[name]
    return None


def _is_json(text: str) -> object:
    """The object in a text; None where it is none."""
    head = text[:_HEAD_MAX].lstrip()
    if not head.startswith("{") or '"text' not in head.replace("\\", ""):
        return None  # most results are large objects of other tools: not worth parsing
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
