"""Copies in a log: what an older build has doubled, and what people have really said again."""

import random
from dataclasses import replace
from datetime import timedelta

import doubled
import pytest
from capturestore import MemoryStore
from doubled import CAT, HELLO, OK, TIMER, Life
from effort import share
from hypothesis import given
from hypothesis import strategies as st
from lives import differences
from test_capture_lives import lived

from optchat.base.record import Entry, Message
from optchat.capture.copies import LEAST, CopyFinder


def found_in(log):
    """Every copy found, as {copy: what it repeats}."""
    finder = CopyFinder()
    for id_, entry in enumerate(log):
        finder.add(
            Message(id=id_, **{name: getattr(entry, name) for name in Entry.__dataclass_fields__})
        )
    stretches = finder.find()
    return {
        piece.first + k: piece.of + k
        for stretch in stretches
        for piece in stretch.pieces
        for k in range(piece.length)
    }


@pytest.mark.parametrize("named", [False, True], ids=["without ids", "with ids"])
@pytest.mark.parametrize("way", doubled.WAYS)
def test_what_was_doubled_is_named_and_what_was_said_again_is_not(way, named):
    life = Life(named=named)
    doubled.repeats(life)
    planted = doubled.WAYS[way](life)
    doubled.repeats(life)
    copies = found_in(life.log)
    assert sorted(copies) == [id_ for ids, _ in planted for id_ in ids]
    if named:
        assert copies == {
            copy: of for ids, first in planted for copy, of in zip(ids, first, strict=True)
        }
    else:  # the same words in the same order were said more than once
        assert all(life.log[copy].text == life.log[of].text for copy, of in copies.items())


@pytest.mark.parametrize("named", [False, True])
def test_people_who_say_everything_again_are_believed(named):
    life = Life(named=named)
    for session in "ABCA":
        for turn in (HELLO, TIMER, CAT, OK, OK):
            life.turn(session, turn)
    assert found_in(life.log) == {}


def test_an_import_of_repeats_without_dates_and_ids_is_believed():
    rows = [
        Entry(kind=kind, text=text, session="x")
        for _ in range(50)
        for turn in (HELLO, CAT, OK)
        for kind, text in turn
    ]
    assert found_in(rows) == {}


def test_the_same_old_history_twice_is_known_by_its_dates():
    life = Life()
    first = [id_ for turn in (HELLO, TIMER, CAT) for id_ in life.turn("A", turn)]
    life.log = [
        replace(entry, turn="", call="") for entry in life.log
    ]  # from before there was a memory
    copies = life.again(first, "B", dated=True)
    assert found_in(life.log) == dict(zip(copies, first, strict=True))
    life.log[len(first) :] = [
        replace(entry, date=life.log[-1].date) for entry in life.log[len(first) :]
    ]
    assert found_in(life.log) == {}


def test_a_copy_of_a_copy_is_led_back_to_what_was_said():
    life = Life()
    first = [id_ for turn in (HELLO, TIMER) for id_ in life.turn("A", turn)]
    second = life.again(first, "B")
    own = life.turn("B", CAT)
    third = life.again([*second, *own], "C")
    assert found_in(life.log) == dict(zip([*second, *third], [*first, *first, *own], strict=True))


def test_a_copy_that_lacks_what_was_taken_back_is_still_one():
    life = Life()
    one, undone, two = (life.turn("A", turn) for turn in (HELLO, CAT, TIMER))
    life.turn("Z", OK)
    note = life._say(
        [Entry(kind="note", text="(taken back)", session="A", turn="n", date=life._stamp())]
    )
    three = life.turn("A", [("user", "what is the time?"), ("talk", "Nearly ten.")])
    copies = life.again([*one, *two, *three], "B")
    assert found_in(life.log) == dict(zip(copies, [*one, *two, *three], strict=True))
    assert not {*undone, *note} & set(found_in(life.log).values())


def test_messages_of_others_between_do_not_hide_a_copy():
    life = Life()
    first = []
    for turn in (HELLO, TIMER, CAT):
        first += life.turn("A", turn)
        life.turn("Z", OK)
    copies = life.again(first, "B")
    assert found_in(life.log) == dict(zip(copies, first, strict=True))


@pytest.mark.parametrize("call", ["call_1", "functions.timer:0", "0"])
def test_a_call_that_is_only_numbered_proves_nothing(call):
    life = Life()
    for _ in range(3):
        life.turn("A", TIMER)
    life.log = [replace(entry, call=call if entry.call else "") for entry in life.log]
    assert found_in(life.log) == {}


def test_a_call_logged_twice_in_one_turn_is_named():
    """An interrupted request sent again: call, result and answer came before and after it."""
    life = Life()
    turn = life.turn("A", TIMER)
    twice = [replace(life.log[id_], turn="") for id_ in turn[1:]]
    life.log = [*life.log[1:], life.log[0], *twice]
    assert found_in(life.log) == {4: 0, 5: 1, 6: 2}


def test_a_message_joined_with_its_repeat_is_said_twice():
    """One row of the host, two messages of one id: "ok" was interrupted and said again."""
    life = Life(named=True)
    one, two = life.turn("A", OK[:1]), life.turn("A", OK)
    life.log[two[0]] = replace(life.log[two[0]], uid=life.log[one[0]].uid)
    assert found_in(life.log) == {}


def test_two_calls_alike_in_one_message_are_both_made():
    life = Life(named=True)
    ids = life.turn("A", [TIMER[0], TIMER[1], TIMER[1], TIMER[2], TIMER[2], TIMER[3]])
    life.log = [
        replace(entry, uid="u" if entry.kind == "tool" else entry.uid) for entry in life.log
    ]
    assert found_in(life.log) == {}
    assert len(ids) == 6


def test_lost_messages_are_no_copies():
    life = Life()
    doubled.exit_after_new(life)
    finder = CopyFinder()
    for id_, entry in reversed([*enumerate(life.log)]):
        if id_ != 8:
            finder.add(
                Message(
                    id=id_, **{name: getattr(entry, name) for name in Entry.__dataclass_fields__}
                )
            )
    assert {piece.first for stretch in finder.find() for piece in stretch.pieces} <= {6, 9}
    assert CopyFinder().find() == []


@pytest.mark.parametrize("faults", [False, True], ids=["undisturbed", "with faults"])
@pytest.mark.parametrize("flavour", ["A", "B"])
def test_nothing_is_named_in_a_life_that_was_logged_right(flavour, faults):
    for seed in range(share(30)):
        store = MemoryStore()
        world = lived(flavour, store, seed, faults=faults, alike=False, old=False, events=25)
        if not differences(world):
            assert found_in(store.log) == {}, seed


WORDS = [
    "tea",
    "the harbour",
    "a letter to Ilse",
    "rain",
    "forty euros",
    "the red door",
    "Tuesday",
    "and the dog",
]


def a_turn(chance):
    """A turn of two to six messages out of few words, so that much is said again."""
    said = [("user", " ".join(chance.choices(WORDS, k=chance.randint(1, 2))))]
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        said += [("tool", f"look({chance.choice(WORDS)})"), ("echo", chance.choice(WORDS))]
    return [*said, ("talk", " ".join(chance.choices(WORDS, k=2)))]


@given(st.integers(0, 1 << 32), st.booleans(), st.booleans())
def test_in_any_log_exactly_the_planted_copies_are_named(seed, named, dated):
    chance = random.Random(seed)
    life, planted = Life(named=named), {}
    of_session = {}
    turns = [a_turn(chance) for _ in range(6)]
    for step in range(chance.randint(5, 40)):
        session = chance.choice("ABC")
        if chance.random() < 0.8 or not of_session.get(session):
            turn = chance.choice(turns) if chance.random() < 0.5 else a_turn(chance)
            of_session.setdefault(session, []).extend(life.turn(session, turn))
            continue
        listed = of_session[session]
        ends = [
            at
            for at in range(1, len(listed) + 1)
            if at == len(listed) or life.log[listed[at]].kind == "user"
        ]
        listed = listed[: chance.choice(ends)]
        opened = [id_ for id_ in listed if life.log[id_].kind == "user"]
        if (
            len(listed) < LEAST
            or len(opened) < 2
            or len({life.log[id_].text for id_ in listed}) < 3
        ):
            continue
        planted |= dict.fromkeys(life.again(listed, f"new {step}", dated=dated))
        life.now += timedelta(minutes=1)
    copies = found_in(life.log)
    assert sorted(copies) == sorted(planted)
    assert all(
        (life.log[a].kind, life.log[a].text) == (life.log[b].kind, life.log[b].text)
        for a, b in copies.items()
    )
    assert not set(copies.values()) & set(planted)
