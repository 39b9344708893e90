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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..base.canon import canon, has_mask, without_end
from .host_text import alike
from .reconcile import Plan, Turn, reconcile
from .session_records import Fork, SessionRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..base.record import Message
    from .host_messages import Item
    from .open_turns import Draft
    from .store import CaptureStore, News

TRIED_MOST: Final = 8
"""Sessions compared with one list: each may have to be read whole."""
_ASKED_FOR: Final = 32
"""Messages at either end of a list whose words are looked up to find out where it comes from."""
_PARTS_ASKED_FOR: Final = 8
"""Paragraphs of a message that may be messages joined."""
_SAID: Final = ("user", "work", "note")
"""Kinds that a row in the user's role may be logged as."""
MATCHED_LEAST: Final = 2
"""Entries a copy has in common with its origin: one alone may be said again by chance."""


@dataclass(slots=True)
class Origin:
    """The session a list comes from.

    ``plan``: what the list adds to that session, where all of the list belongs there; None where
    the shown session, or the one it was copied from, began as a ``copy`` of it. ``mark``: how much
    of the session was read.
    """

    session: str
    mark: object
    plan: Plan | None = None
    copy: Fork | None = None


def candidates(
    store: CaptureStore,
    plan: Plan,
    session: str,
    *,
    left: Sequence[str],
    parent_of: Callable[[str], str],
) -> list[str]:
    """Sessions that may hold what nobody has announced, the likeliest first.

    Those the agent has ``left``, those the host says the session came from, and those that hold the
    same ids or words.
    """
    uids = [addition.entry.uid for addition in plan.additions if addition.entry.uid]
    early = [plan.early.text] if plan.early is not None else []
    texts = [form for text in (*(e.text for e in plan.strangers), *early) for form in _forms(text)]
    found = store.sessions_with(uids, [*texts[:_ASKED_FOR], *texts[-_ASKED_FOR:]])
    return list(dict.fromkeys([*reversed(left), *_parents(session, parent_of), *found]))


def _parents(session: str, parent_of: Callable[[str], str]) -> Iterator[str]:
    """The sessions the host says one came from, the nearest first."""
    seen = {session}
    while (session := parent_of(session)) and session not in seen:
        seen.add(session)
        yield session


def _forms(text: str) -> list[str]:
    """A message, and what a host may have joined it of."""
    parts = canon(text).split("\n\n")
    return [text, *parts[:_PARTS_ASKED_FOR]] if len(parts) > 1 else [text]


def find_origin(
    store: CaptureStore,
    items: Sequence[Item],
    plan: Plan,
    turn: Turn,
    drafts: Sequence[Draft],
    *,
    names: Iterable[str],
    whole: bool = False,
) -> Origin | None:
    """Origin of ``items``, of which ``plan`` would log words that no turn explains; None: its own.

    ``names``: sessions to compare with, the likeliest first. ``whole``: only one that explains
    all of the list is looked for, as its words are no reason to.
    """
    here = store.news(turn.session, None)
    first = _first_of(turn.session, here)
    best: Origin | None = None
    own: Origin | None = None
    left = _unannounced(plan) + 1
    # Strangers it leaves, less is better; what it explains.
    best_fit = (-len(items) - 1, MATCHED_LEAST - 1)
    names = list(dict.fromkeys(name for name in names if name != turn.session))
    is_here = (
        turn.is_own_list
        or turn.hosts_own
        or (turn.likely and _ends_with_running(items, turn, drafts))
    )
    tried = 0
    while tried < min(len(names), TRIED_MOST):
        name, tried = names[tried], tried + 1
        there = store.news(name, None)
        if not (there.messages or there.drafts):
            names.remove(name)  # one that nothing was said in uses up no try
            tried -= 1
            continue
        # What went on from there is as likely: a compression may have taken the words along.
        further = [fork.child for fork in there.forks if fork.child != turn.session]
        names += [child for child in further if child not in names]
        found = None if is_here else _as_its_own(items, name, there, turn)
        if (
            found is not None
            and whole
            and not all(addition.entry.turn for addition in found.additions)
        ):
            found = None
        if found is not None and (_unannounced(found) < left or (whole and own is None)):
            own, left = Origin(name, there.mark, found), _unannounced(found)
            if not left:
                return own
        if own is not None or whole or _first_of(name, there) == first:
            # the list is another's altogether, or the shown session is where that one began
            continue
        fork = Fork(first, name, -1, frozenset(d.token for d in there.drafts if d.session == name))
        if not _begins_there(items, [*here.messages, *there.messages], [*drafts, *there.drafts]):
            continue
        copied, is_own_list = _as_copy(items, turn, drafts, fork=fork, read=(here, there))
        common = len(plan.additions) - len(copied.additions) + MATCHED_LEAST * is_own_list
        is_own_list = is_own_list or not copied.strangers
        if copied.reached < 0 and not is_own_list:
            continue
        least = 0 if is_own_list and best is None else MATCHED_LEAST - 1
        fit = (-len(copied.strangers), common)
        if _adds_less(copied, plan) and common > least and fit > best_fit:
            reached = _reached(copied, items, there)
            best, best_fit = Origin(name, there.mark, copy=_up_to(reached, fork, there)), fit
    return own or best


def _unannounced(plan: Plan) -> int:
    """How much of a plan is no message that was announced: a host may have joined those."""
    return sum(not addition.entry.turn for addition in plan.additions)


def _ends_with_running(items: Sequence[Item], turn: Turn, drafts: Sequence[Draft]) -> bool:
    """Whether the user's last words in a list are those of the turn that runs.

    Then it is of the shown session.
    """
    own = next((draft for draft in drafts if draft.token == turn.running), None)
    last = next((item for item in reversed(items) if item.said and not item.steer), None)
    if own is None or last is None or own.text is None:
        return False
    return without_end(last.canon, own.canon) is not None  # joined to one that broke off, maybe


def _as_its_own(items: Sequence[Item], name: str, there: News, turn: Turn) -> Plan | None:
    """The plan for a list that is another session's altogether."""
    known = _known([there])
    drafts = [draft for draft in there.drafts if known.reaches(name, draft.session, draft.token)]
    _disown(drafts)
    asked = Turn(name, platform=turn.platform, author=turn.author, elsewhere=True)
    plan = _tried(items, known, drafts, asked)
    turns = {draft.token for draft in drafts}
    begun = any(addition.entry.turn in turns for addition in plan.additions)
    explained = plan.reached >= 0 or begun or bool(plan.binds)
    if not explained or plan.strangers:
        return None
    if any(bind.uid for bind in plan.binds):
        # Its ids are those of a copy: the session's own list has others for what is logged by this.
        for addition in plan.additions:
            addition.entry = replace(addition.entry, uid="")
    return plan


def _as_copy(
    items: Sequence[Item],
    turn: Turn,
    drafts: Sequence[Draft],
    *,
    fork: Fork,
    read: tuple[News, News],
) -> tuple[Plan, bool]:
    """The plan for a list that goes on where another session's messages end.

    And whether that is sure: it holds words that were announced there and not here, or a host's id.
    """
    open_there = [draft for draft in read[1].drafts if draft.token in fork.turns]
    _disown(open_there)
    known = _known(read, fork)
    tokens = {draft.token for draft in drafts}
    both = [*(draft for draft in open_there if draft.token not in tokens), *drafts]
    found = _tried(items, known, both, turn)
    begun = any(addition.entry.turn in fork.turns for addition in found.additions)
    named = any(item.uid in known.by_uid for item in items if item.uid)
    return found, begun or named


def _begins_there(
    items: Sequence[Item], messages: Iterable[Message], drafts: Iterable[Draft]
) -> bool:
    """Whether what the user said before the last known words of a list is known as well.

    A copy begins with its origin's messages. Where two sessions have but some common words ("ok"),
    all that stands before them would be taken for known.
    """
    known = {canon(message.text) for message in messages if message.kind in _SAID}
    known.update(draft.canon for draft in drafts if draft.said)
    parts = {part for form in known for part in form.split("\n\n")}
    masked = [form for form in known if has_mask(form)]
    said = [item.canon for item in items if item.said and not item.steer and item.canon]
    strange = [
        at
        for at, form in enumerate(said)
        if not any(part in parts for part in form.split("\n\n"))
        and not any(alike(form, other) for other in (known if has_mask(form) else masked))
    ]
    return strange == [*range(len(said) - len(strange), len(said))]


def _adds_less(found: Plan, plan: Plan) -> bool:
    if plan.strangers:
        return len(found.strangers) < len(plan.strangers)
    return len(found.additions) < len(plan.additions)


def _reached(copied: Plan, items: Sequence[Item], there: News) -> int:
    """The last message of a session that a copy of it has."""
    reached = max([copied.reached, *(bind.id for bind in copied.binds)])
    if reached < 0 and any(item.kind == "gap" for item in items):
        # All that was logged there is in the summary, and the rest was begun since.
        reached = max((message.id for message in there.messages), default=-1)
    return reached


def _up_to(reached: int, fork: Fork, there: News) -> Fork:
    """A copy of what a session held up to a message, with the turn that one belongs to."""
    last = _known([there]).last_turn(fork.parent, before=reached + 1)
    return Fork(fork.child, fork.parent, reached + 1, fork.turns | {last})


def _first_of(session: str, read: News) -> str:
    """The session at the beginning of a line of copies.

    What none of them explains it may have been copied with.
    """
    parents = {fork.child: fork.parent for fork in read.forks}
    seen = {session}
    while (parent := parents.get(session)) and parent not in seen:
        seen.add(parent)
        session = parent
    return session


def _tried(
    items: Sequence[Item], known: SessionRecords, drafts: Sequence[Draft], turn: Turn
) -> Plan:
    """The plan there would be; the items go on as they were, which no trial may call logged."""
    held = [item.held for item in items]
    plan = reconcile(items, known, drafts, turn)
    for item, was in zip(items, held, strict=True):
        item.held = was
    return plan


def _known(read: Iterable[News], fork: Fork | None = None) -> SessionRecords:
    """What the log holds of several families, as if they were one."""
    known = SessionRecords()
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
    """Leave the turns of another session to it: this list only shows what became of them.

    The note of an undo is awaited by no list, and stands before what follows it.
    """
    for draft in drafts:
        draft.other_owner, draft.mine = draft.said or draft.aside, False
