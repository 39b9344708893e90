"""From a host's list to what the log still lacks.

Which messages are new, in which order, and which open turns they are.

Pure: list, log and open turns in, a plan out. A host shows its whole list again and again,
rewritten on the way; every real message of it must come into the log once, in order. With host ids
a message is new if its id is; without them its place and words tell, and the turns known to be open
tell which of several equal messages are meant. Called by ``capture/capture.py``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import blake2b
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Final

from ..base.record import Entry
from .assign_turns import settle
from .host_text import alike
from .match_by_id import fresh_named
from .match_by_text import fresh_unnamed
from .open_turns import seconds
from .plan import EARLY, ROW, Addition, Bind, Footing, Plan, Reconciliation, Turn, unshown
from .recognition import recognize
from .session_records import EDIT_NOTE, RETRY_NOTE, REWORD_NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .host_messages import Item
    from .open_turns import Draft, Piece
    from .plan import New
    from .session_records import Record, SessionRecords

_CLUE_LEAST: Final = 16
"""Characters of a report that hardly stand in another text by chance."""

__all__ = ["EARLY", "Addition", "Bind", "Footing", "Plan", "Turn", "reconcile", "unshown"]


def reconcile(
    items: Sequence[Item], known: SessionRecords, drafts: Sequence[Draft], turn: Turn
) -> Plan:
    """The plan for one list.

    ``drafts``: the open turns of the session and its branches, in the order in which they began.
    """
    items = _without_nothing(items, known, drafts, turn.session)
    recognize(items, known, turn.session, [draft.canon for draft in drafts])
    case = Reconciliation(items, known, drafts, turn)
    gap = max((at for at, item in enumerate(items) if item.kind == "gap"), default=-1)
    case.plan.gap = items[gap].key if gap >= 0 else ""
    fresh = fresh_named(case) if case.named else fresh_unnamed(case, gap)
    settle(case, fresh)
    _note_retraction(case, fresh)
    _emit(case, fresh)
    return case.plan


def _emit(case: Reconciliation, fresh: list[New]) -> None:
    used = {
        id(piece.draft)
        for new in fresh
        if new.unit
        for piece in new.unit.pieces or ()
        if piece.draft is not None
    }
    waiting = [draft for draft in case.drafts if id(draft) not in used and draft.record is None]
    order = {id(draft): at for at, draft in enumerate(case.drafts)}
    early = fresh[-1] if fresh and _is_early(case, fresh[-1]) else None
    session = case.session
    _emit_undo(case, fresh, waiting)
    orphan = _orphan(case, fresh)
    hosts_own = _since(case)
    elsewhere: set[str] = set()
    for at, new in enumerate(fresh):
        if new is not early and _is_wordless(new):
            continue
        _settle_reported(case, new.item, waiting)
        if new.unit is None:
            where = new.session or session
            if id(new.item) in hosts_own:
                _emit_lost(case, waiting, order, None, before=case.turn.began)
                where = case.turn.session
            elif new is orphan:
                where = session = (
                    _emit_lost(case, waiting, order, _first_piece(fresh[at:])) or where
                )
            if where == case.turn.session or not _is_logged_there(case, new.item, where, elsewhere):
                _add(case, new, where)
                _add_asides(case, new.item, waiting)
            continue
        session = _emit_said(case, new, waiting, order, early=new is early) or session
    if early is not None:
        last = case.plan.additions[-1]
        last.entry = replace(last.entry, turn=case.turn.reserve_token)
        case.plan.early = early.item


def _emit_said(
    case: Reconciliation, new: New, waiting: list[Draft], order: dict[int, int], *, early: bool
) -> str:
    """Log a message of the user's, or each of those the host has joined.

    Where the last was said, and what it brings is.
    """
    session = ""
    pieces = (new.unit.pieces if new.unit is not None else None) or []
    if new.edited:
        _note(case, EDIT_NOTE)
    for piece, name in zip(pieces, _shared_out(new.names, len(pieces)), strict=True):
        _emit_lost(case, waiting, order, piece, early=early)
        session = piece.draft.session if piece.draft is not None else case.turn.session
        if case.plan.retraction and piece.draft and piece.draft.token == case.turn.running:
            _note(case, case.plan.retraction)
        _say(case, new.item, piece, name, session, alone=len(pieces) == 1)
    return session


def _first_piece(fresh: Iterable[New]) -> Piece | None:
    return next((piece for new in fresh if new.unit for piece in new.unit.pieces or ()), None)


def _emit_lost(
    case: Reconciliation,
    waiting: list[Draft],
    order: dict[int, int],
    piece: Piece | None,
    *,
    early: bool = False,
    before: float = 0.0,
) -> str:
    """Write down what was begun before a message, or a time, and no list has shown.

    The user said it earlier.

    A turn of another instance only before a younger one that its session, or a copy of it, has
    shown: that has ended it. Gives the session of the last one, "" where there was none.
    """
    session = ""
    draft = piece.draft if piece is not None else None
    reached = order.get(id(draft), 0) if draft is not None else len(order) if early else 0
    theirs = draft.session if draft is not None and draft.other_owner else ""
    for lost in list(waiting):
        ended = not lost.other_owner or (
            lost.said and bool(theirs) and case.known.reaches(theirs, lost.session, lost.token)
        )
        if ended and (order[id(lost)] < reached or (lost.time <= before and not lost.other_owner)):
            waiting.remove(lost)
            session = lost.session
            if (
                lost.text is not None
            ):  # of a picture announced without words there is nothing to write
                case.plan.additions.append(unshown(lost, case.turn.platform))
    return session


def _is_logged_there(case: Reconciliation, item: Item, session: str, calls: set[str]) -> bool:
    """Whether a deed was logged late in the session this one is a copy of, after the copy was made.

    ``calls``: the calls that were found to be, for their results.
    """
    if item.kind == "echo":
        return item.call in calls
    if case.known.gained(session, item.key, unseen_by=case.turn.session):
        calls.add(item.call)
        return True
    return False


def _since(case: Reconciliation) -> set[int]:
    """What a turn of the host's own has brought.

    No turn that came before it, maybe in a parent, has.
    """
    if case.turn.since is None:
        return set()
    own = dropwhile(lambda item: item is not case.turn.since, case.items)
    return {id(item) for item in own}


def _orphan(case: Reconciliation, fresh: list[New]) -> New | None:
    """The first new deed of the agent's right behind a summary.

    What it was asked is in the summary.
    """
    first = fresh[0] if fresh and fresh[0].unit is None else None
    after_gap = False
    for item in case.items if first is not None else ():
        after_gap = (after_gap and not item.said) or item.kind == "gap"
        if first is not None and item is first.item:
            return first if after_gap else None
    return None


def _note_retraction(case: Reconciliation, fresh: list[New]) -> None:
    """Note, before the running turn's message, that it stands in the place of earlier ones.

    A host that sends a message again (``/retry``), or after an edit, cuts the old one and all that
    followed off its list and calls no hook.
    """
    own = next((new for new in fresh if _is_of(new, case.turn.running)), None)
    if own is None or not case.turn.is_own_list or case.turn.rewound or case.turn.seen_to < 0:
        return
    after = _known_before(case, own.item) if case.named else case.before
    if after is None:
        return
    gone = case.known.left_out(case.turn.session, after, case.turn.seen_to)
    if gone and not _is_said_again(case, own.item, gone, after):
        same = own.item.canon == gone[-1].canon
        text = RETRY_NOTE if same else REWORD_NOTE
        case.plan.retraction = text


def _is_said_again(case: Reconciliation, item: Item, gone: list[Record], after: int) -> bool:
    """Whether what a list without ids seems to lack are words it does show.

    Said again after an undo.
    """
    if case.named or case.known.retracted(case.turn.session) <= after:
        return False
    said = [other.canon for other in case.items if other.said and other is not item]
    return said[-len(gone) :] == [record.canon for record in reversed(gone)]


def _note(case: Reconciliation, text: str) -> None:
    session, platform = case.turn.session, case.turn.platform
    entry = Entry(kind="note", text=text, session=session, platform=platform)
    case.plan.additions.append(Addition(entry))


def _is_of(new: New, turn: str) -> bool:
    pieces = new.unit.pieces if new.unit is not None else None
    draft = pieces[-1].draft if pieces else None
    return draft is not None and draft.token == turn and draft.record is None


def _known_before(case: Reconciliation, item: Item) -> int | None:
    """The logged message right before an item of a list with ids; -1 if the item is the first."""
    behind = iter(reversed(case.items))
    any(other is item for other in behind)  # moves on to what stands before it
    before = next((other for other in behind if not other.steer), None)
    if before is None:
        return -1
    if before.said:
        return None  # unanswered: hosts join and part such messages
    return max((record.id for record in case.known.by_uid.get(before.uid, ())), default=None)


def _settle_reported(case: Reconciliation, item: Item, waiting: list[Draft]) -> None:
    """Drop the reports a host hands to the agent in a row of its own.

    They are logged as that row.
    """
    if not item.said or item.kind != "work":
        return
    for draft in [draft for draft in waiting if _is_aside(draft) and _tells_of(item.text, draft)]:
        waiting.remove(draft)
        case.plan.settled.append(draft.token)


def _add_asides(case: Reconciliation, item: Item, waiting: list[Draft]) -> None:
    """Log what came of a tool call besides its result, once that is logged."""
    # Looking for the call of each result would take the square of a first list's length.
    if item.kind != "echo" or not any(_is_aside(draft) for draft in waiting):
        return
    calls = [other.text for other in case.items if other.kind == "tool" and other.call == item.call]
    whole = "\n".join((*calls, item.text))
    for draft in [draft for draft in waiting if _is_aside(draft) and _tells_of(whole, draft)]:
        waiting.remove(draft)
        case.plan.additions.append(unshown(draft, case.turn.platform))


def _is_aside(draft: Draft) -> bool:
    return draft.aside and not draft.other_owner


def _tells_of(text: str, draft: Draft) -> bool:
    """Whether a text holds what a draft that was put aside is known by.

    A few words stand in many a text; a report is then known by its task as well.
    """
    if not _holds(text, draft.clue):
        return False
    short = draft.kind == "work" and len(draft.clue) < _CLUE_LEAST
    return not short or _holds(text, (draft.text or "").split("\n", 1)[0][:_CLUE_LEAST])


def _holds(text: str, clue: str) -> bool:
    """Whether some words stand in a text, as they are or within a JSON string, and not within
    others.
    """
    quoted = {clue, json.dumps(clue)[1:-1], json.dumps(clue, ensure_ascii=False)[1:-1]}
    start = r"(?<!\w)" if clue[:1].isalnum() else ""
    return bool(clue) and any(re.search(start + re.escape(words), text) for words in quoted)


def _emit_undo(case: Reconciliation, fresh: list[New], waiting: list[Draft]) -> None:
    """Note an undo before what the agent does of its own in the list that it has shortened."""
    if (
        not fresh
        or fresh[0].unit is not None
        or case.known.last_said(case.turn.session) <= case.plan.reached
    ):
        return
    ours = [draft for draft in waiting if not draft.other_owner]
    for draft in takewhile(lambda draft: not (draft.said or draft.aside), ours):
        waiting.remove(draft)
        case.plan.additions.append(unshown(draft, case.turn.platform))


def _without_nothing(
    items: Sequence[Item], known: SessionRecords, drafts: Sequence[Draft], session: str
) -> Sequence[Item]:
    """The items without empty rows in the user's role that cannot be white space somebody has sent.

    A database keeps a row of no words, or of no text, as an empty one; and joined to a message it
    leaves no trace, so that it would be paired in that message's place.
    """
    if not any(item.said and not item.text for item in items):
        return items
    begun = [draft.time for draft in drafts if draft.text is not None and not draft.canon]
    blank = [r for r in known.shown(session) if r.said and not r.canon]
    # One that has its id can only be shown under another where the whole list was copied.
    free = [record for record in blank if not record.uid or record.session != session]
    unknown = [i for i in items if i.said and not i.text.strip() and i.uid not in known.by_uid]
    dated = any(item.uid for item in items) and all(item.stamp for item in unknown)
    if (begun or free) and not (dated and all(record.date for record in free)):
        return items
    left = {id(item) for item in _undated(unknown, [*begun, *(seconds(r.date) for r in free)])}
    return [item for item in items if item.text.strip() or id(item) not in left]


def _undated(items: Sequence[Item], times: Sequence[float]) -> list[Item]:
    """The items that are left when each of some messages has the one dated next to it."""
    left = list(items)
    for time in times if left else ():
        left.remove(min(left, key=lambda item: abs(item.stamp - time)))
        if not left:
            break
    return left


def _is_wordless(new: New) -> bool:
    """Whether a row holds white space that nobody announced.

    What a database keeps of one without words.
    """
    pieces = new.unit.pieces if new.unit is not None else None
    return pieces is not None and not new.item.text.strip() and all(p.draft is None for p in pieces)


def _is_early(case: Reconciliation, last: New) -> bool:
    """Whether the list ends with a message that no turn explains.

    Its turn is about to be announced.
    """
    if (
        case.running is not None
        or not case.turn.reserve_token
        or last.item is not case.items[-1]
        or case.is_saved(last.item)
    ):
        return False
    pieces = last.unit.pieces if last.unit is not None else None
    return pieces is not None and pieces[-1:] != [] and pieces[-1].draft is None


def _add(case: Reconciliation, new: New, session: str) -> None:
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


def _say(
    case: Reconciliation, item: Item, piece: Piece, name: str, session: str, *, alone: bool
) -> None:
    draft = piece.draft
    if draft is not None and draft.record is not None:
        if name or not draft.record.shown:
            case.plan.binds.append(Bind(draft.record.id, uid=name))
        return
    if item.canon.endswith(
        piece.canon
    ):  # what others said around a joined message came with its last part
        _add_others(case, item, session)
    text = item.text if alone and item.canon == piece.canon else piece.canon
    if (
        draft is not None
        and draft.text is not None
        and not item.parts
        and _same_words(draft, piece, masked=bool(item.uid))
    ):
        text = draft.text  # as told: the list may have it joined, stripped, framed or masked more
    entry = Entry(
        kind=draft.kind if draft is not None else item.kind,
        text=text,
        date=draft.date if draft is not None else "",
        session=session,
        uid=name,
        turn=draft.token if draft is not None else _row_turn(item),
        author=item.author or (draft.author if draft is not None else "") or case.turn.author,
        platform=case.turn.platform,
    )
    case.plan.additions.append(Addition(entry, item.stamp))


def _row_turn(item: Item) -> str:
    """A turn for a report that came in a row nobody announced.

    Without one, no list would show it again.
    """
    if item.kind == "user":
        return ""
    return f"{ROW}{item.uid or blake2b(item.key.encode(), digest_size=8).hexdigest()}"


def _add_others(case: Reconciliation, item: Item, session: str) -> None:
    """Log what others said in the channel as notes.

    No list shows them again as messages of their own.
    """
    for author, text in item.others:
        entry = Entry(
            kind="note", text=text, session=session, author=author, platform=case.turn.platform
        )
        case.plan.additions.append(Addition(entry, item.stamp))


def _same_words(draft: Draft, piece: Piece, *, masked: bool) -> bool:
    return draft.canon in piece.canon or (masked and alike(draft.canon, piece.canon))


def _shared_out(names: tuple[str, ...], pieces: int) -> tuple[str, ...]:
    """One host id for each piece of a joined message, where they are as many.

    Else all for the first, which keeps it.
    """
    return (
        names
        if len(names) == pieces
        else ((names or ("",))[0],) * min(1, pieces) + ("",) * (pieces - 1)
    )
