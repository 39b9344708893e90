"""A search result. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..base.record import Message


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found, whole.

    ``line``: how it is shown, ``id+1|kind: text``, of a long one the part asked for.
    """

    id: int
    kind: str
    text: str
    date: str
    session: str
    line: str

    @classmethod
    def of(cls, message: Message, line: str) -> Hit:
        """The hit that shows this message."""
        return cls(message.id, message.kind, message.text, message.date, message.session, line)
