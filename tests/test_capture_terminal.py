"""What people have done in a terminal, each life once.

Whatever a host shows afterwards, nothing is logged twice or in another place.

A log is written down as in ``test_capture.py``, and with ``sessions`` as the words said in each of
them.
"""

from __future__ import annotations

import pytest
from capturestore import MemoryStore
from hostsim import Step, Turn, World, picture
from lives import differences
from test_capture import written

from optchat.capture.capture import Capture
from optchat.hermes.session import Session

BOTH = pytest.mark.parametrize("flavour", ["A", "B"])
ENDS = pytest.mark.parametrize("end", ["interrupt", "error"])


@pytest.fixture
def life():
    """Start a host: the world and its first agent.

    When the test is over, the log must be what was said, each in its session.
    """
    worlds = []

    def start(flavour, **kwargs):
        worlds.append(World(flavour, MemoryStore(), **kwargs))
        return worlds[-1], worlds[-1].start()

    yield start
    for world in worlds:
        assert differences(world) == []


def closed(world):
    """Open every session once more, and close it: what a database gives back is shown as well."""
    for session in list(world.rows):
        world.start(session).exit()


def said(world, session):
    return written(world.store, session)


# -- the list at exit


@BOTH
@pytest.mark.parametrize("unordered", [False, True])
def test_the_old_list_handed_after_new_is_no_news(life, flavour, unordered):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], answer="1"))
    agent.turn(Turn("y", answer="2"))
    agent.new()
    agent.exit_unordered(own=True) if unordered else agent.exit(own=True)
    assert said(world, "s1") == "u:x c t a:1 u:y a:2"
    assert said(world, "s2") == ""
    closed(world)


@BOTH
def test_the_new_session_s_list_handed_under_the_first_is_no_news(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="1"))
    agent.new()
    agent.turn(Turn("y", answer="2"))
    agent.resume("s1", joined=True)
    agent.exit(own=True)
    assert said(world, "s1") == "u:x a:1"
    assert said(world, "s2") == "u:y a:2"
    closed(world)


@BOTH
@ENDS
def test_a_broken_turn_of_the_old_list_belongs_to_its_session(life, flavour, end):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("y", [Step()], end=end))
    agent.new()
    agent.exit(own=True)
    closed(world)


@BOTH
def test_the_same_words_after_new_are_said_again(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("ok", answer="done"))
    agent.new()
    agent.turn(Turn("ok", answer="done"))
    agent.exit(own=True)
    assert said(world, "s1") == said(world, "s2") == "u:ok a:done"
    closed(world)


@BOTH
def test_a_list_from_before_a_compression_is_no_news_at_exit(life, flavour):
    world, agent = life(flavour)
    for number in range(6):
        agent.turn(Turn(f"x{number}", [Step()], answer=f"a{number}"))
    agent.compress()
    agent.exit(own=True)
    closed(world)


# -- copies


@BOTH
@pytest.mark.parametrize("uids", [False, True])
@pytest.mark.parametrize("gateway", [False, True])
@pytest.mark.parametrize("witness", [False, True])
def test_a_branch_that_no_hook_tells_of_logs_only_what_is_new(
    life, flavour, uids, gateway, witness
):
    world, agent = life(flavour, witness=witness)
    agent.turn(Turn("x", [Step()], answer="1"))
    agent.turn(Turn("y", answer="2"))
    agent.vanish()
    child = world.start(world.copy("s1", uids=uids), gateway=gateway)
    child.turn(Turn("z", answer="3"))
    child.exit(own=True)
    assert said(world, "s1") == "u:x c t a:1 u:y a:2"
    assert said(world, "s2") == "u:z a:3"
    closed(world)


@BOTH
@pytest.mark.parametrize("uids", [False, True])
def test_the_same_words_in_a_silent_branch_are_said_again(life, flavour, uids):
    world, agent = life(flavour)
    agent.turn(Turn("ok", answer="done"))
    agent.turn(Turn("ok", answer="done"))
    agent.vanish()
    child = world.start(world.copy("s1", uids=uids), gateway=True)
    child.turn(Turn("ok", answer="done"))
    child.exit(own=True)
    assert said(world, "s2") == "u:ok a:done"
    closed(world)


@BOTH
@ENDS
@pytest.mark.parametrize("uids", [False, True])
def test_a_broken_turn_is_there_once_in_a_silent_branch(life, flavour, end, uids):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("y", [Step()], end=end))
    agent.vanish()
    child = world.start(world.copy("s1", uids=uids))
    child.turn(Turn("z", answer="2"))
    child.exit()
    closed(world)


@BOTH
@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("gateway", [False, True])
def test_a_compression_that_no_hook_tells_of_logs_nothing(life, flavour, rotate, gateway):
    world, agent = life(flavour)
    for number in range(6):
        agent.turn(Turn(f"x{number}", [Step()], answer=f"a{number}"))
    agent.vanish()
    after = world.start(world.compress("s1", rotate=rotate), gateway=gateway)
    after.turn(Turn("z", answer="last"))
    after.exit()
    closed(world)


def test_a_broken_turn_of_a_silent_branch_is_not_its_origin_s(life):
    world, agent = life("A")
    agent.turn(Turn("go"))
    agent.turn(Turn("ok"))
    agent.vanish()
    world.leave_untold("s1")
    agent = world.start(world.copy("s1", uids=False))
    agent.turn(Turn("ok", end="interrupt"))
    agent.turn(Turn("go", [Step()], end="interrupt"))
    agent.exit()
    closed(world)


def test_a_silent_branch_joins_what_had_a_retry_between(life):
    world, agent = life("B")
    agent.turn(Turn("ok", end="die"))
    agent = world.start("s1")
    agent.turn(Turn("ok", answer="1"))
    agent.retry()
    agent.vanish()
    world.leave_untold("s1")
    agent = world.start(world.copy("s1", uids=False), joined=True)
    agent.turn(Turn("go", answer="2"))
    agent.exit()
    closed(world)


def test_a_silent_summary_may_end_with_turns_no_list_has_shown(life):
    world, agent = life("A")
    agent.turn(Turn("x", [Step(), Step()], answer="1"))
    agent.turn(Turn("y", end="partial", answer="2"))
    agent.turn(Turn("z", end="partial", answer="3"))
    agent.vanish()
    agent = world.start(world.compress("s1", rotate=True), gateway=True)
    agent.turn(Turn("w", answer="4"))
    agent.exit()
    closed(world)


def test_a_silent_branch_that_joins_broken_turns_is_their_session_s_list(life):
    world, agent = life("A")
    agent.turn(Turn("x", end="die_unsaved"))
    world.start("s1").turn(Turn("y", end="die"))
    agent = world.start("s1")
    agent.turn(Turn(picture("look"), end="partial", answer="1"))
    agent.vanish()
    world.leave_untold("s1")
    world.start(world.copy("s1", uids=False), joined=True, gateway=True).exit()
    closed(world)


def test_a_silent_branch_that_joins_a_masked_message_logs_nothing(life):
    world, agent = life("B")
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("log in with sk-secret1 now", end="die"))
    agent = world.start("s1", joined=True)
    agent.turn(Turn("y", answer="2"))
    agent.vanish()
    world.leave_untold("s1")
    for _ in range(3):
        world.start(world.copy("s1", uids=False), joined=True).exit()
    closed(world)


def test_a_broken_turn_is_known_in_a_silent_branch_however_it_is_masked(life):
    world, agent = life("B")
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("log in with sk-secret1 now", end="error"))
    agent.vanish()
    world.leave_untold("s1")
    for _ in range(3):
        world.start(world.copy("s1", uids=False)).exit()
    closed(world)


def test_a_broken_turn_with_a_secret_is_no_older_message(life):
    world, agent = life("B", rotate=True)
    agent.turn(Turn("ask 1", answer="1"))
    agent.turn(Turn("ask 2", answer="2"))
    agent.delegate([("task", "report")], early=True)
    agent.vanish()
    agent = world.start(world.compress("s1", rotate=True))
    agent.turn(Turn("log in with sk-secret1 now", end="interrupt"))
    agent.undo(2)
    agent.exit()
    closed(world)


# -- requests sent again


@ENDS
def test_a_broken_request_sent_again_stands_before_its_calls(life, end):
    _, agent = life("A")
    agent.turn(Turn("set it up", answer="Done."))
    agent.turn(Turn("run tests", end=end))
    agent.turn(Turn("save first", answer="Done."))
    agent.turn(Turn("run tests", [Step()], answer="passed"))
    assert (
        written(agent.world.store)
        == "u:set it up a:Done. u:run tests u:save first a:Done. u:run tests c t a:passed"
    )
    agent.exit(own=True)
    closed(agent.world)


@BOTH
@ENDS
def test_continue_that_breaks_twice_and_then_works_is_said_three_times(life, flavour, end):
    world, agent = life(flavour)
    agent.turn(Turn("continue", end=end))
    agent.turn(Turn("and y", answer="1"))
    agent.turn(Turn("continue", end=end))
    agent.turn(Turn("continue", [Step()], answer="2"))
    assert written(world.store) == "u:continue u:and y a:1 u:continue u:continue c t a:2"
    agent.exit(own=True)
    closed(world)


@BOTH
def test_the_same_words_may_break_many_times_in_a_row(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="1"))
    for _ in range(3):
        agent.turn(Turn("continue", end="interrupt"))
    agent.turn(Turn("continue", [Step()], answer="2"))
    assert written(world.store) == "u:x a:1 u:continue u:continue u:continue u:continue c t a:2"
    closed(world)


@BOTH
def test_a_saved_message_at_the_end_of_a_list_is_no_turn_to_come(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("go", end="die_unsaved"))
    agent = world.start("s1")
    agent.turn(Turn("go", answer="1", preflight=True))
    agent.turn(Turn("go", end="interrupt"))
    agent.exit()
    closed(world)


@pytest.mark.parametrize("keep", [2, 4, 6])
def test_a_turn_known_by_its_place_explains_no_other(life, keep):
    world, agent = life("A", keep=keep, rotate=True)
    agent.turn(Turn("x", [Step(), Step(), Step()], answer="1"))
    agent.turn(Turn("go", [Step()], end="error", preflight=True))
    agent.turn(Turn("go", end="interrupt"))
    agent.exit()
    closed(world)


# -- what is taken back


@BOTH
def test_an_undo_and_a_death_before_the_hook_of_its_turn_double_nothing(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], answer="1"))
    agent.turn(Turn("y", [Step()], answer="2", late=True))
    agent.undo(late=True)
    agent.crash()
    agent = world.start("s1", joined=True)
    agent.turn(Turn("z", [Step()], answer="3"))
    agent.exit()
    closed(world)


@BOTH
def test_a_turn_after_an_undo_that_dies_before_its_hook_is_there_once(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], answer="1"))
    agent.undo()
    agent.turn(Turn("y", [Step()], end="die_answered", answer="2"))
    agent = world.start("s1", joined=True)
    agent.turn(Turn("z", [Step()], answer="3"))
    agent.exit()
    closed(world)


@BOTH
def test_an_empty_answer_taken_back_leaves_the_next_turn_whole(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("y", [Step()], end="empty"))
    agent.undo()
    agent.turn(Turn("z", [Step()], answer="2"))
    agent.exit(own=True)
    closed(world)


@BOTH
def test_thanks_that_was_joined_to_the_next_message_is_there_once(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], answer="1"))
    agent.turn(Turn("Thanks…", end="interrupt"))
    agent.turn(Turn("fix it", [Step()], answer="2"))
    agent.undo()
    agent.turn(Turn("fix it all", [Step()], answer="3"))
    agent.exit(own=True)
    closed(world)


@BOTH
@pytest.mark.parametrize("end", ["ok", "interrupt", "partial", "empty"])
def test_a_message_sent_again_is_said_twice(life, flavour, end):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("y", end=end, answer="2"))
    agent.retry()
    agent.turn(Turn("z", answer="3"))
    agent.exit(own=True)
    closed(world)
    assert [m.text for m in world.store.log if m.kind == "user"] == ["x", "y", "y", "z"]


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("end", ["ok", "die", "interrupt"])
def test_half_an_answer_sent_again_comes_back_once(life, end, joined):
    world, agent = life("A")
    agent.turn(Turn("go", end="partial"))
    agent.retry()
    agent.turn(Turn("ok"))
    agent.turn(Turn("ok", end=end))
    agent.crash()
    agent = world.start("s1", joined=joined)
    agent.turn(Turn("ok"))
    agent.turn(Turn("ok"))
    agent.exit()
    closed(world)


def test_half_an_answer_sent_again_is_known_behind_a_summary(life):
    world, agent = life("A", rotate=True)
    agent.turn(Turn("go"))
    agent.turn(Turn("go", [Step(), Step(compress=True)]))
    agent.turn(Turn("ok"))
    agent.turn(Turn("go", end="partial"))
    agent.retry()
    agent.turn(Turn("ok"))
    agent.exit()
    closed(world)


def test_half_an_answer_first_shown_by_a_branch_is_known(life):
    world, agent = life("A")
    agent.turn(Turn("x", [Step()], end="die_answered", answer="1"))
    agent = world.start("s1")
    agent.retry()
    agent.vanish()
    world.leave_untold("s1")
    world.start(world.copy("s1", uids=False)).exit()
    agent = world.start("s1")
    agent.turn(Turn("y", answer="2"))
    agent.exit()
    closed(world)


def test_half_an_answer_whose_beginning_was_shown_comes_back_once(life):
    world, agent = life("A", keep=6)
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("y", [Step()], answer="2"))
    agent.turn(Turn("z", [Step(), Step(compress=True)], end="partial", answer="3"))
    agent.retry(Turn("w", answer="4"))
    agent.exit()
    closed(world)


def test_half_an_answer_a_branch_shows_belongs_to_its_origin(life):
    world, agent = life("A")
    agent.turn(Turn("ok", end="partial", answer="1"))
    agent.retry()
    agent.turn(Turn("ok", end="die_unsaved"))
    agent = world.start("s1")
    agent.branch()
    agent.exit()
    closed(world)


@BOTH
def test_a_message_edited_and_sent_again_is_there_in_both_forms(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("deploy to staging", [Step()], answer="1"))
    agent.retry(Turn("deploy to production", [Step()], answer="2"))
    agent.exit(own=True)
    spoken = [m.text for m in world.store.log if m.kind == "user"]
    assert spoken == ["deploy to staging", "deploy to production"]
    closed(world)


def test_a_masked_message_joined_to_the_next_is_no_edit(life):
    world, agent = life("B")
    for secret in range(3):
        agent.turn(Turn(f"log in with sk-secret{secret} now", end="die"))
        agent = world.start("s1")
        more = "\n\n".join(f"and look at part {part}" for part in range(secret + 2))
        agent.turn(Turn(more, answer="1", preflight=True, late=True))
        agent.turn(Turn("y", answer="2"))
    agent.exit()
    closed(world)


@BOTH
def test_new_words_of_an_edited_row_get_in(flavour):
    store = MemoryStore()
    world = World(flavour, store)
    agent = world.start()
    agent.turn(Turn("meet at noon", answer="1"))
    agent.live[0]["content"] = "meet at one o'clock sharp"
    agent.turn(Turn("y", answer="2"))
    said_ = [m.text for m in store.log if m.kind in ("user", "note")]
    assert sum("noon" in text for text in said_) >= 1
    assert sum("one o'clock sharp" in text for text in said_) == 1
    assert [m.text for m in store.log if m.kind == "talk"] == ["1", "2"]


# -- deaths and slow disks


@BOTH
@pytest.mark.parametrize("lag", [0.0, 0.011, 0.3, 2.0])
@pytest.mark.parametrize("own", [False, True])
def test_a_message_whose_row_is_dated_later_is_there_once(life, flavour, lag, own):
    world, agent = life(flavour, lag=lambda: lag)
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("y", end="die"))
    world.start("s1", joined=True).exit(own=own)
    assert said(world, "s1").rstrip("!") == "u:x a:1 u:y"
    closed(world)


@BOTH
@pytest.mark.parametrize("lag", [0.011, 2.0])
def test_the_same_words_before_and_after_a_death_are_said_twice(life, flavour, lag):
    world, agent = life(flavour, lag=lambda: lag)
    agent.turn(Turn("ok", end="die"))
    world.passes(30)
    agent = world.start("s1", joined=True)
    agent.turn(Turn("ok", answer="done"))
    agent.exit()
    assert said(world, "s1").replace("!", "") == "u:ok u:ok a:done"
    closed(world)


# -- several agents


@BOTH
def test_two_agents_that_hear_the_same_words_both_log_them(life, flavour):
    world, one = life(flavour)
    two = world.start()
    for _ in range(2):
        one.turn(Turn("ok", answer="done", late=True))
        two.turn(Turn("ok", answer="done"))
    one.exit(own=True)
    two.exit_unordered(own=True)
    assert said(world, "s1") == said(world, "s2") == "u:ok a:done u:ok a:done"
    closed(world)


@BOTH
def test_an_agent_that_is_thrown_away_costs_nothing(life, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], end="interrupt"))
    agent.vanish()
    agent = world.start("s1", gateway=True)
    agent.turn(Turn("y", answer="1"))
    agent.vanish()
    closed(world)


@BOTH
@pytest.mark.parametrize("name", ["", None])
def test_an_agent_without_a_session_logs_each_turn_once(flavour, name):
    store = MemoryStore()
    world = World(flavour, store)
    agent = world.start()
    agent.capture = Capture(store, session=name or "")
    for number in range(30):
        agent.turn(Turn(f"x{number}", answer=f"a{number}"))
    agent.exit()
    assert len(store.log) == 60
    assert len({(m.kind, m.text) for m in store.log}) == 60


@pytest.mark.parametrize("name", ["", None])
def test_two_agents_without_a_session_are_not_one(tmp_path, name):
    names = {Session(name, {"hermes_home": str(tmp_path)}).id for _ in range(2)}
    assert len(names - {""}) == 2


# -- what the host says itself


@BOTH
@pytest.mark.parametrize("odd", [None, {}, [], [None], [{}]])
def test_a_row_without_words_before_an_answer_changes_nothing(life, flavour, odd):
    world, agent = life(flavour)
    for number in range(10):
        agent.turn(Turn(f"x{number}", [Step()], answer="same", odd=[odd]))
    assert written(world.store) == " ".join(f"u:x{number} c t a:same" for number in range(10))
    agent.exit()
    closed(world)


def test_a_recovery_stands_behind_what_was_lost_though_its_list_shrinks(life):
    world, agent = life("A")
    agent.turn(Turn("x", end="die"))
    agent = world.start("s1")
    agent.turn(Turn("y", answer="1", odd=[[{}]]))
    agent.turn(Turn("z", end="die_unsaved"))
    agent = world.start("s1")
    agent.turn(Turn("", answer="2", made="recovery"))
    agent.exit()
    closed(world)


def test_white_space_joined_before_a_message_not_yet_told_is_there_once(life):
    world, agent = life("A")
    agent.turn(Turn("x", end="die"))
    agent = world.start("s1")
    agent.turn(Turn("   ", answer="1", late=True))
    agent.turn(Turn("y", answer="2", preflight=True))
    agent.exit()
    closed(world)


def test_white_space_joined_to_a_message_without_an_id_has_its_place(life):
    world, agent = life("B")
    agent.turn(Turn("x", end="die", preflight=True))
    agent = world.start("s1")
    agent.turn(Turn("   ", answer="1"))
    agent.exit()
    closed(world)


def test_white_space_taken_back_is_no_turn_of_the_host_s(life):
    world, agent = life("B")
    agent.turn(Turn("   ", answer="1", late=True))
    agent.undo(late=True)
    agent.turn(Turn("x", answer="2", made="recovery"))
    agent.exit()
    closed(world)


def test_white_space_shown_before_its_turn_is_no_older_row(life):
    world, agent = life("B", keep=6)
    agent.turn(Turn("x", [Step()], answer="1", odd=[[{}]]))
    agent.turn(Turn("y", answer="2"))
    agent.turn(Turn("z", [Step()], answer="3"))
    agent.turn(Turn("w", end="die_unsaved"))
    agent = world.start("s1")
    agent.turn(Turn("   ", answer="4", preflight=True))
    agent.exit()
    closed(world)


def test_white_space_between_broken_turns_takes_nobody_s_id(life):
    world, agent = life("B")
    agent.turn(Turn("x", end="error", preflight=True))
    agent.turn(Turn("   ", end="interrupt"))
    agent.turn(Turn("y", end="error"))
    agent.exit()
    closed(world)


def test_white_space_is_the_row_dated_by_its_turn(life):
    world, agent = life("B")
    agent.turn(Turn("x", answer="1", odd=[[{}]]))
    agent.turn(Turn("y", end="interrupt"))
    agent.turn(Turn("   ", end="interrupt"))
    agent.turn(Turn("z", end="die_answered", answer="2"))
    closed(world)


def test_an_empty_row_of_the_host_is_not_the_white_space_sent_later(life):
    world, agent = life("A")
    agent.turn(Turn("", answer="1", made="recovery"))
    old = world.start("s1")
    agent = world.start("s1")
    agent.turn(Turn("   ", [Step()], answer="2"))
    old.exit()
    closed(world)


def test_an_empty_row_behind_a_summary_hides_no_answer(life):
    world, agent = life("A")
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("y", [Step()], answer="2"))
    agent.turn(Turn("z", [Step(), Step(compress=True)], answer="3"))
    agent.turn(Turn("w", answer="4", odd=[[None]]))
    agent.turn(Turn("   ", end="interrupt"))
    agent.exit()
    closed(world)


@BOTH
@pytest.mark.parametrize("odd", [5, 1.5, True, {"a": 1}, {"type": "text"}, [[]], [1, 2], ["x"]])
def test_a_row_of_any_shape_hides_and_doubles_no_neighbour(flavour, odd):
    store = MemoryStore()
    world = World(flavour, store)
    agent = world.start()
    for number in range(3):
        agent.turn(Turn(f"x{number}", [Step()], answer=f"a{number}", odd=[odd]))
    agent.exit()
    world.start("s1").exit()
    for number in range(3):
        assert [m.text for m in store.log].count(f"x{number}") == 1
        assert [m.text for m in store.log].count(f"a{number}") == 1
    assert sum(m.kind == "tool" for m in store.log) == 3


@BOTH
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_recovery_note_is_nobody_s_words(life, flavour, wrapped):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], end="interrupt"))
    agent = world.start("s1", gateway=True)
    agent.turn(Turn("go on", answer="1", made="" if wrapped else "recovery", wrapped=wrapped))
    agent.turn(Turn("y", answer="2"))
    agent.exit()
    assert [m.text for m in world.store.log if m.kind == "user"] == (
        ["x", "go on", "y"] if wrapped else ["x", "y"]
    )
    closed(world)


@BOTH
@pytest.mark.parametrize("early", [False, True])
def test_a_report_from_the_background_is_there_once_behind_its_call(life, flavour, early):
    world, agent = life(flavour)
    agent.delegate([("look at a", "a is fine"), ("look at b", "b is not")], early=early)
    agent.turn(Turn("y", answer="2"))
    agent.exit()
    log = [m.text for m in world.store.log]
    assert sum("a is fine" in text for text in log) == sum("b is not" in text for text in log) == 1
    closed(world)


@BOTH
@pytest.mark.parametrize("end", ["ok", "interrupt", "die_answered"])
def test_a_report_inside_a_turn_stands_behind_its_call(life, flavour, end):
    world, agent = life(flavour)
    agent.turn(Turn("send two", [Step("delegate_task", reports=2)], answer="1", end=end))
    if end == "die_answered":
        agent = world.start("s1", joined=True)
    agent.turn(Turn("y", answer="2"))
    agent.exit()
    assert sum(m.kind == "work" for m in world.store.log) == 2
    closed(world)
