"""What a line costs: nothing, our own time, or a model's tokens.

Pure; decides by kind and size alone.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Cost(IntEnum):
    """What it takes to have the line of a node.

    Without a model, the local summarizer writes what is ``MODEL`` as well.
    """

    FREE = 0
    """Its source is short enough to be its own line."""
    LOCAL = 1
    """Its source is long and not worth a model's words.

    The local summarizer writes the line, by choice.
    """
    MODEL = 2
    """Its source is long and worth a model's words, where there is a model."""


CHEAP = (Cost.FREE, Cost.LOCAL)
ALL = (Cost.FREE, Cost.LOCAL, Cost.MODEL)


class Costs(NamedTuple):
    """The two settings that decide.

    Target bytes of one line, and the kinds whose lines a model writes.
    """

    node_bytes: int = 512
    model_kinds: tuple[str, ...] = ("user", "talk", "work", "note")

    def spares(self, kind: str) -> bool:
        """Whether a message of this kind is not worth a model's words.

        Tool calls and results are most of a log's volume and least of its value; a kind nobody
        knows is none a user chose to pay for.
        """
        return kind not in self.model_kinds

    def of(self, source_bytes: int, *, spare: bool) -> Cost:
        """The cost of a line made from so many bytes.

        ``spare``: what it is made from is not worth a model's words.
        """
        if source_bytes <= self.node_bytes:
            return Cost.FREE
        return Cost.LOCAL if spare else Cost.MODEL
