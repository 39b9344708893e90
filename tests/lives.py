"""Random lives of a host, and the comparison of what the log holds with what was said."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from hostsim import Agent, Said, Step, Turn, World, picture

from optchat.core.hosttext import canon

if TYPE_CHECKING:
    import random

Event = tuple[Any, ...]

ENDS = ("ok", "ok", "ok", "ok", "interrupt", "partial", "error", "empty")
DEATHS = ("die_unsaved", "die", "die_answered")


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


def random_turn(rng: random.Random, words: Words, *, faults: bool) -> Turn:
    text: Any = words("ask")
    if not words.alike and rng.random() < 0.12:
        # The host announces it without words. Two of them joined unanswered, a blank line inside one is not told from the joint.
        text = picture(words("look").strip().partition("\n\n")[0] or "look")
    steps = []
    while rng.random() < 0.3 and len(steps) < 3:
        tool = rng.choice(("terminal", "optchat_zoom"))
        talk = words("answer") if not words.alike and rng.random() < 0.2 else ""
        steps.append(Step(tool, words("steer") if rng.random() < 0.2 else "", rng.random() < 0.1, talk))
    end = rng.choice(ENDS) if faults else "ok"
    if faults and rng.random() < 0.12:
        end = rng.choice(DEATHS)
    if isinstance(text, str) and not text.strip() and end not in ("ok", "empty"):
        # Joined to an unanswered message, a blank one leaves no trace of the place where it stood.
        steps, end = [], "interrupt"
    # Hung on an older turn's result, it does not tell which of several unfinished turns it went into.
    before = words("steer") if end == "ok" and rng.random() < 0.07 else ""
    return Turn(text, steps, end, words("answer"), preflight=rng.random() < 0.08, late=rng.random() < 0.1, before=before)


def live(world: World, rng: random.Random, *, faults: bool, alike: bool, events: int, short: bool = False) -> None:
    """Drive one host through some events; every agent comes to an end, and every session with an open turn is opened once more."""
    words = Words(rng, alike=alike, short=short)
    agent, others, old = world.start(), [], []
    for _ in range(events):
        if agent.dead:
            agent = world.start(agent.session, joined=rng.random() < 0.5)
        agent = one(world, agent, rng, words, others, old, faults=faults)
    for left in [*old, agent]:
        if not left.dead:
            left.exit() if rng.random() < 0.7 else left.exit_unordered()
    for session in world.rows:
        world.start(session).exit()


def one(world: World, agent: Agent, rng: random.Random, words: Words, others: list[str], old: list[Agent], *, faults: bool) -> Agent:
    """One event in the life of a host."""
    dice = rng.random()
    joined = rng.random() < 0.5
    if dice < 0.70:
        agent.turn(random_turn(rng, words, faults=faults))
    elif dice < 0.74:
        agent.flush()
        agent.compress()
    elif dice < 0.78:
        agent.undo(rng.choice((1, 1, 2)))
    elif dice < 0.81:
        others.append(agent.session)
        agent.new()
    elif dice < 0.84:
        others.append(agent.branch())
    elif dice < 0.88:
        agent.exit() if rng.random() < 0.7 else agent.exit_unordered()
        agent = world.start(agent.session, joined=joined)
    elif dice < 0.92:
        agent.flush()
        old.append(agent)
        agent = world.start(agent.session, joined=joined)
    elif dice < 0.94 and old:
        old.pop(rng.randrange(len(old))).exit()
    elif dice < 0.97 and others:
        target = rng.choice(others)
        others.append(agent.session)
        agent.resume(target, joined=joined)
    else:
        agent.flush()
        agent.capture.ended(world.shown(agent.live))
        agent.capture.ended(world.shown(agent.live))
    return agent


def normal(kind: str, text: str) -> tuple[str, str]:
    """A form in which masks and outer space do not count."""
    if kind in ("user", "steer"):
        text = canon(text)
    text = re.sub(r'sk-\w+(\.\.\.\w+)?"?\}?|\*\*\*|\[redacted\]', "§", text)
    return kind, text.strip()


def logged(world: World, family: int) -> list[tuple[str, str]]:
    """What the log holds of a family of sessions, in order."""
    sessions = {name for name, number in world.families.items() if number == family}
    return [normal("steer" if m.tool == "steer" else m.kind, m.text) for m in world.store.log if m.session in sessions]


def expected(world: World, family: int) -> list[tuple[str, str]]:
    """What was said in a family of sessions and any hook could know of."""
    return [normal(said.kind, said.text) for said in world.truth if said.family == family and said.seen]


def differences(world: World) -> list[str]:
    """One line for each family whose log is not what was said."""
    found = []
    for family in sorted(set(world.families.values())):
        got, want = logged(world, family), expected(world, family)
        firm = [normal(s.kind, s.text) for s in world.truth if s.family == family and s.seen and not s.loose]
        if Counter(got) != Counter(want) or not _in_order(firm, got):
            found.append(f"family {family}\n  said   {want}\n  logged {got}")
    return found


def _in_order(some: list[tuple[str, str]], everything: list[tuple[str, str]]) -> bool:
    rest = iter(everything)
    return all(entry in rest for entry in some)


__all__ = ["Said", "differences", "expected", "live", "logged", "normal"]
