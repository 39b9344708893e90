#!/usr/bin/env python3
"""Random lives of both simulated hosts: in how many of them the log is exactly what was said.

Gates nothing.

Sixteen cells: the host without ids and the one with them, texts that are all different or all
alike, nothing that breaks or interrupts, errors and crashes, and with or without old lists at the
end and copies no hook tells of. ``unique`` counts the lives in which something that was said only
once is doubled, moved or in another session.

.venv/bin/python scripts/bench_lives.py [--lives 400] [--cell A-alike-faults-old] [--seed 7]
[--events 12] [--jobs 2] [--json] ``--cell`` with ``--seed`` plays one life again and shows its
events, and what differs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE), str(HERE / "tests")]

from capturestore import MemoryStore  # noqa: E402
from hostsim import Turn, World  # noqa: E402
from lives import Chance, Event, Habits, Life, Verdict, Words, in_short, judged  # noqa: E402

CELLS = [
    "-".join(parts)
    for parts in itertools.product("AB", ("unique", "alike"), ("calm", "faults"), ("plain", "old"))
]
KINDS = ("doubled", "lost", "moved", "astray", "unique", "raised")
UNUSUAL = {
    "end": "ok",
    "preflight": False,
    "late": False,
    "before": "",
    "odd": [],
    "made": "",
    "wrapped": False,
}
STEP = {"tool": "terminal", "steer": "", "compress": False, "talk": "", "reports": 0}


def habits(cell: str) -> dict:
    """What the parts of a cell's name mean for its lives."""
    _, texts, breaks, lists = cell.split("-")
    return {
        "alike": texts == "alike",
        "faults": breaks == "faults",
        "old": lists == "old",
        "hard": True,
    }


def world(cell: str, rng: random.Random, *, listed: bool = True) -> World:
    """A world of its own for one life.

    Its disk is quick or slow, and its database may say what came from what.
    """
    most = 2 if rng.random() < 0.5 else 0.02
    keep, rotate, witness = rng.choice((2, 4, 6)), rng.random() < 0.3, rng.random() < 0.5
    lags = random.Random(rng.random())
    return World(
        cell[0],
        MemoryStore(),
        keep=keep,
        rotate=rotate,
        witness=witness,
        listed=listed,
        lag=lambda: lags.uniform(0, most),
    )


def play(
    cell: str, seed: int, events: int, without: Sequence[str] = ()
) -> tuple[list[Event], Verdict]:
    """One life, and what came of it.

    A hook that raises is a failure of its own, and the other lives go on.
    """
    rng = random.Random(zlib.crc32(cell.encode()) + seed)
    life = Life(world(cell, rng, listed="listed" not in without))
    chance = Chance(
        rng,
        cell_words(cell, rng),
        Habits(**{k: v for k, v in habits(cell).items() if k != "alike"}),
    )
    try:
        for _ in range(events):
            for event in chance.events(life):
                if (event := left_out(event, without)) is not None:
                    life.play(event)
        life.close(chance.ends(len(life.others) + len(life.replaced) + 1))
    except Exception as error:
        return life.events, raised(error)
    return life.events, judged(life.world)


def left_out(event: Event, without: Sequence[str]) -> Event | None:
    """An event as it is when some kinds of events, or some things of a turn, never happen."""
    if event[0] in without:
        return None
    if event[0] != "turn":
        return event
    return (
        "turn",
        replace(event[1], **{name: UNUSUAL[name] for name in without if name in UNUSUAL}),
    )


def cell_words(cell: str, rng: random.Random) -> Words:
    return Words(rng, alike=habits(cell)["alike"])


def again(cell: str, seed: int, events: list[Event]) -> tuple[World, Verdict]:
    """Given events in the world of a seed."""
    life = Life(world(cell, random.Random(zlib.crc32(cell.encode()) + seed)))
    try:
        for event in events:
            life.play(event)
        life.close()
    except Exception as error:
        return life.world, raised(error)
    return life.world, judged(life.world)


def raised(error: Exception) -> Verdict:
    return Verdict(raised=f"{type(error).__name__}: {error}")


def shrunk(cell: str, seed: int, events: list[Event]) -> list[Event]:
    """The events without which the life would not fail, in the same way, each as plain as it may
    be.
    """
    kinds = again(cell, seed, events)[1].kinds
    if not kinds:
        return events  # it fails by how its agents end

    def fails(some: list[Event]) -> bool:
        return bool(again(cell, seed, some)[1].kinds & kinds)

    done = False
    while not done:
        done = True
        for at in reversed(range(len(events))):
            for less in ([], *([("turn", plainer)] for plainer in plainer_turns(events[at]))):
                tried = [*events[:at], *less, *events[at + 1 :]]
                if fails(tried):
                    events, done = tried, False
                    break
    return events


def plainer_turns(event: Event) -> list[Turn]:
    """A turn with one thing less in it."""
    if event[0] != "turn":
        return []
    turn = event[1]
    found = [
        replace(turn, **{name: value})
        for name, value in UNUSUAL.items()
        if getattr(turn, name) != value
    ]
    found += [
        replace(turn, steps=turn.steps[:at] + turn.steps[at + 1 :]) for at in range(len(turn.steps))
    ]
    for at, step in enumerate(turn.steps):
        less = [
            replace(step, **{name: value})
            for name, value in STEP.items()
            if getattr(step, name) != value
        ]
        found += [
            replace(turn, steps=[*turn.steps[:at], one, *turn.steps[at + 1 :]]) for one in less
        ]
    return found


def lives(cell: str, count: int, events: int, without: Sequence[str] = ()) -> dict:
    """What came of some lives of one cell."""
    found = dict.fromkeys(("lives", "exact", *KINDS), 0)
    failures = []
    for seed in range(count):
        _, verdict = play(cell, seed, events, without)
        found["lives"] += 1
        for kind in KINDS:
            found[kind] += bool(getattr(verdict, kind))
        if verdict.exact:
            found["exact"] += 1
        else:
            failures.append(seed)
    return {**found, "failures": failures[:8]}


def show(cell: str, seed: int, events: int, without: Sequence[str], *, shrink: bool) -> None:
    """One life: its events, and what differs."""
    happened, verdict = play(cell, seed, events, without)
    shown = happened
    if shrink and not verdict.exact:
        shown = shrunk(cell, seed, happened)
        of, less = again(cell, seed, shown)
        verdict = verdict if less.exact else less
        if of.parents:
            print("made from:", of.parents)
    for name, *given in shown:
        print("  ", name, *(in_short(one) if isinstance(one, Turn) else one for one in given))
    for kind in KINDS:
        print(f"{kind:8}", getattr(verdict, kind))
    print("\n".join(verdict.shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lives", type=int, default=400, help="lives a cell")
    parser.add_argument(
        "--cell", action="append", help=f"one of {', '.join(CELLS)}, or a part of such a name"
    )
    parser.add_argument("--events", type=int, default=12, help="events a life")
    parser.add_argument("--seed", type=int, help="play this life only")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        help="an event, or a thing of turns, that never happens: odd, made, retry",
    )
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="leave out of that life what its failing does not need",
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cells = [cell for cell in CELLS if not given.cell or any(part in cell for part in given.cell)]
    if given.seed is not None:
        for cell in cells:
            print(cell, given.seed)
            show(cell, given.seed, given.events, given.without, shrink=given.shrink)
        return
    with ProcessPoolExecutor(given.jobs) as pool:
        found = dict(
            zip(
                cells,
                pool.map(
                    lives,
                    cells,
                    itertools.repeat(given.lives),
                    itertools.repeat(given.events),
                    itertools.repeat(given.without),
                ),
                strict=True,
            )
        )
    if given.json:
        print(json.dumps(found, indent=1))
        return
    print(
        f"{'cell':22} {'lives':>5} {'exact':>6}      % doubled lost moved astray unique "
        "raised  first failures"
    )
    for cell, row in found.items():
        share = 100 * row["exact"] / row["lives"]
        print(
            f"{cell:22} {row['lives']:5} {row['exact']:6} {share:6.1f} {row['doubled']:7} "
            f"{row['lost']:4} {row['moved']:5} "
            f"{row['astray']:6} {row['unique']:6} {row['raised']:6}  {row['failures']}"
        )


if __name__ == "__main__":
    main()
