"""From a host's list to what the log still lacks: which messages are new, in which order, and which open turns they are.

Pure: list, log and open turns in, a plan out. A host shows its whole list again and again, rewritten on the way; every real message
of it must come into the log once, in order. With host ids a message is new if its id is; without them its place and words tell, and
the turns known to be open tell which of several equal messages are meant. Called by ``capture/capture.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .hosttext import alike
from .named import fresh_named
from .plan import EARLY, Addition, Bind, Case, Footing, Plan, Turn, unshown
from .recognition import recognize
from .records import Entry
from .turns import settle
from .unnamed import fresh_unnamed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .drafts import Draft, Piece
    from .hostlist import Item
    from .known import Known
    from .plan import New

__all__ = ["EARLY", "Addition", "Bind", "Footing", "Plan", "Turn", "reconcile", "unshown"]


def reconcile(items: Sequence[Item], known: Known, drafts: Sequence[Draft], turn: Turn) -> Plan:
    """The plan for one list. ``drafts``: the open turns of the session and its branches, in the order in which they began."""
    recognize(items, known, turn.session, [draft.canon for draft in drafts])
    case = Case(items, known, drafts, turn)
    gap = max((at for at, item in enumerate(items) if item.kind == "gap"), default=-1)
    case.plan.gap = items[gap].key if gap >= 0 else ""
    fresh = fresh_named(case) if case.named else fresh_unnamed(case, gap)
    settle(case, fresh)
    _emit(case, fresh)
    return case.plan


def _emit(case: Case, fresh: list[New]) -> None:
    used = {id(piece.draft) for new in fresh if new.unit for piece in new.unit.pieces or () if piece.draft is not None}
    waiting = [draft for draft in case.drafts if id(draft) not in used and draft.record is None and not draft.foreign]
    order = {id(draft): at for at, draft in enumerate(case.drafts)}
    early = fresh[-1] if fresh and _is_early(case, fresh[-1]) else None
    session = case.session
    for new in fresh:
        if new.unit is None:
            _add(case, new, session)
            continue
        pieces = new.unit.pieces or []
        for piece, name in zip(pieces, _shared_out(new.names, len(pieces)), strict=True):
            # What was begun before and no list has shown comes first: the user said it earlier.
            reached = order.get(id(piece.draft), 0) if piece.draft is not None else len(order) if new is early else 0
            while waiting and order[id(waiting[0])] < reached:
                lost = waiting.pop(0)
                if lost.text is not None:  # of a picture announced without words there is nothing to write
                    case.plan.additions.append(unshown(lost, case.turn.platform))
            session = piece.draft.session if piece.draft is not None else case.turn.session
            _say(case, new.item, piece, name, session, alone=len(pieces) == 1)
    if early is not None:
        last = case.plan.additions[-1]
        last.entry = replace(last.entry, turn=case.turn.spare)
        case.plan.early = early.item


def _is_early(case: Case, last: New) -> bool:
    """Whether the list ends with a message that no turn explains: its turn is about to be announced."""
    if case.running is not None or not case.turn.spare or last.item is not case.items[-1] or last.item.saved:
        return False
    pieces = last.unit.pieces if last.unit is not None else None
    return pieces is not None and pieces[-1:] != [] and pieces[-1].draft is None


def _add(case: Case, new: New, session: str) -> None:
    item = new.item
    entry = Entry(
        kind=item.kind,
        text=new.text or item.text,
        session=session,
        uid=new.names[0] if new.names else item.uid,
        call=item.call,
        tool=item.tool,
        author=item.author or (case.turn.author if item.steer else ""),
        platform=case.turn.platform,
    )
    case.plan.additions.append(Addition(entry, item.stamp))


def _say(case: Case, item: Item, piece: Piece, name: str, session: str, *, alone: bool) -> None:
    draft = piece.draft
    if draft is not None and draft.record is not None:
        if name or not draft.record.shown:
            case.plan.binds.append(Bind(draft.record.id, uid=name))
        return
    if item.canon.endswith(piece.canon):  # what others said around a joined message came with its last part
        _add_others(case, item, session)
    text = item.text if alone and item.canon == piece.canon else piece.canon
    if draft is not None and draft.text is not None and not item.parts and _same_words(draft, piece, masked=bool(item.uid)):
        text = draft.text  # as told: the list may have it joined, stripped, framed or masked more
    entry = Entry(
        kind=draft.kind if draft is not None else item.kind,
        text=text,
        date=draft.date if draft is not None else "",
        session=session,
        uid=name,
        turn=draft.token if draft is not None else "",
        author=item.author or (draft.author if draft is not None else "") or case.turn.author,
        platform=case.turn.platform,
    )
    case.plan.additions.append(Addition(entry, item.stamp))


def _add_others(case: Case, item: Item, session: str) -> None:
    """Log what others said in the channel as notes: no list shows them again as messages of their own."""
    for author, text in item.others:
        entry = Entry(kind="note", text=text, session=session, author=author, platform=case.turn.platform)
        case.plan.additions.append(Addition(entry, item.stamp))


def _same_words(draft: Draft, piece: Piece, *, masked: bool) -> bool:
    return draft.canon in piece.canon or (masked and alike(draft.canon, piece.canon))


def _shared_out(names: tuple[str, ...], pieces: int) -> tuple[str, ...]:
    """One host id for each piece of a joined message, where they are as many; else all for the first, which keeps it."""
    return names if len(names) == pieces else ((names or ("",))[0],) * min(1, pieces) + ("",) * (pieces - 1)
