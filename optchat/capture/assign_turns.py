"""Which open turns the new messages of a list are.

Pure. ``open_turns`` pairs texts with turns; here it is decided which turns come into question, and
in which order. Called by ``reconcile``, and by ``match_by_id`` and ``match_by_text`` to see whether
a way of reading a list leaves anything unexplained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .host_text import masked_end
from .open_turns import Draft, Piece, Unit, assign
from .pairing import Expected
from .plan import is_blank, is_worded, new_after
from .session_records import UNDO_NOTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .host_messages import Item
    from .pairing import Match
    from .plan import New, Reconciliation


def explained(case: Reconciliation, fresh: Sequence[New]) -> bool:
    """Whether all that would be new in the user's role is what open turns lead us to expect."""
    _mark_ahead(case, fresh)
    units = [new.unit for new in fresh if new.unit is not None]
    if case.named and case.running is not None and units:
        # Its own message is last; without host ids it has been cut off already.
        before = (
            units[-1].canon
            if is_blank(case.running)
            else masked_end(units[-1].canon, case.running.canon)
        )
        units[-1:] = [Unit(before)] if before else []
    ahead = bool(units) and fresh[-1].unit is units[-1] and bool(case.turn.reserve_token)
    # A host saves no message before it announces its turn; with ids, a list may be another's.
    ahead = ahead and (case.named or not case.is_saved(fresh[-1].item))
    return _assign(case, units) or (ahead and assign(units[:-1], case.open, oldest_first=True))


def expected(case: Reconciliation, flow: Sequence[Item]) -> Expected:
    """What may be new of the items of a list."""
    told = [
        draft
        for draft in case.open
        if draft.record is None and draft.said and draft.canon and not draft.other_owner
    ]

    silent = any(draft.textless for draft in case.open)

    def opens(item: Item) -> bool:
        return (silent and not is_worded(item, named=case.named)) or assign(
            [Unit(item.canon, worded=True)], told, oldest_first=False
        )

    def fits(match: Match) -> bool:
        return explained(case, new_after(flow, match))

    unshown = {draft.canon for draft in case.drafts if draft.record is not None and draft.canon}
    retracted = case.known.retracted(case.turn.session)
    if (
        any(draft.text == UNDO_NOTE and not draft.said for draft in case.drafts)
        and case.known.records
    ):
        retracted = case.known.records[-1].id + 1  # its note is still to be logged
    return Expected(fits, opens, case.known.calls, unshown, retracted)


def settle(case: Reconciliation, fresh: Sequence[New]) -> None:
    """Give every new message in the user's role its turns."""
    _mark_ahead(case, fresh)
    units = [new.unit for new in fresh if new.unit is not None and new.unit.pieces is None]
    last = next((new for new in reversed(fresh) if new.unit is not None), None)
    own: list[Piece] = []
    if (
        case.named
        and case.running is not None
        and last is not None
        and case.is_last_said(last.item)
        and last.unit is not None
    ):
        before = (
            last.unit.canon
            if is_blank(case.running)
            else masked_end(last.unit.canon, case.running.canon)
        )
        own = [
            Piece(
                case.running, last.unit.canon[len(before) :].strip() if before else last.unit.canon
            )
        ]
        if before:
            last.unit.canon = before
        else:
            last.unit.pieces = []
            units.remove(last.unit)
    _assign(case, units)
    _part_known(case, units)
    if not own and (blank := _blank_joined(case, fresh)) is not None:
        last, own = blank[0], [blank[1]]
    if own and last is not None and last.unit is not None:
        last.unit.pieces = [*(last.unit.pieces or []), *own]


def _assign(case: Reconciliation, units: Sequence[Unit]) -> bool:
    """Give new messages their turns.

    Of several that look alike the newest, unless some were taken back or one is not begun yet.
    """
    if _newest_last(case, units):
        return True
    if not case.turn.rewound and assign(units, case.open, oldest_first=False):
        return True
    return assign(units, case.open, oldest_first=case.turn.rewound or case.running is None)


def _part_known(case: Reconciliation, units: Sequence[Unit]) -> None:
    """Take apart what a host has joined of a message that is logged and one that no list had shown.

    An undo can bring that one back.
    """
    for unit in units if case.tail else ():
        if "\n\n" not in unit.canon or any(piece.draft is not None for piece in unit.pieces or ()):
            continue
        logged = [draft for draft in case.drafts if draft.record is not None]
        logged += [Draft.of(record, superseded=False) for record in case.tail]
        logged.sort(key=lambda draft: draft.record.id if draft.record is not None else 0)
        assign([unit], logged, oldest_first=True)


def _newest_last(case: Reconciliation, units: Sequence[Unit]) -> bool:
    """Whether the turn begun last is the last message, and the others explain the rest."""
    draft = case.begun
    if draft is None or not units or case.turn.is_own_list or case.running is not None:
        return False
    if draft.token in case.beyond:
        return False
    last = units[-1]
    if any(unit.token == draft.token for unit in units[:-1]):
        return False
    fits = last.parts if draft.text is None else last.canon == draft.canon
    fits = fits and last.token in ("", draft.token)
    before = case.drafts[: next(k for k, other in enumerate(case.drafts) if other is draft)]
    if not fits or not assign(units[:-1], before, oldest_first=case.turn.rewound):
        return False
    last.pieces = [Piece(draft, last.canon)]
    return True


def _mark_ahead(case: Reconciliation, fresh: Sequence[New]) -> None:
    for new in fresh:
        if new.unit is not None:
            new.unit.token = case.turn.placed.get(id(new.item), "")
    last = fresh[-1] if fresh else None
    if (
        case.turn.reserve_token
        and last is not None
        and last.unit is not None
        and last.item is case.items[-1]
    ):
        # A host announces a turn before it saves its message. One that is open in the session this
        # is a copy of is that one, whenever the copy was made.
        along = any(
            d.session != case.turn.session and d.canon == last.unit.canon
            for d in case.drafts
            if d.record is None
        )
        last.unit.maybe_unannounced = not (case.is_saved(last.item) or along)


def _blank_joined(case: Reconciliation, fresh: Sequence[New]) -> tuple[New, Piece] | None:
    """The running turn where its message is blank and was joined to another one; and that one.

    Only the white space at the end shows it.
    """
    draft = case.begun
    if draft is None or draft.text is None or draft.canon or case.turn.is_own_list:
        return None
    said = [new for new in fresh if new.unit is not None]
    if any(p.draft is draft for new in said if new.unit for p in new.unit.pieces or ()):
        return None
    ends = (new for new in reversed(said) if new.item.text.endswith(f"\n\n{draft.text}"))
    new = next(ends, None)
    return None if new is None else (new, Piece(draft, ""))
