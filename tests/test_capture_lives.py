"""Law 11: whatever a host does to its list, each real message is in the log exactly once, in the order in which it was said.

Random lives of both simulated hosts, on a store in memory and on the real disk. What no hook ever shows nobody can log, and texts that
are all alike, on the host without ids and with broken turns, leave cases that no reading could decide (LAWS.md says which).
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from capturestore import MemoryStore
from hostsim import World
from hypothesis import given, settings
from hypothesis import strategies as st
from lives import differences, expected, live, logged

from optchat.core.settings import Settings
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
        return [message for message in self._memory._store.messages(0, total) if message is not None]


def lived(flavour, store, seed, *, faults, alike, events=12):
    rng = random.Random(seed)
    world = World(flavour, store, keep=rng.choice((2, 4, 6)), rotate=rng.random() < 0.3)
    live(world, rng, faults=faults, alike=alike, events=events)
    return world


@pytest.mark.parametrize("faults", [False, True], ids=["undisturbed", "with interrupts, errors and deaths"])
@pytest.mark.parametrize("flavour", ["A", "B"])
@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_any_life_of_a_host_is_logged_once_and_in_order(flavour, faults, seed):
    world = lived(flavour, MemoryStore(), seed, faults=faults, alike=False)

    assert differences(world) == []


def test_texts_that_are_all_alike_are_told_apart_by_ids_while_nothing_breaks():
    for seed in range(300):
        assert differences(lived("B", MemoryStore(), seed, faults=False, alike=True)) == [], seed


def test_without_ids_texts_that_are_all_alike_are_told_apart_but_for_rare_undone_turns():
    """In 1,500 such lives 4 differ: after an undo, a turn's words and the words it repeats look the same. Nothing is there twice."""
    different = 0
    for seed in range(300):
        world = lived("A", MemoryStore(), seed, faults=False, alike=True)
        different += bool(differences(world))
        for family in set(world.families.values()):
            assert Counter(logged(world, family)) <= Counter(expected(world, family)), seed

    assert different <= 2


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_with_ids_what_is_no_repeat_is_there_once_whatever_breaks(seed):
    world = lived("B", MemoryStore(), seed, faults=True, alike=True)

    for family in set(world.families.values()):
        got, want = Counter(logged(world, family)), Counter(expected(world, family))
        assert got.keys() <= want.keys()
        assert all(got[entry] == 1 for entry, count in want.items() if count == 1)


def test_with_ids_alike_texts_are_not_doubled_whatever_breaks():
    for seed in range(300):
        world = lived("B", MemoryStore(), seed, faults=True, alike=True)
        for family in set(world.families.values()):
            assert Counter(logged(world, family)) <= Counter(expected(world, family)), seed


@pytest.mark.slow
@pytest.mark.parametrize("flavour", ["A", "B"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_the_real_disk_keeps_what_the_store_in_memory_keeps(flavour, seed, tmp_path_factory):
    with Memory.open(tmp_path_factory.mktemp("life") / "memory", Settings(), compact=False) as memory:
        world = lived(flavour, DiskWorldStore(memory), seed, faults=True, alike=False)

        assert differences(world) == []
        report = memory.check()
        assert (report["damage"], report["disagreements"]) == ([], [])
