"""What the index holds and gives back, as records.

Plain data between ``index.py`` and those who fill or ask it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..base.address import Place
    from ..base.cost import Cost
    from .day_files import Spot


class MessageRow(NamedTuple):
    """A message as the index holds it; ``spot`` is None for one that is lost.

    ``names``: all by which it can be looked up (``names_of``).
    """

    id: int
    spot: Spot | None
    bytes: int
    session: str
    names: tuple[str, ...] = ()
    kind: str = ""


class NodeRow(NamedTuple):
    """A node as the index holds it; ``bytes`` and ``chars`` are those of its text."""

    place: Place
    spot: Spot
    bytes: int
    chars: int
    by: str
    spare: bool = False


class Ready(NamedTuple):
    """A node that can be built now.

    The bytes of what it is built from, what its line costs, and whether it is spare.
    """

    place: Place
    source_bytes: int
    cost: Cost
    spare: bool


class State(NamedTuple):
    """The index in a nutshell.

    ``known`` has the bytes taken in of the day files that matter, by (room, name).

    ``last``: the day file of messages that was last written to.
    """

    generation: int
    total: int
    known: dict[tuple[str, str], int]
    last: str = ""
