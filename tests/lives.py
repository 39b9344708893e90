"""Random lives of a host, and the comparison of what the log holds with what was said."""

from __future__ import annotations

import copy
import re
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from hostrows import normal
from hostsim import Agent, Said, Step, Turn, World, picture

from optchat.capture.capture import UNDO_NOTE

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

Entry = tuple[str, str]

ENDS = ("ok", "ok", "ok", "ok", "interrupt", "partial", "error", "empty")
DEATHS = ("die_unsaved", "die", "die_answered")
ODD: tuple[Any, ...] = (None, {}, [], [None], [{}])
"""Contents that nobody said.

An empty text is not among them: a database makes one of a blank message.
"""


_BATCHED = re.compile(r"^--- ✓ TASK \d+/\d+: (.*?)  \(.*\) ---\n(.*)$", re.MULTILINE)


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
        if (
            stem == "steer"
        ):  # the same words hung twice on one result, a reload between, cannot be told from one
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
        # The host announces it without words. Two of them joined unanswered, a blank line inside
        # one is not told from the joint.
        text = picture(words("look").strip().partition("\n\n")[0] or "look")
    steps = []
    while rng.random() < 0.3 and len(steps) < 3:
        tool = rng.choice(("terminal", "optchat_zoom"))
        talk = words("answer") if not words.alike and rng.random() < 0.2 else ""
        reports = rng.choice((1, 2)) if hard and rng.random() < 0.1 else 0
        steps.append(
            Step(
                tool,
                words("steer") if rng.random() < 0.2 else "",
                rng.random() < 0.1,
                talk,
                reports,
            )
        )
    end = rng.choice(ENDS) if faults else "ok"
    if faults and rng.random() < 0.12:
        end = rng.choice(DEATHS)
    if isinstance(text, str) and not text.strip() and end not in ("ok", "empty"):
        # Joined to an unanswered message, a blank one leaves no trace of the place where it stood.
        steps, end = [], "interrupt"
    # Hung on an older turn's result, it does not tell which of several unfinished turns it went
    # into.
    before = words("steer") if end == "ok" and rng.random() < 0.07 else ""
    odd = [copy.deepcopy(rng.choice(ODD))] if hard and end == "ok" and rng.random() < 0.06 else []
    late = rng.random() < 0.1
    # White space in a wrapper of the host's leaves no trace, and nobody sends any there.
    if hard and rng.random() < 0.03 and (not isinstance(text, str) or text.strip()):
        made = "recovery" if end == "ok" and isinstance(text, str) and rng.random() < 0.6 else ""
        return Turn(text, steps, end, words("answer"), late=late, made=made, wrapped=not made)
    return Turn(
        text,
        steps,
        end,
        words("answer"),
        preflight=rng.random() < 0.08,
        late=late,
        before=before,
        odd=odd,
    )


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


Event = tuple[Any, ...]
"""The name of one of the ``Life``'s methods and what it is given."""


@dataclass
class Habits:
    """What can happen in a life.

    ``faults``: interrupts, errors, crashes. ``old``: an agent's own list is handed at its end, and
    sessions are copied and compressed without a word. ``hard``: rows of any shape, retries,
    delegation, two agents at once, a host that speaks for itself.
    """

    faults: bool
    old: bool = False
    hard: bool = False


class Life:
    """One life of a host.

    Events that can be played again, one by one, also with some of them left out.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.agent = world.start()
        self.others: list[Agent] = []
        self.replaced: list[Agent] = []
        self.left: list[str] = []
        self.events: list[Event] = []

    def play(self, event: Event) -> None:
        """One event, if it can happen."""
        if self.agent.dead and event[0] not in ("start", "end"):
            self.start(self.agent.session, joined=False, gateway=False)
        self.events.append(event)
        name, *given = event
        getattr(self, name)(*given)

    def close(self, ends: Sequence[Event] = ()) -> None:
        """Every agent comes to an end, and every session with an open turn is opened once more."""
        for event in ends:
            self.play(event)
        for agent in (*self.others, *self.replaced, self.agent):
            if not agent.dead:
                agent.exit()
        for session in list(self.world.rows):
            self.world.start(session).exit()

    # -- the events

    def start(self, session: str | None, joined: bool, gateway: bool) -> None:
        if session is None or session in self.world.rows:
            self.agent = self.world.start(session, joined=joined, gateway=gateway)

    def again(self, joined: bool, gateway: bool) -> None:
        self.start(self.agent.session, joined, gateway)

    def passes(self, seconds: float) -> None:
        self.world.passes(seconds)

    def turn(self, turn: Turn) -> None:
        self.agent.turn(copy.deepcopy(turn))

    def compress(self) -> None:
        self.agent.flush()
        self.agent.compress()

    def undo(self, count: int, late: bool) -> None:
        self.agent.undo(count, late=late)

    def retry(self, turn: Turn | None) -> None:
        self.agent.retry(copy.deepcopy(turn))

    def new(self) -> None:
        self.left.append(self.agent.session)
        self.agent.new()

    def branch(self) -> None:
        self.left.append(self.agent.branch())

    def resume(self, session: str, joined: bool) -> None:
        if session in self.world.rows and not self.taken(session):
            self.left.append(self.agent.session)
            self.agent.resume(session, joined=joined)

    def taken(self, session: str) -> bool:
        """Whether another window has the session open.

        Of two that go on in one, nothing tells what came first.
        """
        return any(agent.session == session and not agent.dead for agent in self.others)

    def rebuilt(self, joined: bool, gateway: bool) -> None:
        """The host builds the agent anew, and the old one lives on."""
        self.agent.flush()
        self.replaced.append(self.agent)
        self.again(joined, gateway)

    def beside(self) -> None:
        """Another agent, at the same time, in a session of its own."""
        self.others.append(self.agent)
        self.agent = self.world.start()

    def swap(self, at: int) -> None:
        """Another agent that lives goes on."""
        if at < len(self.others) and not self.others[at].dead:
            self.agent, self.others[at] = self.others[at], self.agent

    def end(self, at: int | None, how: str, own: bool) -> None:
        """The end of an agent, of the running one or another.

        Ordered or not, with which list, or not at all.
        """
        agents = [*self.others, *self.replaced, self.agent]
        agent = agents[-1 if at is None or at >= len(agents) else at]
        if agent.dead:
            return
        if how == "gone":
            agent.crash()
        elif how == "ordered":
            agent.exit(own=own)
        else:
            agent.exit_unordered(own=own)
        agent.dead = True

    def delegate(self, count: int, early: bool) -> None:
        number = self.world.number()
        reports = [(f"task {number}.{child}", f"report {number}.{child}") for child in range(count)]
        self.agent.delegate(reports, early=early, words=f"send {number}")

    def twice(self) -> None:
        self.agent.flush()
        self.agent.capture.ended(self.world.shown(self.agent.live))
        self.agent.capture.ended(self.world.shown(self.agent.live))

    def copied(self, uids: bool, joined: bool, gateway: bool) -> None:
        """A branch that no hook tells.

        A window copies what it shows, ids and all; a gateway copies without them.
        """
        session = self.agent.session
        self.left.append(session)
        self.agent.vanish()
        shows = self.world.leave_untold(session)
        copy = self.world.copy(session, uids=uids)
        if not shows:
            self.world.families[copy] = self.world.sessions
        self.start(copy, joined, gateway)

    def compressed(self, rotate: bool, joined: bool, gateway: bool) -> None:
        """A compression that no hook tells."""
        session = self.agent.session
        self.agent.vanish()
        self.start(self.world.compress(session, rotate=rotate), joined, gateway)


class Chance:
    """What happens next."""

    def __init__(self, rng: random.Random, words: Words, habits: Habits) -> None:
        self.rng = rng
        self.words = words
        self.habits = habits

    def events(self, life: Life) -> Iterator[Event]:
        """One thing that happens, and what goes with it."""
        rng, habits = self.rng, self.habits
        if habits.hard:
            yield ("passes", round(rng.expovariate(0.1), 3))
        dice = rng.random()
        if life.agent.dead:
            yield ("again", *self.loaded())
        if dice < 0.66:
            yield ("turn", random_turn(rng, self.words, faults=habits.faults, hard=habits.hard))
        elif dice < 0.70:
            yield ("compress",)
        elif dice < 0.75:
            yield self.taken_back()
        elif dice < 0.84:
            yield self.another_session()
        elif dice < 0.88:
            yield self.end(None)
            yield ("again", *self.loaded())
        elif dice < 0.92:
            yield ("rebuilt", *self.loaded())
        elif dice < 0.94 and (others := len(life.others) + len(life.replaced)):
            yield self.end(rng.randrange(others))
        elif dice < 0.97 and (life.left or life.others):
            yield self.elsewhere(life)
        elif dice < 0.974 and habits.hard:
            yield ("delegate", rng.choice((1, 2)), rng.random() < 0.5)
        elif dice < 0.988 and habits.old:
            without_ids, rotate = rng.random() < 0.6, rng.random() < 0.5
            yield (
                ("copied", not without_ids, *self.loaded())
                if rng.random() < 0.6
                else ("compressed", rotate, *self.loaded())
            )
        else:
            yield ("twice",)

    def ends(self, count: int) -> list[Event]:
        return [self.end(at) for at in range(count)]

    def loaded(self) -> tuple[bool, bool]:
        """Whether a database joins messages as it gives them back, and whether a gateway passes
        them on.
        """
        return self.rng.random() < 0.5, self.habits.old and self.rng.random() < 0.3

    def end(self, at: int | None) -> Event:
        own = self.habits.old and self.rng.random() < 0.6
        if self.habits.faults and self.habits.hard and self.rng.random() < 0.15:
            return ("end", at, "gone", own)
        return ("end", at, "ordered" if self.rng.random() < 0.7 else "unordered", own)

    def taken_back(self) -> Event:
        rng, words = self.rng, self.words
        if self.habits.hard and rng.random() < 0.4:
            same = words.alike or rng.random() < 0.5
            return ("retry", None if same else Turn(words("ask"), answer=words("answer")))
        return (
            "undo",
            rng.choice((1, 1, 2)),
            self.habits.faults and self.habits.hard and rng.random() < 0.2,
        )

    def another_session(self) -> Event:
        dice = self.rng.random()
        if dice < 0.45:
            return ("new",)
        return ("branch",) if dice < 0.85 or not self.habits.hard else ("beside",)

    def elsewhere(self, life: Life) -> Event:
        rng = self.rng
        if life.others and (not life.left or (self.habits.hard and rng.random() < 0.5)):
            return ("swap", rng.randrange(len(life.others)))
        return ("resume", rng.choice(life.left), rng.random() < 0.5)


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
    life = Life(world)
    chance = Chance(rng, Words(rng, alike=alike, short=short), Habits(faults, old, hard))
    for _ in range(events):
        for event in chance.events(life):
            life.play(event)
    life.close(chance.ends(len(life.others) + len(life.replaced) + 1))
    return life


def logged(world: World, family: int) -> list[tuple[str, str]]:
    """What the log holds of a family of sessions, in order."""
    return [entry for _, entry in _placed(world, family)]


def expected(world: World, family: int) -> list[tuple[str, str]]:
    """What was said in a family of sessions and any hook could know of."""
    return [
        normal(said.kind, said.text) for said in world.truth if said.family == family and said.seen
    ]


@dataclass
class Verdict:
    """How the log of one life differs from what was said in it.

    ``astray``: under another session; ``unique``: there was no like of it.
    """

    doubled: list[Entry] = field(default_factory=list)
    lost: list[Entry] = field(default_factory=list)
    moved: list[Entry] = field(default_factory=list)
    astray: list[Entry] = field(default_factory=list)
    unique: list[Entry] = field(default_factory=list)
    raised: str = ""
    shown: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> set[str]:
        return {
            kind for kind in ("doubled", "lost", "moved", "astray", "raised") if getattr(self, kind)
        }

    @property
    def exact(self) -> bool:
        return not self.kinds


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
    firm = [s for s in said if not s.loose and s.after is None]
    doubled, lost = (
        list((Counter(got) - Counter(want)).elements()),
        list((Counter(want) - Counter(got)).elements()),
    )
    astray = (
        []
        if doubled or lost
        else list((Counter(_by_session(world, said)) - Counter(placed)).elements())
    )
    moved = [] if doubled or lost else _moved(world, firm, placed)
    moved += [
        normal(s.kind, s.text)
        for s in said
        if s.after is not None and not s.after.loose and _before(placed, s)
    ]
    verdict.doubled += doubled
    verdict.lost += lost
    verdict.moved += moved
    verdict.astray += [entry for _, entry in astray]
    if doubled or lost or astray or moved:
        verdict.shown.append(
            f"family {family}\n  said   {_by_session(world, said)}\n  logged {placed}"
        )


def _placed(world: World, family: int) -> list[tuple[str, Entry]]:
    """What the log holds of a family, in order, with its sessions.

    Notes on retries may be there and need not.
    """
    sessions = {name for name, number in world.families.items() if number == family}
    found = [
        m
        for m in world.store.log
        if m.session in sessions and (m.kind != "note" or m.text == UNDO_NOTE)
    ]
    return [
        (world.first_name(m.session), normal("steer" if m.tool == "steer" else m.kind, text))
        for m in found
        for text in _reports(m.kind, m.text)
    ]


def _reports(kind: str, text: str) -> list[str]:
    """A text, or the reports in it.

    What several subagents brought back may be logged as the host told it, all in one.
    """
    return (
        [f"{task}\n\n{result}" for task, result in _BATCHED.findall(text)] or [text]
        if kind == "work"
        else [text]
    )


def _by_session(world: World, said: list[Said]) -> list[tuple[str, Entry]]:
    return [(world.first_name(s.session), normal(s.kind, s.text)) for s in said]


def _before(placed: list[tuple[str, Entry]], late: Said) -> bool:
    """Whether something stands before what it came after."""
    first = normal(late.after.kind, late.after.text)
    order = [entry for _, entry in placed]
    own = normal(late.kind, late.text)
    return first in order and own in order and order.index(own) < order.index(first)


def _moved(world: World, firm: list[Said], placed: list[tuple[str, Entry]]) -> list[Entry]:
    """What does not follow in the order it should: in the family, and in each session.

    A note belongs to its session only: where that one is left without a word, nothing brings it
    into the log before what is said in another. So does a message that no list ever shows.
    """
    given_up = {
        (world.first_name(m.session), normal(m.kind, m.text))
        for m in world.store.log
        if m.unshown or m.kind == "note"
    }
    spoken = [entry for name, entry in _by_session(world, firm) if (name, entry) not in given_up]
    found = _out_of_order(spoken, [entry for _, entry in placed])
    # A session left without a word for one with another id gets its notes late, and what no list of
    # it ever shows.
    renamed = set(world.renamed.values())
    firm = [
        s
        for s in firm
        if s.session not in renamed
        or (
            s.kind != "note"
            and (world.first_name(s.session), normal(s.kind, s.text)) not in given_up
        )
    ]
    for session in dict.fromkeys(name for name, _ in placed if not found):
        own = [entry for name, entry in _by_session(world, firm) if name == session]
        found += _out_of_order(own, [entry for name, entry in placed if name == session])
    return found


def _out_of_order(some: list[Entry], everything: list[Entry]) -> list[Entry]:
    """The first that does not follow, or nothing."""
    rest = iter(everything)
    return next(([entry] for entry in some if not any(entry == other for other in rest)), [])


__all__ = [
    "Life",
    "Said",
    "Verdict",
    "differences",
    "expected",
    "judged",
    "live",
    "logged",
    "normal",
]
