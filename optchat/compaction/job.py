"""One node to build, and what came of it.

Plain data between those who find work, do it, and write it down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..base.record import Node

if TYPE_CHECKING:
    from ..base.address import Place


class Job(NamedTuple):
    """One node to build.

    A leaf has its message's kind and text; a merge has no kind and the texts of its two halves.

    ``spare``: nothing in it is worth a model's words. ``known``: its line and who that is by, where
    nobody need write it.
    """

    place: Place
    kind: str
    sources: tuple[str, ...]
    source_bytes: int
    spare: bool = False
    known: tuple[str, str] | None = None

    @property
    def source(self) -> str:
        """What stands for itself as a line, if it is short enough."""
        return "\n".join(self.sources) if self.place.level else f"{self.kind}: {self.sources[0]}"

    def node(self, text: str, by: str, *, spare: bool | None = None) -> Node:
        """The node of this job with its text."""
        place = self.place
        return Node(
            level=place.level,
            index=place.index,
            text=text,
            by=by,
            spare=self.spare if spare is None else spare,
        )


class Outcome(NamedTuple):
    """What an attempt to have a line written by a model came to.

    ``text``: the line; "" if there is none. ``spare``: there is none because its turn is not worth
    one. ``reasons``: why what the model gave was refused. ``final``: asking again would be in vain.
    """

    text: str = ""
    spare: bool = False
    reasons: tuple[str, ...] = ()
    final: bool = False
