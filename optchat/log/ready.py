"""The ready table of the index: which nodes can be built now, and what the line of each costs.

SQL only.

Rows come and go in the same transaction as the message or node that makes or unmakes them, so that
nobody ever scans the tree for work. The cost is in the row, by the settings in force when it was
written: a free line must be found at once behind any number of those that wait for a model. Run by
``index.py``, which writes, and ``lookup.py``, which asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..base.cost import ALL, Cost, Costs
from ..base.record import BUILDERS, KINDS

if TYPE_CHECKING:
    from collections.abc import Collection

SCHEMA: Final = """
-- last = the last message covered: in this order children come before parents, old before new.
-- bytes = size of the source
CREATE TABLE ready (last INTEGER, level INTEGER, bytes INTEGER NOT NULL, cost INTEGER NOT NULL,
spare INTEGER NOT NULL,
                    PRIMARY KEY (cost, last, level)) WITHOUT ROWID;
"""

ADD_NEW: Final = "INSERT OR REPLACE INTO ready VALUES (?, 0, ?, ?, ?)"
DROP: Final = (
    f"DELETE FROM ready WHERE cost IN ({', '.join(str(int(cost)) for cost in ALL)}) AND last = ? "
    "AND level = ?"
)

_COPY: Final = BUILDERS.index("copy")
"""A node that is all copies: merged with another, it leaves that one's line as it is."""

OTHER_KIND: Final = len(KINDS)
"""What stands in the index for a kind that is none of ours."""


def number_of(kind: str) -> int:
    """A kind as the index holds it."""
    return KINDS.index(kind) if kind in KINDS else OTHER_KIND


class ReadySql:
    """The statements that write the table, for one choice of what is worth a model.

    Before a row is added it is dropped: one that is there already may have another cost. A message
    that was lost and is found has another size than the line that stood for it, and so has a
    fallback that was written anew.
    """

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.settings = f"{costs.node_bytes} {' '.join(sorted(costs.model_kinds))}"
        limit = int(costs.node_bytes)
        worth_it = (
            ", ".join(str(number_of(kind)) for kind in costs.model_kinds if kind in KINDS) or "-1"
        )
        spare = f"CASE WHEN m.kind IN ({worth_it}) THEN 0 ELSE 1 END"
        leaf = (
            f"CASE WHEN m.bytes <= {limit} THEN {Cost.FREE} WHEN m.kind IN ({worth_it}) THEN "
            f"{Cost.MODEL} ELSE {Cost.LOCAL} END, {spare}"
        )
        merge = (
            f"CASE WHEN a.bytes + b.bytes + 1 <= {limit} OR {_COPY} IN (a.by, b.by) "
            f"THEN {Cost.FREE} "
            f"WHEN a.spare AND b.spare THEN {Cost.LOCAL} ELSE {Cost.MODEL} END, a.spare AND b.spare"
        )
        self.add_leaf = (
            f"INSERT INTO ready SELECT m.id, 0, m.bytes, {leaf} FROM messages m WHERE m.id = ? "
            "AND NOT EXISTS (SELECT 1 FROM nodes WHERE level = 0 AND idx = m.id)"
        )
        self.add_merge = (
            f"INSERT INTO ready SELECT ?3, ?1, a.bytes + b.bytes + 1, {merge} FROM nodes a, "
            "nodes b "
            "WHERE a.level = ?1 - 1 AND a.idx = ?2 * 2 AND b.level = ?1 - 1 AND b.idx = ?2 * 2 + 1 "
            "AND NOT EXISTS (SELECT 1 FROM nodes WHERE level = ?1 AND idx = ?2)"
        )
        leaves = (
            f"INSERT INTO ready SELECT m.id, 0, m.bytes, {leaf} FROM messages m "
            "WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE level = 0 AND idx = m.id)"
        )
        merges = (
            "INSERT INTO ready SELECT ((a.idx / 2 + 1) << (a.level + 1)) - 1, a.level + 1, "
            f"a.bytes + b.bytes + 1, {merge} FROM nodes a "
            "JOIN nodes b ON b.level = a.level AND b.idx = a.idx + 1 WHERE a.idx % 2 = 0 "
            "AND NOT EXISTS (SELECT 1 FROM nodes p WHERE p.level = a.level + 1 AND p.idx = "
            "a.idx / 2)"
        )
        self.rebuild = ("DELETE FROM ready", leaves, merges)

    def leaf(self, id_: int, kind: str, bytes_: int) -> tuple[int, int, int, bool]:
        """The row of a new message for ``ADD_NEW``."""
        spare = self._costs.spares(kind)
        return id_, bytes_, int(self._costs.of(bytes_, spare=spare)), spare


def questions(costs: Collection[Cost]) -> list[str]:
    """What to ask for the first rows of these costs, each a question with a limit.

    Their answers are merged by whoever asks.

    One for each cost, as the table is ordered: asked for several at once, a million rows that wait
    would be sorted each time.
    """
    return [
        f"SELECT last, level, bytes, cost, spare FROM ready WHERE cost = {int(cost)} ORDER "
        "BY last, level LIMIT ?"
        for cost in costs
    ]
