#!/usr/bin/env python3
"""Random lives of both simulated hosts: in how many of them the log is exactly what was said. Gates nothing.

Sixteen cells: the host without ids and the one with them, texts that are all different or all alike, nothing that
breaks or interrupts, errors and crashes, and with or without old lists at the end and copies no hook tells of.
``unique`` counts the lives in which something that was said only once is doubled, moved or in another session.

.venv/bin/python scripts/bench_lives.py [--lives 400] [--cell A-alike-faults-old] [--seed 7] [--events 12] [--jobs 2] [--json]
``--cell`` with ``--seed`` plays one life again and shows its events, and what differs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE), str(HERE / "tests")]

from capturestore import MemoryStore  # noqa: E402
from hostsim import World  # noqa: E402
from lives import Life, Verdict, judged, live  # noqa: E402

CELLS = ["-".join(parts) for parts in itertools.product("AB", ("unique", "alike"), ("calm", "faults"), ("plain", "old"))]


def play(cell: str, seed: int, events: int) -> tuple[World, Life | None, Verdict, str]:
    """One life, and what came of it. A life that raises is its own kind of failure."""
    flavour, texts, breaks, lists = cell.split("-")
    rng = random.Random(zlib.crc32(cell.encode()) + seed)
    slow = rng.random() < 0.5
    lag = (lambda: rng.uniform(0, 2)) if slow else (lambda: rng.uniform(0, 0.02))
    world = World(
        flavour,
        MemoryStore(),
        keep=rng.choice((2, 4, 6)),
        rotate=rng.random() < 0.3,
        lag=lag,
        witness=rng.random() < 0.5,
    )
    life, error = None, ""
    try:
        life = live(world, rng, faults=breaks == "faults", alike=texts == "alike", events=events, old=lists == "old", hard=True)
    except Exception as exception:  # noqa: BLE001 - a hook that raises is a finding, and the other lives go on
        error = f"{type(exception).__name__}: {exception}"
    return world, life, judged(world), error


def lives(cell: str, count: int, events: int) -> dict:
    """What came of some lives of one cell."""
    found = {"lives": count, "exact": 0, "doubled": 0, "lost": 0, "moved": 0, "astray": 0, "unique": 0, "raised": 0}
    failures = []
    for seed in range(count):
        _, _, verdict, error = play(cell, seed, events)
        for kind in ("doubled", "lost", "moved", "astray", "unique"):
            found[kind] += bool(getattr(verdict, kind))
        found["raised"] += bool(error)
        if verdict.exact and not error:
            found["exact"] += 1
        else:
            failures.append(seed)
    return {**found, "failures": failures[:8]}


def show(cell: str, seed: int, events: int) -> None:
    """One life: its events, and what differs."""
    world, life, verdict, error = play(cell, seed, events)
    for event in life.events if life else ():
        print("  ", event)
    for session, parent in world.parents.items():
        print(f"   {session} was made from {parent}")
    for kind in ("doubled", "lost", "moved", "astray", "unique"):
        print(f"{kind:8}", getattr(verdict, kind))
    print("raised  ", error)
    print("\n".join(verdict.shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lives", type=int, default=400, help="lives a cell")
    parser.add_argument("--cell", action="append", help=f"one of {', '.join(CELLS)}, or a part of such a name")
    parser.add_argument("--events", type=int, default=12, help="events a life")
    parser.add_argument("--seed", type=int, help="play this life only")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cells = [cell for cell in CELLS if not given.cell or any(part in cell for part in given.cell)]
    if given.seed is not None:
        for cell in cells:
            show(cell, given.seed, given.events)
        return
    with ProcessPoolExecutor(given.jobs) as pool:
        found = dict(zip(cells, pool.map(lives, cells, itertools.repeat(given.lives), itertools.repeat(given.events)), strict=True))
    if given.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{'cell':22} {'lives':>5} {'exact':>6}      % doubled lost moved astray unique raised  first failures")
    for cell, row in found.items():
        share = 100 * row["exact"] / row["lives"]
        print(
            f"{cell:22} {row['lives']:5} {row['exact']:6} {share:6.1f} {row['doubled']:7} {row['lost']:4} {row['moved']:5} "
            f"{row['astray']:6} {row['unique']:6} {row['raised']:6}  {row['failures']}"
        )


if __name__ == "__main__":
    main()
