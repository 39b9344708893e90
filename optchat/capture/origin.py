"""Search for the session whose messages a list repeats, where its own session does not explain it.

Hosts hand lists over under another session's name: the old list at exit after ``/new`` (host A
0.19, cli.py ``_run_cleanup``), the copied history of a branch that no hook announced (gateway
``_handle_branch_command``, and ``--continue`` with ``/branch`` as the first act), the rest of a
compression that took a new session. What the log holds is not logged again for that: either the
whole list is the other session's, or this session is its copy up to some message. Called by
``capture.py`` when a list shows words of the user's that nobody announced and no session of the
family holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..core.known import Fork, Known
from ..core.transcript import Plan, Turn, reconcile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.drafts import Draft
    from ..core.hostlist import Item
    from .store import CaptureStore, News

TRIED_MOST: Final = 8
"""Sessions compared with one list: each may have to be read whole."""
MATCHED_LEAST: Final = 2
"""Entries a copy has in common with its origin: one alone may be said again by chance."""


@dataclass(slots=True)
class Origin:
    """The session a list comes from.

    ``plan``: what the list adds to that session, where all of the list belongs there; None where
    this session is a copy of it up to message ``at`` (exclusive), with its open ``turns``.
    ``mark``: how much of that session was read.
    """

    session: str
    mark: object
    plan: Plan | None = None
    at: int = 0
    turns: tuple[str, ...] = ()


def find_origin(
    store: CaptureStore,
    items: Sequence[Item],
    plan: Plan,
    turn: Turn,
    drafts: Sequence[Draft],
    *,
    candidates: Iterable[str],
) -> Origin | None:
    """Origin of ``items``, of which ``plan`` would log words that no turn explains; None: its own.

    ``candidates``: sessions to compare with, the likeliest first.
    """
    here = store.news(turn.session, None)
    tried = 0
    for name in candidates:
        if name == turn.session or tried == TRIED_MOST:
            continue
        tried += 1
        there = store.news(name, None)
        if not turn.sure and (found := _as_its_own(items, name, there, turn)) is not None:
            return Origin(name, there.mark, found)
        if any(fork.child == turn.session for fork in here.forks):
            continue  # a copy already, and of one session only
        copy = _as_copy(items, plan, turn, drafts, name=name, read=(here, there))
        if copy is not None:
            return copy
    return None


def _as_its_own(items: Sequence[Item], name: str, there: News, turn: Turn) -> Plan | None:
    """The plan for a list that is another session's altogether."""
    known = _known([there])
    drafts = [draft for draft in there.drafts if known.reaches(name, draft.session, draft.token)]
    _disown(drafts)
    asked = Turn(name, platform=turn.platform, author=turn.author)
    plan = reconcile(items, known, drafts, asked)
    return plan if not plan.strangers and plan.reached >= 0 else None


def _as_copy(
    items: Sequence[Item],
    plan: Plan,
    turn: Turn,
    drafts: Sequence[Draft],
    *,
    name: str,
    read: tuple[News, News],
) -> Origin | None:
    """The origin of a list that goes on where another session's messages end."""
    open_there = [draft for draft in read[1].drafts if draft.session == name]
    _disown(open_there)
    turns = frozenset(draft.token for draft in open_there)
    known = _known(read, Fork(turn.session, name, -1, turns))
    tokens = {draft.token for draft in drafts}
    both = [*(draft for draft in open_there if draft.token not in tokens), *drafts]
    found = reconcile(items, known, both, turn)
    matched = len(items) - len(found.additions)
    if len(found.strangers) >= len(plan.strangers) or found.reached < 0 or matched < MATCHED_LEAST:
        return None
    last = known.last_turn(name, before=found.reached + 1)
    return Origin(name, read[1].mark, None, found.reached + 1, (*turns, last))


def _known(read: Iterable[News], fork: Fork | None = None) -> Known:
    """What the log holds of several families, as if they were one."""
    known = Known()
    messages = {message.id: message for news in read for message in news.messages}
    for news in read:
        for other in news.forks:
            known.fork(other)
    if fork is not None:
        known.fork(fork)
    known.add(messages[id_] for id_ in sorted(messages))
    for news in read:
        for bind in news.binds:
            known.bind(bind.id, bind.uid, bind.turn)
    return known


def _disown(drafts: Iterable[Draft]) -> None:
    """Leave the turns of another session to it: this list only shows what became of them."""
    for draft in drafts:
        draft.foreign, draft.mine = True, False
