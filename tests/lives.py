"""Random lives of a host, and the comparison of what the log holds with what was said."""

from __future__ import annotations

import copy
import re
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from hostsim import Agent, Said, Step, Turn, World, picture

from optchat.capture.capture import UNDO_NOTE
from optchat.core.hosttext import canon

if TYPE_CHECKING:
    import random

Entry = tuple[str, str]

ENDS = ("ok", "ok", "ok", "ok", "interrupt", "partial", "error", "empty")
DEATHS = ("die_unsaved", "die", "die_answered")
ODD: tuple[Any, ...] = (None, {}, [], [None], [{}])
"""Contents that nobody said. An empty text is not among them: a database makes one of a blank message."""


class Words:
    """Texts that are all different, or nearly all alike; ``short``: only the replies are alike."""

    def __init__(self, rng: random.Random, *, alike: bool, short: bool = False) -> None:
        self.rng = rng
        self.alike = alike
        self.short = short
        self.count = 0
        self.blank = False

    def __call__(self, stem: str) -> str:
        self.count += 1
        if stem == "steer":  # the same words hung twice on one result, a reload between, cannot be told from one
            return f"steer {self.count}"
        if self.alike:
            return self.rng.choice(("ok", "ok", "go on")) if stem != "answer" else "done"
        if stem == "answer" and self.short:
            return self.rng.choice(("done", "done", "ok then"))
        shape = self.rng.random()
        if stem == "answer":
            return f"answer {self.count}"
        if shape < 0.1:
            return f"  {stem} {self.count}\n\n and a second  paragraph "
        if shape < 0.15:
            return f"{stem} {self.count} with sk-secret{self.count} in it"
        if shape < 0.2 and not self.blank:  # two blank ones are alike
            self.blank = True
            return "   "
        return f"{stem} {self.count}"


def random_turn(rng: random.Random, words: Words, *, faults: bool, hard: bool = False) -> Turn:
    text: Any = words("ask")
    if not words.alike and rng.random() < 0.12:
        # The host announces it without words. Two of them joined unanswered, a blank line inside one is not told from the joint.
        text = picture(words("look").strip().partition("\n\n")[0] or "look")
    steps = []
    while rng.random() < 0.3 and len(steps) < 3:
        tool = rng.choice(("terminal", "optchat_zoom"))
        talk = words("answer") if not words.alike and rng.random() < 0.2 else ""
        reports = rng.choice((1, 2)) if hard and rng.random() < 0.1 else 0
        steps.append(Step(tool, words("steer") if rng.random() < 0.2 else "", rng.random() < 0.1, talk, reports))
    end = rng.choice(ENDS) if faults else "ok"
    if faults and rng.random() < 0.12:
        end = rng.choice(DEATHS)
    if isinstance(text, str) and not text.strip() and end not in ("ok", "empty"):
        # Joined to an unanswered message, a blank one leaves no trace of the place where it stood.
        steps, end = [], "interrupt"
    # Hung on an older turn's result, it does not tell which of several unfinished turns it went into.
    before = words("steer") if end == "ok" and rng.random() < 0.07 else ""
    odd = [copy.deepcopy(rng.choice(ODD))] if hard and end == "ok" and rng.random() < 0.06 else []
    late = rng.random() < 0.1
    return Turn(text, steps, end, words("answer"), preflight=rng.random() < 0.08, late=late, before=before, odd=odd)


def in_short(what: Turn | Step) -> str:
    """A turn, or a step of one, by what is not usual in it."""
    usual = Turn("") if isinstance(what, Turn) else Step()
    parts = []
    for one in fields(what):
        value = getattr(what, one.name)
        if value == getattr(usual, one.name):
            continue
        if one.name == "steps":
            value = [in_short(step) for step in value]
        elif one.name == "text" and isinstance(value, list):
            value = f"picture({value[0]['text']})"
        parts.append(f"{one.name}={value!r}")
    return f"{type(what).__name__}({', '.join(parts)})"


@dataclass
class Life:
    """What goes on in one life of a host.

    ``faults``: interrupts, errors, crashes. ``old``: an agent's own list is handed at its end, and sessions are copied and
    compressed without a word. ``hard``: rows of any shape, retries, delegation, a host that speaks for itself.
    """

    world: World
    rng: random.Random
    words: Words
    faults: bool
    old: bool = False
    hard: bool = False
    agents: list[Agent] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    agent: Agent = None  # type: ignore[assignment]

    def live(self, events: int) -> None:
        """Some events; every agent comes to an end, and every session with an open turn is opened once more."""
        self.agent = self.world.start()
        for _ in range(events):
            if self.agent.dead:
                self.begin(self.agent.session)
            if self.hard:
                self.world.passes(self.rng.expovariate(0.1))
            self.one()
        for agent in [*self.agents, self.agent]:
            if not agent.dead:
                self.end(agent)
        for session in list(self.world.rows):
            self.note("open and close", session)
            self.world.start(session).exit()

    def note(self, *what: object) -> None:
        self.events.append(" ".join(str(part) for part in what))

    def begin(self, session: str | None) -> None:
        gateway = self.old and self.rng.random() < 0.3
        joined = self.rng.random() < 0.5
        self.agent = self.world.start(session, joined=joined, gateway=gateway)
        self.note("start", self.agent.session, "joined" * joined, "gateway" * gateway)

    def end(self, agent: Agent) -> None:
        """Ordered or not, with which list, or not at all."""
        own = self.old and self.rng.random() < 0.6
        if self.faults and self.hard and self.rng.random() < 0.15:
            self.note("end without a word", agent.session)
            agent.crash()
        elif self.rng.random() < 0.7:
            self.note("exit", agent.session, "own list" * own)
            agent.exit(own=own)
        else:
            self.note("exit unordered", agent.session, "own list" * own)
            agent.exit_unordered(own=own)

    def one(self) -> None:
        """One event."""
        dice = self.rng.random()
        if dice < 0.66:
            turn = random_turn(self.rng, self.words, faults=self.faults, hard=self.hard)
            self.note("turn", in_short(turn))
            self.agent.turn(turn)
        elif dice < 0.70:
            self.note("compress")
            self.agent.flush()
            self.agent.compress()
        elif dice < 0.75:
            self.undo_or_retry()
        elif dice < 0.84:
            self.to_another_session()
        elif dice < 0.88:
            self.end(self.agent)
            self.begin(self.agent.session)
        elif dice < 0.92:
            self.note("rebuilt")
            self.agent.flush()
            self.agents.append(self.agent)
            self.begin(self.agent.session)
        elif dice < 0.94 and self.agents:
            gone = self.agents.pop(self.rng.randrange(len(self.agents)))
            self.note("an older one ends:")
            self.end(gone)
        elif dice < 0.97 and self.left:
            self.resume()
        elif dice < 0.985 and self.old:
            self.without_a_word()
        else:
            self.note("list shown twice")
            self.agent.flush()
            self.agent.capture.ended(self.world.shown(self.agent.live))
            self.agent.capture.ended(self.world.shown(self.agent.live))

    def undo_or_retry(self) -> None:
        if self.hard and self.rng.random() < 0.4:
            turn = None if self.words.alike or self.rng.random() < 0.5 else Turn(self.words("ask"), answer=self.words("answer"))
            self.note("retry", in_short(turn) if turn else "in the same words")
            self.agent.retry(turn)
            return
        count = self.rng.choice((1, 1, 2))
        late = self.faults and self.hard and self.rng.random() < 0.2
        self.note("undo", count, "before the hook" * late)
        self.agent.undo(count, late=late)

    def to_another_session(self) -> None:
        dice = self.rng.random()
        if dice < 0.45:
            self.left.append(self.agent.session)
            self.agent.new()
            self.note("new", self.agent.session)
        elif dice < 0.85 or not self.hard:
            self.left.append(self.agent.branch())
            self.note("branch", self.agent.session)
        else:  # another agent, at the same time, in a session of its own
            self.agents.append(self.agent)
            self.begin(None)

    def resume(self) -> None:
        others = [agent for agent in self.agents if not agent.dead and agent.session != self.agent.session]
        if self.hard and others and self.rng.random() < 0.5:
            self.agents.remove(others[0])
            self.agents.append(self.agent)
            self.agent = others[0]
            self.note("the other agent goes on", self.agent.session)
            return
        target = self.rng.choice(self.left)
        self.left.append(self.agent.session)
        self.agent.resume(target, joined=self.rng.random() < 0.5)
        self.note("resume", target)

    def without_a_word(self) -> None:
        """A branch or a compression that no hook tells: the agent is thrown away, and a new one is shown what has become of it."""
        dice = self.rng.random()
        session = self.agent.session
        self.agent.vanish()
        if dice < 0.6:
            self.left.append(session)
            uids = dice < 0.2  # the window copies what it shows, ids and all; a gateway copies without them
            child = self.world.copy(session, uids=uids)
            self.note("copied", session, "to", child, "with ids" * uids)
        else:
            child = self.world.compress(session, rotate=dice < 0.8)
            self.note("compressed", session, "into", child)
        self.begin(child)


def live(
    world: World,
    rng: random.Random,
    *,
    faults: bool,
    alike: bool,
    events: int,
    short: bool = False,
    old: bool = False,
    hard: bool = False,
) -> Life:
    """Drive one host through some events."""
    life = Life(world, rng, Words(rng, alike=alike, short=short), faults, old, hard)
    life.live(events)
    return life


def normal(kind: str, text: str) -> tuple[str, str]:
    """A form in which masks and outer space do not count."""
    if kind in ("user", "steer"):
        text = canon(text)
    text = re.sub(r'sk-\w+(\.\.\.\w+)?"?\}?|\*\*\*|\[redacted\]', "§", text)
    return kind, text.strip()


def logged(world: World, family: int) -> list[tuple[str, str]]:
    """What the log holds of a family of sessions, in order."""
    return [entry for _, entry in _placed(world, family)]


def expected(world: World, family: int) -> list[tuple[str, str]]:
    """What was said in a family of sessions and any hook could know of."""
    return [normal(said.kind, said.text) for said in world.truth if said.family == family and said.seen]


@dataclass
class Verdict:
    """How the log of one life differs from what was said in it. ``astray``: under another session; ``unique``: there was no like of it."""

    doubled: list[Entry] = field(default_factory=list)
    lost: list[Entry] = field(default_factory=list)
    moved: list[Entry] = field(default_factory=list)
    astray: list[Entry] = field(default_factory=list)
    unique: list[Entry] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        return not (self.doubled or self.lost or self.moved or self.astray)


def judged(world: World) -> Verdict:
    """A life, judged by each family of sessions and by each session."""
    verdict = Verdict()
    for family in sorted(set(world.families.values())):
        _judge(world, family, verdict)
    once = Counter(normal(said.kind, said.text) for said in world.truth)
    wrong = {*verdict.doubled, *verdict.moved, *verdict.astray}
    verdict.unique = [entry for entry in wrong if once[entry] == 1]
    return verdict


def differences(world: World) -> list[str]:
    """One line for each family whose log is not what was said."""
    return judged(world).shown


def _judge(world: World, family: int, verdict: Verdict) -> None:
    placed = _placed(world, family)
    got, want = [entry for _, entry in placed], expected(world, family)
    said = [s for s in world.truth if s.family == family and s.seen]
    firm = _by_session(world, [s for s in said if not s.loose and s.after is None])
    doubled, lost = list((Counter(got) - Counter(want)).elements()), list((Counter(want) - Counter(got)).elements())
    astray = [] if doubled or lost else list((Counter(_by_session(world, said)) - Counter(placed)).elements())
    moved = [] if doubled or lost else _out_of_order([entry for _, entry in firm], got)
    moved += [] if doubled or lost or astray or moved else _out_of_order(firm, placed)
    for late in said if not moved else ():
        if late.after is not None and _before(placed, late):
            moved.append(normal(late.kind, late.text))
    verdict.doubled += doubled
    verdict.lost += lost
    verdict.moved += [entry[1] if isinstance(entry[1], tuple) else entry for entry in moved]
    verdict.astray += [entry for _, entry in astray]
    if doubled or lost or astray or moved:
        verdict.shown.append(f"family {family}\n  said   {_by_session(world, said)}\n  logged {placed}")


def _placed(world: World, family: int) -> list[tuple[str, Entry]]:
    """What the log holds of a family, in order, with its sessions; notes on retries may be there and need not."""
    sessions = {name for name, number in world.families.items() if number == family}
    found = [m for m in world.store.log if m.session in sessions and (m.kind != "note" or m.text == UNDO_NOTE)]
    return [(world.first_name(m.session), normal("steer" if m.tool == "steer" else m.kind, m.text)) for m in found]


def _by_session(world: World, said: list[Said]) -> list[tuple[str, Entry]]:
    return [(world.first_name(s.session), normal(s.kind, s.text)) for s in said]


def _before(placed: list[tuple[str, Entry]], late: Said) -> bool:
    """Whether something stands before what it came after."""
    first = normal(late.after.kind, late.after.text)
    order = [entry for _, entry in placed]
    own = normal(late.kind, late.text)
    return first in order and own in order and order.index(own) < order.index(first)


def _out_of_order(some: list[Any], everything: list[Any]) -> list[Any]:
    """What does not follow in the order it should: the first such, or nothing."""
    rest = iter(everything)
    return next(([entry] for entry in some if not any(entry == other for other in rest)), [])


__all__ = ["Said", "Verdict", "differences", "expected", "judged", "live", "logged", "normal"]
