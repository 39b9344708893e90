"""A search result. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .records import Message


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found, whole."""

    id: int
    kind: str
    text: str
    date: str
    session: str

    @classmethod
    def of(cls, message: Message) -> Hit:
        """The hit that shows this message."""
        return cls(message.id, message.kind, message.text, message.date, message.session)
