"""From a list and a log to what is new.

Alignment, the turns that messages are, and lives in which ids and words repeat.
"""

from __future__ import annotations

import random

import pytest
from capturestore import MemoryStore
from hostsim import World
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lives import differences, live

from optchat.base.canon import canon, key_of
from optchat.base.record import Message
from optchat.capture import match_by_text
from optchat.capture.alignment import align
from optchat.capture.host_messages import Item, read_message
from optchat.capture.open_turns import Draft, Unit, assign
from optchat.capture.pairing import Expected
from optchat.capture.reconcile import Turn, reconcile
from optchat.capture.session_records import Fork, SessionRecords

SEEDS = st.integers(0, 2**32)


def item(kind, text, call=""):
    said = kind == "user"
    form = canon(text) if said else ""
    return Item(
        kind, text, key_of(kind, text, call=call, said=said), canon=form, call=call, said=said
    )


def message(number, kind, text, session="s", **more):
    return Message(
        id=number, date="2026-05-01T09:00:00+02:00", kind=kind, text=text, session=session, **more
    )


def known(*entries, session="s"):
    """A log from words: ``u:x``, ``a:x``, ``c:x`` (a call with id x), ``t:x`` (its result)."""
    log = SessionRecords()
    log.add(
        message(number, *fields, session=session, call=call)
        for number, (*fields, call) in enumerate(map(split, entries))
    )
    return log


def split(word):
    letter, _, text = word.partition(":")
    kind = {"u": "user", "a": "talk", "c": "tool", "t": "echo"}[letter]
    return kind, text, text if letter in "ct" else ""


def items(*words):
    return [item(kind, text, call) for kind, text, call in map(split, words)]


def written(plan):
    """What a plan adds, as words; an exclamation mark for what no list has shown."""
    letters = {"user": "u", "talk": "a", "tool": "c", "echo": "t", "note": "n"}
    return [
        f"{letters[a.entry.kind]}:{a.entry.text}{'!' if a.entry.unshown else ''}"
        for a in plan.additions
    ]


def plan(log, *words, drafts=(), **turn):
    return reconcile(items(*words), log, drafts, Turn("s", **turn))


# -- without ids: what follows the part that is known

LOG = ("u:1", "a:one", "u:2", "c:k", "t:k", "a:two")


@pytest.mark.parametrize(
    ("words", "new"),
    [
        (LOG, []),
        (LOG[2:], []),
        (LOG[:3], []),
        ((), []),
        ((*LOG, "u:3", "a:three"), ["u:3", "a:three"]),
        ((*LOG[3:], "u:3"), ["u:3"]),
        ((*LOG, "u:1", "a:one"), ["u:1", "a:one"]),
        (("u:1", "a:one", "u:2", "a:two", "u:3"), ["u:3"]),
        (("u:9", "a:nine"), ["u:9", "a:nine"]),
        ((*LOG[:5], "a:two, in other words", "u:3"), ["u:3"]),
        ((*LOG[:4], "t:k", "a:two\nand more"), ["a:and more"]),
    ],
)
def test_what_the_log_lacks(words, new):
    assert written(plan(known(*LOG), *words)) == new


def test_nothing_known_makes_everything_new():
    assert written(plan(SessionRecords(), *LOG)) == list(LOG)


def test_unanswered_messages_that_are_joined_or_parted_are_known():
    log = known("u:1", "u:2", "a:x")
    assert written(plan(log, "u:1\n\n2", "a:x")) == []
    log = known("u:1\n\n2", "a:x")
    assert written(plan(log, "u:1", "u:2", "a:x")) == []


def test_a_message_joined_to_a_known_one_is_new_without_it():
    drafts = [Draft("t2", "s", "2")]
    found = plan(known("u:1"), "u:1\n\n2", "a:x", drafts=drafts, running="t2", is_own_list=True)
    assert written(found) == ["u:2", "a:x"]
    assert found.additions[0].entry.turn == "t2"


def test_a_message_logged_too_late_hides_nothing_that_follows_it():
    log = known("u:1", "a:one", "u:3", "a:three", "u:2")
    assert written(plan(log, "u:1", "a:one", "u:2", "u:3", "a:three")) == []


def test_a_call_that_is_not_logged_is_new_and_so_is_all_that_follows_it():
    log = known("u:go on", "a:done", "u:2", "a:done")
    drafts = [Draft("t", "s", "2")]
    assert written(
        plan(log, "u:go on", "a:done", "u:2", "c:new", "t:new", "a:done", drafts=drafts)
    ) == ["u:2", "c:new", "t:new", "a:done"]


def test_a_turn_known_to_be_open_is_new_where_a_short_reply_after_it_is_logged():
    log = known("u:1", "a:ok", "u:2", "a:ok")
    assert written(plan(log, "u:1", "a:ok", "u:3", "a:ok", drafts=[Draft("t", "s", "3")])) == [
        "u:3",
        "a:ok",
    ]


@given(st.data())
def test_any_list_that_begins_with_known_messages_shows_what_is_new(data):
    """Texts are all different.

    The host joins unanswered messages as it likes, and has forgotten a part at the beginning.
    """
    kinds = data.draw(st.lists(st.sampled_from("uac"), min_size=1, max_size=14))
    words = [f"{kind}:{number}" for number, kind in enumerate(kinds)]
    end = data.draw(st.integers(1, len(words)))
    start = data.draw(st.integers(0, end - 1))
    new = words[end:]
    shown = []
    for at, word in enumerate(words[start:], start):
        if shown and word[0] == "u" == shown[-1][0] and at != end and data.draw(st.booleans()):
            shown[-1] += f"\n\n{word[2:]}"
        else:
            shown.append(word)
    log = known(*words[:end])

    def left(match, letters):
        after = [word for word in shown[match.old :] if word[0] in letters]
        return match.rest.split("\n\n") * bool(match.rest) + [
            part for word in after for part in word[2:].split("\n\n")
        ]

    said = [word[2:] for word in new if word[0] == "u"]
    found = align(
        items(*shown), log.shown("s"), Expected(lambda match: left(match, "u") == said), cut=True
    )

    assert left(found, "uac") == [word[2:] for word in new]


# -- which turns messages are


@given(st.data())
@settings(max_examples=300)
def test_joined_messages_come_apart_into_the_turns_they_are(data):
    """Each message is one turn's, or several turns' in a row; others were lost.

    The texts are all different.
    """
    count = data.draw(st.integers(1, 8))
    drafts = [
        Draft(
            f"t{number}",
            "s",
            f"text {number}" + ("\n\nand more" if data.draw(st.booleans()) else ""),
        )
        for number in range(count)
    ]
    units, expected, rest = [], [], list(drafts)
    while rest:
        deed = data.draw(st.sampled_from(["lose", "whole", "join"]))
        size = min(len(rest), data.draw(st.integers(2, 3))) if deed == "join" else 1
        group, rest = rest[:size], rest[size:]
        if deed != "lose":
            units.append("\n\n".join(draft.canon for draft in group))
            expected.append([draft.token for draft in group])
    for oldest_first in (False, True):
        made = [Unit(text) for text in units]
        assert assign(made, drafts, oldest_first=oldest_first)
        assert [[piece.draft.token for piece in unit.pieces] for unit in made] == expected
        assert ["\n\n".join(piece.canon for piece in unit.pieces) for unit in made] == units


def test_of_turns_that_look_alike_the_last_ones_have_lived():
    drafts = [Draft(f"t{number}", "s", "ok") for number in range(3)]
    for oldest_first, tokens in ((False, ["t1", "t2"]), (True, ["t0", "t1"])):
        units = [Unit("ok"), Unit("ok")]
        assert assign(units, drafts, oldest_first=oldest_first)
        assert [unit.pieces[0].draft.token for unit in units] == tokens


def test_when_a_host_took_a_message_in_tells_turns_that_look_alike_apart():
    drafts = [
        Draft(f"t{number}", "s", "ok", f"2026-05-01T09:0{number}:00+00:00") for number in range(3)
    ]
    for number, draft in enumerate(drafts):
        for oldest_first in (False, True):
            unit = Unit("ok", stamp=draft.time + 0.4)
            assert assign([unit], drafts, oldest_first=oldest_first)
            assert unit.pieces[0].draft.token == f"t{number}"


def test_a_text_nobody_announced_is_nobody_s_turn():
    unit = Unit("hello")
    assert not assign([unit], [Draft("t", "s", "goodbye")], oldest_first=False)
    assert [(piece.draft, piece.canon) for piece in unit.pieces] == [(None, "hello")]


def test_a_picture_is_the_turn_that_came_without_words():
    drafts = [Draft("t1", "s", "one"), Draft("t2", "s", None), Draft("t3", "s", "three")]
    units = [Unit("one"), Unit("look", parts=True), Unit("three")]
    assert assign(units, drafts, oldest_first=False)
    assert [unit.pieces[0].draft.token for unit in units] == ["t1", "t2", "t3"]
    worded = Unit("look", worded=True)
    assert not assign([worded], drafts, oldest_first=False)


def test_what_was_begun_and_never_shown_stands_before_what_was_shown_later():
    drafts = [Draft("t1", "s", "lost"), Draft("t2", "s", "2")]
    found = plan(
        known("u:1", "a:x"),
        "u:1",
        "a:x",
        "u:2",
        "a:y",
        drafts=drafts,
        running="t2",
        is_own_list=True,
    )
    assert written(found) == ["u:lost!", "u:2", "a:y"]


def test_a_turn_of_another_live_instance_is_not_given_up():
    drafts = [Draft("t1", "s", "elsewhere", other_owner=True), Draft("t2", "s", "2")]
    assert written(
        plan(SessionRecords(), "u:2", "a:y", drafts=drafts, running="t2", is_own_list=True)
    ) == ["u:2", "a:y"]


def test_a_list_that_is_older_than_the_running_turn_leaves_it_open():
    drafts = [Draft("t2", "s", "2")]
    assert written(plan(known("u:1", "a:x"), "u:1", "a:x", drafts=drafts, running="t2")) == []


def test_what_was_logged_unshown_is_bound_when_a_list_shows_it():
    log = SessionRecords()
    log.add([message(0, "user", "1", turn="t1", unshown=True)])
    found = plan(log, "u:1", "a:x")
    assert written(found) == ["a:x"]
    assert [bind.id for bind in found.binds] == [0]


# -- with ids


def named(content, uid, role="user", **more):
    return {"role": role, "content": content, "message_uid": uid, **more}


def plan_named(log, messages, drafts=(), **turn):
    return reconcile([i for m in messages for i in read_message(m)], log, drafts, Turn("s", **turn))


def test_with_ids_new_is_what_has_an_unknown_one():
    log = SessionRecords()
    log.add([message(0, "user", "ok", uid="1"), message(1, "talk", "fine", uid="2")])
    again = [named("ok", "1"), named("fine", "2", "assistant")]
    assert written(plan_named(log, again)) == []
    assert written(
        plan_named(log, [*again, named("ok", "3"), named("fine", "4", "assistant")])
    ) == ["u:ok", "a:fine"]
    assert (
        written(plan_named(log, [named("[redacted]", "1"), named("other", "2", "assistant")])) == []
    )


def test_an_id_that_was_absorbed_names_the_message_that_was_joined():
    log = SessionRecords()
    log.add([message(0, "user", "one", uid="1")])
    drafts = [Draft("t2", "s", "two")]
    found = plan_named(
        log,
        [named("one\n\ntwo", "1", _absorbed_message_uids=["2"])],
        drafts,
        running="t2",
        is_own_list=True,
    )
    assert [(a.entry.text, a.entry.uid, a.entry.turn) for a in found.additions] == [
        ("two", "2", "t2")
    ]


def test_calls_filled_in_later_are_new_with_the_id_of_their_message():
    log = SessionRecords()
    log.add([message(0, "talk", "let me see", uid="1")])
    calls = [{"id": "c1", "function": {"name": "clock", "arguments": "{}"}}]
    found = plan_named(log, [named("let me see", "1", "assistant", tool_calls=calls)])
    assert [(a.entry.kind, a.entry.uid) for a in found.additions] == [("tool", "1")]
    log.add([message(1, "tool", "clock {}", uid="1", call="c1")])
    calls[0]["function"]["arguments"] = '{"masked": ***'
    assert written(plan_named(log, [named("let me see", "1", "assistant", tool_calls=calls)])) == []


def test_a_message_logged_before_the_host_had_named_it_gets_its_id():
    log = SessionRecords()
    log.add([message(0, "user", "one", turn="t1")])
    found = plan_named(log, [named("one", "7"), named("two", "8", "assistant")])
    assert written(found) == ["a:two"]
    assert [(bind.id, bind.uid) for bind in found.binds] == [(0, "7")]


# -- what is known


@given(st.data())
def test_what_a_session_has_shown_grows_as_if_it_were_gathered_anew(data):
    """Whatever comes in whichever order.

    Messages, branches, and lists that show what was logged unshown.
    """
    kept, past = SessionRecords(), []
    for number in range(data.draw(st.integers(1, 12))):
        deed = data.draw(st.sampled_from(["add", "add", "fork", "bind", "look"]))
        session = data.draw(st.sampled_from("xyz"))
        if deed == "add":
            unshown = data.draw(st.booleans())
            new = message(
                number,
                data.draw(st.sampled_from(["user", "talk", "note"])),
                str(number),
                session,
                turn=f"t{number}" if unshown else "",
                unshown=unshown,
            )
            past.append(lambda log, new=new: log.add([new]))
        elif deed == "fork":
            fork = Fork(
                session,
                data.draw(st.sampled_from("xyz")),
                data.draw(st.sampled_from([-1, number])),
                frozenset({f"t{number - 1}"}),
            )
            assume(fork.child != fork.parent)
            past.append(lambda log, fork=fork: log.fork(fork))
        elif deed == "bind":
            at = data.draw(st.integers(0, 12))
            past.append(lambda log, at=at: log.bind(at, "u", ""))
        else:
            kept.shown(session), kept.unshown(session)
            continue
        past[-1](kept)
        anew = SessionRecords()
        for step in past:
            step(anew)
        for name in "xyz":
            assert [r.id for r in kept.shown(name)] == [r.id for r in anew.shown(name)]
            assert [r.id for r in kept.unshown(name)] == [r.id for r in anew.unshown(name)]


def test_a_branch_knows_what_was_there_when_it_began():
    log = SessionRecords()
    log.add([message(0, "user", "before", "old")])
    log.fork(Fork("new", "old", 1))
    log.add([message(1, "user", "after", "old"), message(2, "user", "mine", "new")])
    assert [record.canon for record in log.shown("new")] == ["before", "mine"]
    assert [record.canon for record in log.shown("old")] == ["before", "after"]


# -- lives


def lived(flavour, seed, *, faults, alike=False, events=12, calls="unique", short=False):
    rng = random.Random(seed)
    world = World(
        flavour, MemoryStore(), keep=rng.choice((2, 4, 6)), rotate=rng.random() < 0.3, calls=calls
    )
    live(world, rng, faults=faults, alike=alike, events=events, short=short)
    return differences(world)


@pytest.mark.parametrize("flavour", ["A", "B"])
@pytest.mark.parametrize("faults", [False, True], ids=["undisturbed", "disturbed"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_calls_whose_ids_begin_anew_with_each_turn_are_told_apart(flavour, faults, seed):
    assert lived(flavour, seed, faults=faults, calls="counted") == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_equal_calls_with_equal_ids_and_results_are_each_logged(seed):
    assert lived("A", seed, faults=False, calls="equal") == []
    assert lived("B", seed, faults=True, calls="equal") == []


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_short_replies_that_recur_are_each_logged(seed):
    assert lived("A", seed, faults=False, short=True) == []
    assert lived("B", seed, faults=True, short=True) == []


def test_alike_texts_with_ids_are_told_apart_though_turns_break():
    """98 of 100 such lives, as law 11 has it.

    Which of several open turns a copy is may not be clear.
    """
    assert sum(lived("B", seed, faults=True, alike=True) != [] for seed in range(100)) <= 2


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=SEEDS, again=st.sampled_from([(1, 0), (4, 1), (12, 3)]))
def test_comparing_only_the_end_of_a_list_changes_nothing(seed, again):
    kept, match_by_text._AGAIN = match_by_text._AGAIN, again
    try:
        assert lived("A", seed, faults=True, events=25) == []
    finally:
        match_by_text._AGAIN = kept
