"""Which messages are one turn.

A user's message and what came of it, up to the next one in its session. Asks the index only.

Sessions are interleaved in the log, so a turn is found by walking along its session; as far as a
turn reaches, and never further than a bound. Called by ``store.py``.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from .ready import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .index import Index

WALK_MOST: Final = 4_096
"""Messages of a session looked through in either direction.

An import without any user would be walked from end to end for each.
"""
_FIRST_STEP: Final = 32
"""Messages asked for first; most turns are shorter, and each further step is eight times as long.
"""
_USER: Final = number_of("user")


def turn_ids(index: Index, id_: int) -> list[int]:
    """The messages of the turn that message ``id_`` belongs to, in order.

    None where no user has spoken before it in its session.
    """
    rows = index.rows("SELECT session FROM messages WHERE id = ?", (id_,))
    if not rows:
        return []
    session = rows[0][0]
    first = next(
        (id_ for id_, kind in _walk(index, session, id_ + 1, back=True) if kind == _USER), None
    )
    if first is None:
        return []
    return [
        first,
        *(
            id_
            for id_, _ in takewhile(
                lambda row: row[1] != _USER, _walk(index, session, first, back=False)
            )
        ),
    ]


def _walk(
    index: Index, session: int | None, at: int, *, back: bool
) -> Iterator[tuple[int, int | None]]:
    """(id, kind) of a session's messages before or after ``at``, the nearest first."""
    side, order = ("<", "DESC") if back else (">", "ASC")
    step, left = _FIRST_STEP, WALK_MOST
    while left > 0:
        if (
            session is None
            # messages without one are in no list of their own: looked for among all, so the bound
            # is on ids
        ):
            low, high = (at - left, at) if back else (at, at + left)
            where, values = "session IS NULL AND id > ? AND id < ?", (low, high, step)
        else:
            where, values = f"session = ? AND id {side} ?", (session, at, step)
        rows = index.rows(
            f"SELECT id, kind FROM messages WHERE {where} ORDER BY id {order} LIMIT ?", values
        )
        yield from rows
        if len(rows) < step:
            return
        left -= step
        at, step = rows[-1][0], min(step * 8, max(left, 1))
