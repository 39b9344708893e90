"""What ``optchat redact`` asks before it takes a message's words out, and what it says afterwards.

Pure: prints and reads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..tree.render import one_line
from .output import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..base.record import Message
    from ..memory.reports import RedactReport

SHOWN_CHARS: Final = 120
_NAMED: Final = 20

ELSEWHERE: Final = (
    "What this memory cannot reach: the host's own database (state.db) has a copy of its "
    "own, and so has every backup of either. "
    "What was sent to a model was sent."
)


def question(message: Message | None, id_: int) -> str:
    """What is asked: which message it is, and that there is no way back."""
    if message is None:
        return f"Message {id_} is lost; take out what is left of it? There is no way back. [y/N] "
    shown = one_line(message.text[: SHOWN_CHARS + 1])
    shown = shown if len(shown) <= SHOWN_CHARS else shown[: SHOWN_CHARS - 1] + "…"
    what = f"{id_}+1|{one_line(message.kind)}: {shown}"
    size = bytes_text(len(message.text.encode(errors="replace")))
    return (
        f"{what}\nTake the words of this message ({size}, {message.date[:10]}) out of the memory "
        "for good? There is no way back. [y/N] "
    )


def is_yes(answer: str) -> bool:
    """Whether an answer means yes; no answer does not."""
    return answer.strip().casefold() in ("y", "yes")


def redacted_text(facts: RedactReport, typed: Callable[[str], str]) -> str:
    """What was done, what to do where something is left, and where copies are.

    ``typed`` makes a command of its name.
    """
    id_, others = facts["id"], facts["same_words"]
    if facts["already"]:
        said = [f"message {id_} was redacted before; nothing was left to do"]
    else:
        said = [
            f"message {id_} is redacted: its words are gone{_lines_gone(facts['lines'], typed)}"
        ]
    if others:
        named = ", ".join(map(str, others[:_NAMED])) + (
            " and others" if len(others) > _NAMED else ""
        )
        what, them = ("message", "it") if len(others) == 1 else ("messages", "them")
        said.append(f"The same words stand in {what} {named}: redact {them} too")
    for name in facts["left_in"]:
        said.append(
            f"Pieces may be left in {name}: end all programs that use this memory, then "
            f"delete {name}*; it is made anew"
        )
    return "\n".join([*said, ELSEWHERE])


def _lines_gone(lines: int, typed: Callable[[str], str]) -> str:
    if not lines:
        return ", and no line had summed it up"
    gone, again = ("line", "It is") if lines == 1 else ("lines", "They are")
    return (
        f", and {lines} {gone} that summed it up. {again} built again while Hermes runs, or now "
        f"with: {typed('compact')}"
    )
