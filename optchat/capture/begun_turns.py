"""The turns an agent has begun, and which of them a list may belong to.

The host tells a turn's beginning and, much later, hands over a list with no name of a turn in it.
Words decide first, then the place a turn was told to begin at, and the host's clock. Where that
leaves several, ``capture.py`` tries which of them explains the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.canon import canon
from .host_messages import read_message
from .host_text import alike, likeness, user_text
from .open_turns import NEAR_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .host_messages import Item
    from .list_reader import Reader
    from .session_records import SessionRecords


@dataclass(slots=True)
class Begun:
    """A turn this instance was told of, at ``time`` in seconds.

    ``token``: empty for a turn of the host's own, of which nobody said a word. ``shown``: its own
    list is here; ``over``: and is logged; ``undone``: the user has taken turns back since.
    ``length``: messages of the list it began with, its own included; 0 where that was not shown, or
    is no more so. ``message``: its own, as the host holds it. ``cut``: a later turn began without
    it.
    """

    token: str
    canon: str
    textless: bool
    time: float
    shown: bool = False
    over: bool = False
    undone: bool = False
    length: int = 0
    message: object = None
    cut: bool = False


@dataclass(slots=True)
class Early:
    """A message a list has shown before its turn was announced."""

    token: str
    canon: str
    parts: bool

    def is_it(self, form: str) -> bool:
        """Whether a turn announced with this text is its turn."""
        return form == self.canon or (self.parts and not form) or alike(form, self.canon)


def placed(turns: Sequence[Begun], reader: Reader) -> list[tuple[Item, Begun]]:
    """The turns whose own messages stand in the list that was read last where they stood at first.

    Where the host shows its own objects, those must be: it joins messages, and another one may
    then stand there.
    """
    own = [turn for turn in turns if turn.token and turn.length]
    same = [turn for turn in own if reader.is_at(turn.message, turn.length - 1)]
    found = ((reader.said_at(turn.length - 1), turn) for turn in same or own)
    return [(item, turn) for item, turn in found if item is not None]


def is_its(message: object, turn: Begun) -> bool:
    """Whether a message of the host's is the one a turn was announced with."""
    own = next((item for item in read_message(message) if item.said), None)
    return own is not None and (turn.textless or alike(own.canon, turn.canon))


def hosts_own(waiting: Sequence[Begun], user_content: str | None) -> Begun | None:
    """The host's own turn that a list may be of.

    One that was opened without a word of the user's.
    """
    what = user_text(user_content) if user_content is not None else None
    # White space may open a turn of the user's.
    blank = any(turn.token and not (turn.canon or turn.textless) for turn in waiting)
    if user_content is None or (what and (what.text.strip() or (blank and user_content))):
        return None
    newest = next((turn for turn in reversed(waiting) if not turn.cut), None)
    return newest if newest is not None and not newest.token else None


def turns_of(
    items: Sequence[Item],
    user_content: str | None,
    waiting: list[Begun],
    reader: Reader,
    known: Callable[[], SessionRecords],
) -> list[Begun]:
    """Which of the turns that wait for a list this one may be of.

    One where that is sure, none where none fits.

    ``user_content``: what opened the turn, where the host says so. ``known``: reads what the log
    holds.
    """
    own = next((item for item in reversed(items) if item.said and not item.steer), None)
    last = own.canon if own is not None else ""
    if (
        own is not None and own.parts
    ):  # where a picture is announced without words, no other turn can be its
        waiting = [turn for turn in waiting if turn.textless] or waiting
    what = user_text(user_content) if user_content is not None else None
    form = canon(what.text) if what is not None else None
    fitting = [
        turn
        for turn in waiting
        if (turn.canon == form if form is not None else _ends(last, turn.canon))
    ]
    if form is not None and fitting and all(turn.cut for turn in fitting):
        fitting += [t for t in waiting if not t.cut and alike(t.canon, form)]  # masked anew
    fitting = (
        fitting
        or _wordless(waiting, form if form is not None else last, known)
        or _by_place(items, waiting, form, known)
    )
    fitting = [turn for turn in fitting if not turn.undone] or fitting
    fitting = [turn for turn in fitting if not turn.cut] or fitting
    if len(fitting) > 1 and own is not None and all(turn.length for turn in fitting):
        here = [turn for item, turn in placed(fitting, reader) if item is own]
        # Joined to an older message, it stands in that one's place.
        elsewhere = [turn for turn in fitting if turn not in here] or fitting
        fitting = here[-1:] if here and own.canon == here[-1].canon else elsewhere
    if len(fitting) < 2 or own is None or not own.stamp:
        return fitting
    if all(own.canon == turn.canon for turn in fitting):  # a joined one is as old as its first part
        nearest = min(fitting, key=lambda turn: abs(turn.time - own.stamp))
        if abs(nearest.time - own.stamp) < NEAR_S:
            return [nearest]
    return fitting


def _wordless(waiting: list[Begun], form: str, known: Callable[[], SessionRecords]) -> list[Begun]:
    """Turns that were announced without words and may have these, as far as the log has not told
    theirs.
    """
    by_turn = known().by_turn
    logged = {turn.token: by_turn.get(turn.token) for turn in waiting if turn.textless}
    return [
        turn
        for turn in waiting
        if turn.textless and ((record := logged[turn.token]) is None or record.canon == form)
    ]


def _by_place(
    items: Sequence[Item],
    waiting: list[Begun],
    form: str | None,
    read: Callable[[], SessionRecords],
) -> list[Begun]:
    """The turn of a list whose text is masked in another way than when it was announced."""
    known = read()
    said = [item for item in items if item.said and not item.steer]
    if not said or not said[-1].uid:
        return waiting[-1:]
    waiting = [turn for turn in waiting if not turn.undone] or waiting
    words = form or said[-1].canon
    likest = max(waiting, key=lambda turn: likeness(turn.canon, words), default=None)
    if likest is not None and likeness(likest.canon, words):
        return [likest]
    turns = {record.turn for record in known.by_uid.get(said[-1].uid, ())}
    if turns:
        return [turn for turn in waiting if turn.token in turns]
    unlogged = [turn for turn in waiting if turn.token not in known.settled]
    new = sum(1 for item in said if item.uid not in known.by_uid)
    return unlogged[max(0, new - 1) :][:1] or waiting[-1:]


def _ends(whole: str, end: str) -> bool:
    return whole == end or bool(end and whole.endswith("\n\n" + end))
