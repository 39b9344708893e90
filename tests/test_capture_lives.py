"""Law 11.

Whatever a host does to its list, each real message is in the log exactly once, in the order in
which it was said.

Random lives of both simulated hosts, on a store in memory and on the real disk. What no hook ever
shows nobody can log, and texts that are all alike, on the host without ids and with broken turns,
leave cases that no reading could decide (LAWS.md says which).
"""

from __future__ import annotations

import random

import pytest
from capturestore import MemoryStore
from effort import share
from hostsim import World
from hypothesis import given, settings
from hypothesis import strategies as st
from lives import differences, judged, live

from optchat.base.settings import Settings
from optchat.memory import Memory

SEEDS = st.integers(0, 2**32)


class DiskWorldStore:
    """The real disk, and the log as the simulator looks into it."""

    def __init__(self, memory):
        self._memory = memory
        self._store = memory.capture_store()

    def __getattr__(self, name):
        return getattr(self._store, name)

    @property
    def log(self):
        total = self._memory.status()["messages"]
        return [message for message in self._memory.store.messages(0, total) if message is not None]


def lived(flavour, store, seed, *, faults, alike, old, events=12):
    rng = random.Random(seed)
    keep, rotate, witness, most = (
        rng.choice((2, 4, 6)),
        rng.random() < 0.3,
        rng.random() < 0.5,
        rng.choice((0.02, 2)),
    )
    lags = random.Random(seed)
    world = World(
        flavour, store, keep=keep, rotate=rotate, witness=witness, lag=lambda: lags.uniform(0, most)
    )
    live(world, rng, faults=faults, alike=alike, events=events, old=old, hard=True)
    return world


OLD = pytest.mark.parametrize(
    "old", [False, True], ids=["told of all", "with old lists and silent copies"]
)


def judgements(flavour, count, *, faults, alike, old):
    store = MemoryStore
    return [
        judged(lived(flavour, store(), seed, faults=faults, alike=alike, old=old))
        for seed in range(count)
    ]


@OLD
@pytest.mark.parametrize("faults", [False, True], ids=["undisturbed", "with breaks"])
@pytest.mark.parametrize("flavour", ["A", "B"])
def test_a_life_is_logged_once_and_in_order(flavour, faults, old):
    """All; with breaks but two of a hundred, law 11 says which.

    ``scripts/bench_lives.py`` plays more.
    """
    found = judgements(flavour, share(100), faults=faults, alike=False, old=old)

    assert sum(not verdict.exact for verdict in found) <= (2 if faults else 0)


@pytest.mark.parametrize("faults", [False, True], ids=["undisturbed", "with breaks"])
@pytest.mark.parametrize("flavour", ["A", "B"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_a_plain_life_is_logged_once_and_in_order(flavour, faults, seed):
    """Without rows of the host's own, retries, reports and silent copies: every one."""
    world = World(flavour, MemoryStore(), keep=4, rotate=seed % 3 == 0)
    live(world, random.Random(seed), faults=faults, alike=False, events=12)

    assert differences(world) == []


@OLD
@pytest.mark.parametrize(
    ("flavour", "faults", "most"),
    [("A", False, 0), ("A", True, 7), ("B", False, 0), ("B", True, 2)],
)
def test_alike_texts_are_told_apart_but_in_few_lives(flavour, faults, most, old):
    found = judgements(flavour, share(100), faults=faults, alike=True, old=old)

    assert sum(not verdict.exact for verdict in found) <= most


@pytest.mark.slow
@pytest.mark.parametrize("flavour", ["A", "B"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_the_real_disk_keeps_what_the_store_in_memory_keeps(flavour, seed, tmp_path_factory):
    with Memory.open(
        tmp_path_factory.mktemp("life") / "memory", Settings(), compact=False
    ) as memory:
        world = lived(flavour, DiskWorldStore(memory), seed, faults=True, alike=False, old=True)
        again = lived(flavour, MemoryStore(), seed, faults=True, alike=False, old=True)

        assert judged(world).shown == judged(again).shown
        report = memory.check()
        assert (report["damage"], report["disagreements"]) == ([], [])
