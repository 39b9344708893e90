"""What the log holds after each of the things that a host does to its conversations, on two
simulated hosts.

A log is written down as words: ``u:x`` the user said x, ``a:x`` the agent did, ``c`` a call, ``t``
its result, ``s:x`` said into a running turn, ``n`` an undo. An exclamation mark says that no list
has shown it.
"""

from __future__ import annotations

import pytest
from capturestore import MemoryStore
from hostsim import PNG_MARK, Step, Turn, World, picture

from optchat.base.errors import StoreError
from optchat.capture.capture import OVERDUE, Capture

BOTH = pytest.mark.parametrize("flavour", ["A", "B"])
ENDS = pytest.mark.parametrize("end", ["interrupt", "error"])


def written(store, session=None):
    letters = {"user": "u:", "talk": "a:", "tool": "c", "echo": "t", "note": "n", "work": "w:"}
    words = []
    for message in store.log:
        if session is not None and message.session != session:
            continue
        letter = "s:" if message.tool == "steer" else letters[message.kind]
        words.append(
            letter + (message.text if letter[-1] == ":" else "") + ("!" if message.unshown else "")
        )
    return " ".join(words)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def life(store):
    """Start a host: the world and its first agent."""

    def start(flavour, **kwargs):
        world = World(flavour, store, **kwargs)
        return world, world.start()

    return start


def again(world, agent, *, joined=False):
    return world.start(agent.session, joined=joined)


# -- turns that end as they should, or not


@BOTH
def test_equal_words_are_each_logged(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("ok", answer="fine"))
    agent.turn(Turn("ok", answer="fine"))
    assert written(store) == "u:ok a:fine u:ok a:fine"


@BOTH
@ENDS
def test_a_broken_turn_keeps_what_the_user_said_and_not_what_the_host_says_of_it(
    life, store, flavour, end
):
    _, agent = life(flavour)
    agent.turn(Turn("x", end=end))
    agent.turn(Turn("y", answer="z"))
    assert written(store) == "u:x u:y a:z"


@BOTH
def test_half_an_answer_was_said_all_the_same(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", end="partial", answer="hal"))
    agent.turn(Turn("y", answer="z"))
    assert written(store) == "u:x a:hal u:y a:z"


@BOTH
@pytest.mark.parametrize("joined", [False, True])
def test_messages_that_look_joined_are_told_from_joined_ones(life, store, flavour, joined):
    world, agent = life(flavour)
    agent.turn(Turn("a", end="interrupt"))
    agent.turn(Turn("a\n\nb", answer="1"))
    agent.turn(Turn("b", answer="2"))
    agent.exit()
    again(world, agent, joined=joined).exit()
    assert written(store) == "u:a u:a\n\nb a:1 u:b a:2"


@BOTH
@ENDS
def test_the_calls_of_a_broken_turn_stand_before_what_is_said_next(life, store, flavour, end):
    _, agent = life(flavour)
    agent.turn(Turn("x", [Step()], end=end))
    agent.turn(Turn("y", answer="z"))
    assert written(store) == "u:x c t u:y a:z"


@BOTH
def test_white_space_is_a_message_too(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("   ", answer="1"))
    agent.turn(Turn("   ", end="interrupt"))
    agent.turn(Turn("z", answer="2"))
    # Joined to the next message it leaves no trace but, on one host, its id.
    assert written(store) == f"u:    a:1 u:   {'' if flavour == 'B' else '!'} u:z a:2"


@BOTH
def test_an_empty_answer_is_none(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", end="empty"))
    agent.turn(Turn("y", answer="z"))
    assert written(store) == "u:x u:y a:z"


@BOTH
@pytest.mark.parametrize("end", ["ok", "interrupt"])
@pytest.mark.parametrize("restart", [False, True])
def test_a_picture_is_its_words_and_a_mark(life, store, flavour, end, restart):
    world, agent = life(flavour)
    agent.turn(Turn(picture("look"), end=end, answer="nice"))
    if restart:
        agent.exit()
        agent = again(world, agent)
    agent.turn(Turn("z", answer="a"))
    answer = " a:nice" if end == "ok" else ""
    assert written(store) == f"u:look\n{PNG_MARK}{answer} u:z a:a"
    assert "base64" not in written(store)


@BOTH
def test_a_picture_stands_once_where_its_process_died_before_any_hook_showed_it(
    life, store, flavour
):
    world, agent = life(flavour)
    agent.turn(Turn(picture("look"), end="die"))
    agent = again(world, agent)
    agent.turn(Turn("z", answer="a"))
    agent.exit()
    said = [message.text for message in store.log if message.kind == "user"]
    assert len(said) == 2
    assert said[0].startswith("look")
    assert said[1] == "z"


@BOTH
def test_a_steer_stands_where_it_reached_the_agent(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", [Step(steer="to the left")], answer="a"))
    assert written(store) == "u:x c t s:to the left a:a"


@BOTH
def test_a_steer_on_an_older_result_belongs_to_the_running_turn(life, store, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], answer="1"))
    agent.turn(Turn("y", answer="2", before="wait"))
    expected = "u:x c t a:1 u:y s:wait a:2" if not world.named else "u:x c t a:1 u:y a:2"
    assert written(store) == expected


@BOTH
def test_one_turn_may_be_steered_twice_alike(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", [Step(steer="go on"), Step(steer="go on")], answer="a"))
    agent.turn(Turn("y", answer="b"))
    assert written(store) == "u:x c t s:go on c t s:go on a:a u:y a:b"


@BOTH
def test_a_hook_that_comes_late_is_not_taken_for_the_next_turn(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", answer="1", late=True))
    agent.turn(Turn("y", answer="2"))
    agent.turn(Turn("y", answer="3", late=True))
    agent.turn(Turn("y", answer="4"))
    assert written(store) == "u:x a:1 u:y a:2 u:y a:3 u:y a:4"


# -- deaths


def test_a_turn_that_is_kept_only_after_it_is_over_is_said_once(store):
    """The disk hung while the turn began, and the host did not wait for it."""
    capture = Capture(store, session="s")
    shown = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}]
    begin = store.begin

    def begin_late(draft):
        capture.turn_ended(shown, "x")
        begin(draft)

    store.begin = begin_late
    capture.turn_started("x")
    store.begin = begin
    capture.turn_started("y")
    capture.turn_ended(
        [*shown, {"role": "user", "content": "y"}, {"role": "assistant", "content": "b"}], "y"
    )
    capture.shutdown()
    assert written(store) == "u:x a:a u:y a:b"


def test_a_turn_that_is_kept_after_its_list_could_not_be_logged_is_not_lost(store):
    capture = Capture(store, session="s")
    begin = store.begin

    def begin_late(draft):
        store.broken = True
        with pytest.raises(StoreError):
            capture.turn_ended(
                [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}], "x"
            )
        store.broken = False
        begin(draft)

    store.begin = begin_late
    capture.turn_started("x")
    capture.shutdown()
    assert written(store) == "u:x!"


@BOTH
def test_what_was_said_to_a_process_that_died_before_saving_it_is_kept(life, store, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="1"))
    agent.turn(Turn("lost", end="die_unsaved"))
    agent = again(world, agent)
    agent.turn(Turn("z", answer="2"))
    assert written(store) == "u:x a:1 u:lost! u:z a:2"


@BOTH
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("deaths", [1, 2])
def test_what_was_said_before_a_death_is_logged_once(life, store, flavour, deaths, joined):
    world, agent = life(flavour)
    for number in range(deaths):
        agent.turn(Turn(f"x{number}", end="die"))
        agent = again(world, agent, joined=joined)
    agent.turn(Turn("z", answer="a"))
    assert written(store) == " ".join([f"u:x{number}" for number in range(deaths)] + ["u:z a:a"])


@BOTH
@pytest.mark.parametrize("end", ["die_unsaved", "die"])
def test_after_a_death_no_turn_need_come(life, store, flavour, end):
    world, agent = life(flavour)
    agent.turn(Turn("x", end=end))
    again(world, agent).exit()
    assert written(store).rstrip("!") == "u:x"
    again(world, agent).exit()
    assert written(store).rstrip("!") == "u:x"


@BOTH
def test_an_answer_that_no_hook_could_show_before_a_death_comes_with_the_next_list(
    life, store, flavour
):
    world, agent = life(flavour)
    agent.turn(Turn("x", [Step()], answer="a", end="die_answered"))
    agent = again(world, agent)
    agent.turn(Turn("y", answer="b"))
    assert written(store) == "u:x c t a:a u:y a:b"


def test_nobody_comes_back_to_a_session_so_another_one_writes_down_its_turn(store):
    world = World("A", store)
    lost = world.start()
    lost.turn(Turn("x", end="die"))
    world.start().exit()
    assert written(store) == ""

    store.time += OVERDUE
    world.start().exit()

    assert written(store, lost.session) == "u:x!"
    again(world, lost).exit()
    assert written(store, lost.session) == "u:x!", "the list that shows it later adds nothing"


# -- undo, branch, new sessions


@BOTH
def test_an_undo_takes_nothing_out_and_the_same_words_count_again(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", answer="a"))
    agent.undo()
    agent.turn(Turn("x", answer="a"))
    assert written(store) == "u:x a:a n u:x a:a"


@BOTH
def test_an_undo_of_several_turns_logs_none_of_them_again(life, store, flavour):
    _, agent = life(flavour)
    for text in ("1", "2", "3"):
        agent.turn(Turn(text, answer=f"a{text}"))
    agent.undo(2)
    agent.turn(Turn("4", answer="a4"))
    agent.exit()
    assert written(store) == "u:1 a:a1 u:2 a:a2 u:3 a:a3 n u:4 a:a4"


@BOTH
def test_a_turn_that_broke_and_was_taken_back_was_said_all_the_same(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", answer="a"))
    agent.turn(Turn("y", end="interrupt"))
    agent.undo()
    agent.turn(Turn("z", answer="b"))
    assert written(store) == "u:x a:a u:y! n u:z a:b"


@BOTH
@pytest.mark.parametrize("joined", [False, True])
def test_what_an_undo_took_along_comes_back_from_the_database_once(life, store, flavour, joined):
    """The host had joined it to the message that was taken back, and keeps it in a row of
    its own.
    """
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="a"))
    agent.turn(Turn("lost", end="die"))
    agent = again(world, agent)
    agent.turn(Turn("y", end="interrupt"))
    agent.undo()
    agent.turn(Turn("z", end="empty"))
    agent = again(world, agent, joined=joined)
    agent.turn(Turn("w", answer="b"))
    agent.exit()
    assert written(store).replace("!", "") == "u:x a:a u:lost u:y n u:z u:w a:b"


@BOTH
def test_a_broken_turn_goes_along_into_a_branch(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", end="interrupt"))
    agent.branch()
    agent.turn(Turn("y", answer="a"))
    assert written(store) == "u:x u:y a:a"


@BOTH
def test_both_ends_of_a_branch_go_on(life, store, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="a"))
    old = agent.branch()
    agent.turn(Turn("y", answer="b"))
    agent.exit()
    world.start(old).turn(Turn("z", answer="c"))
    assert written(store) == "u:x a:a u:y a:b u:z a:c"
    assert written(store, old) == "u:x a:a u:z a:c"


@BOTH
def test_a_new_session_gives_up_the_turn_of_the_old_one(life, store, flavour):
    _, agent = life(flavour)
    agent.turn(Turn("x", end="interrupt"))
    agent.new()
    agent.turn(Turn("x", answer="a"))
    assert written(store).replace("!", "") == "u:x u:x a:a"
    assert len({message.session for message in store.log}) == 2


@BOTH
def test_a_session_resumed_by_another_agent_is_not_logged_again(life, store, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("x", answer="a"))
    first = agent.session
    agent.new()
    agent.turn(Turn("y", answer="b"))
    agent.resume(first)
    agent.turn(Turn("z", answer="c"))
    agent.exit()
    assert written(store) == "u:x a:a u:y a:b u:z a:c"
    assert written(store, first) == "u:x a:a u:z a:c"
    assert [session for session in world.rows if written(store, session)] == ["s1", "s2"]


@BOTH
def test_an_agent_made_anew_while_the_old_one_lives_changes_nothing(life, store, flavour):
    world, old = life(flavour)
    old.turn(Turn("x", answer="a"))
    new = again(world, old)
    new.turn(Turn("y", answer="b"))
    old.exit()
    new.exit()
    assert written(store) == "u:x a:a u:y a:b"


# -- compression


@BOTH
@pytest.mark.parametrize("rotate", [False, True])
def test_the_same_words_are_counted_across_a_compression_and_a_restart(
    life, store, flavour, rotate
):
    world, agent = life(flavour, rotate=rotate)
    for _ in range(5):
        agent.turn(Turn("ok", answer="fine"))
    agent.compress()
    agent.turn(Turn("ok", answer="fine"))
    agent = again(world, agent)
    agent.turn(Turn("ok", answer="fine"))
    assert written(store) == " ".join(["u:ok a:fine"] * 7)


@BOTH
@pytest.mark.parametrize("rotate", [False, True])
def test_a_turn_may_be_compressed_in_its_middle(life, store, flavour, rotate):
    _, agent = life(flavour, rotate=rotate)
    for _ in range(5):
        agent.turn(Turn("ok", answer="fine"))
    agent.turn(Turn("ok", [Step(compress=True), Step(compress=True)], answer="fine"))
    assert written(store) == " ".join(["u:ok a:fine"] * 5) + " u:ok c t c t a:fine"


@BOTH
@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("text", ["ok", "something else"])
def test_a_host_may_compress_before_it_announces_a_turn(life, store, flavour, rotate, text):
    _, agent = life(flavour, rotate=rotate)
    for _ in range(5):
        agent.turn(Turn("ok", answer="fine"))
    agent.turn(Turn(text, [Step()], answer="1", preflight=True))
    agent.turn(Turn(text, answer="2", preflight=True))
    agent.exit()
    assert written(store) == " ".join(["u:ok a:fine"] * 5) + f" u:{text} c t a:1 u:{text} a:2"


@BOTH
@pytest.mark.parametrize("keep", [1, 2, 3, 4, 5, 6])
def test_a_summary_is_not_speech_wherever_it_is_put(life, store, flavour, keep):
    world, agent = life(flavour, keep=keep)
    for number in range(6):
        agent.turn(Turn(f"x{number}", [Step()] if number % 2 else [], answer=f"a{number}"))
    agent.compress()
    agent.turn(Turn("y", answer="b"))
    agent.exit()
    again(world, agent).exit()
    pairs = [f"u:x{number} {'c t ' if number % 2 else ''}a:a{number}" for number in range(6)]
    assert written(store) == " ".join([*pairs, "u:y a:b"])


def test_a_summary_glued_to_a_real_message_brings_nothing_new(store):
    capture = Capture(store, session="s")
    capture.turn_started("x")
    real = [
        {"role": "user", "content": "x", "message_uid": "1"},
        {"role": "assistant", "content": "a", "message_uid": "2"},
        {"role": "user", "content": "y", "message_uid": "3"},
    ]
    capture.turn_ended(real[:2], "x")
    capture.turn_started("y")
    capture.list_seen(real)
    glued = (
        "[PRIOR CONTEXT — for reference only; not a new message]\ny\n\n[END OF PRIOR CONTEXT "
        "— COMPACTION SUMMARY BELOW]\n\n"
        "[CONTEXT COMPACTION — REFERENCE ONLY] They talked.\n\n"
        "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
    )
    capture.turn_ended(
        [{**real[2], "content": glued}, {"role": "assistant", "content": "b", "message_uid": "4"}],
        "y",
    )
    assert written(store) == "u:x a:a u:y a:b"


@BOTH
def test_a_restart_in_the_middle_of_fifty_messages_adds_only_what_is_new(life, store, flavour):
    world, agent = life(flavour)
    for number in range(25):
        agent.turn(Turn(f"x{number}", answer=f"a{number}"))
    before = written(store)
    agent = again(world, agent)
    agent.turn(Turn("y", [Step()], answer="b"))
    assert written(store) == f"{before} u:y c t a:b"


@BOTH
def test_a_list_that_is_shown_again_adds_nothing(life, store, flavour):
    world, agent = life(flavour)
    agent.turn(Turn("ok", [Step()], answer="fine"))
    agent.turn(Turn("ok", answer="fine"))
    before = written(store)
    for _ in range(3):
        agent.capture.ended(world.shown(agent.live))
    agent.exit()
    for _ in range(3):
        again(world, agent).exit()
    assert written(store) == before


def test_a_secret_masked_in_another_way_is_no_new_message(life, store):
    world, agent = life("B")
    agent.turn(Turn("my key is sk-abc", answer="keep it"))
    for number in range(6):
        agent.turn(Turn(f"x{number}", answer="y"))
    again(world, agent).exit()
    assert sum("my key" in message.text for message in store.log) == 1
    assert len(store.log) == 14


# -- who said it, and when


@pytest.mark.parametrize("told", ["before", "after", "both"])
def test_everybody_s_words_are_their_own(store, told):
    capture = Capture(store, session="group", platform="telegram")
    messages = []
    for number, author in enumerate(("Maria", "Otto", "Maria")):
        messages += [
            {"role": "user", "content": f"x{number}"},
            {"role": "assistant", "content": f"a{number}"},
        ]
        capture.turn_started(f"x{number}", author if told != "after" else "")
        capture.turn_ended(messages, f"x{number}", author if told != "before" else "")
    assert [(m.text, m.author) for m in store.log if m.kind == "user"] == [
        ("x0", "Maria"),
        ("x1", "Otto"),
        ("x2", "Maria"),
    ]
    assert {m.author for m in store.log if m.kind == "talk"} == {""}
    assert {m.platform for m in store.log} == {"telegram"}


def test_a_message_is_dated_when_it_was_said_and_not_when_a_list_showed_it(store):
    capture = Capture(store, session="s")
    said = store.now()
    capture.turn_started("x")
    store.time = store.time.replace(hour=20)
    capture.turn_ended(
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}], "x"
    )
    assert store.log[0].date[:16] == said.isoformat()[:16]
    assert store.log[1].date[11:13] == "20"


@pytest.mark.parametrize(
    "stamp", [float("nan"), float("inf"), -1e300, 1e300, True, "yesterday", None, {}]
)
def test_a_host_s_clock_may_hold_anything(store, stamp):
    capture = Capture(store, session="s")
    capture.turn_started("x")
    capture.turn_ended(
        [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "a", "timestamp": stamp},
        ],
        "x",
    )
    assert written(store) == "u:x a:a"


# -- trouble


def test_a_write_that_failed_is_made_good_by_the_next_one(store):
    capture = Capture(store, session="s")
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}]
    capture.turn_started("x")
    store.broken = True
    with pytest.raises(StoreError):
        capture.turn_ended(messages, "x")
    store.broken = False
    messages += [{"role": "user", "content": "y"}, {"role": "assistant", "content": "b"}]
    capture.turn_started("y")
    capture.turn_ended(messages, "y")
    assert written(store) == "u:x a:a u:y a:b"


def test_what_another_instance_wrote_meanwhile_is_read_before_writing(store):
    one, other = Capture(store, session="s"), Capture(store, session="s")
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}]
    one.turn_started("x")
    store.intruder = lambda: other.list_seen(messages)
    one.turn_ended(messages, "x")
    assert written(store) == "u:x a:a"


def test_a_session_that_others_write_to_without_end_is_given_up_with_words(store):
    capture = Capture(store, session="s")

    def intrude():
        other = Capture(store, session="s")
        other.list_seen(
            [
                {"role": "user", "content": f"x{len(store.log)}"},
                {"role": "assistant", "content": f"a{len(store.log)}"},
            ]
        )
        store.intruder = intrude

    store.intruder = intrude
    with pytest.raises(StoreError, match="other processes keep writing"):
        capture.list_seen([{"role": "assistant", "content": "hello"}])


@pytest.mark.parametrize(
    "messages",
    [
        None,
        "text",
        {},
        [None, 3, "x", [], {}],
        [
            {"role": None},
            {"role": "user"},
            {"role": "user", "content": None},
            {"role": "user", "content": {}},
        ],
        [
            {"role": "assistant", "tool_calls": "x"},
            {"role": "assistant", "tool_calls": [None, {}, {"function": 3}]},
            {"role": "tool"},
        ],
    ],
)
def test_a_list_of_any_shape_is_survived(store, messages):
    capture = Capture(store, session="s")
    capture.turn_started("x")
    capture.turn_ended(messages, "x")
    capture.list_seen(messages)
    capture.shutdown()
    assert [message.text for message in store.log if message.kind == "user"] == ["x"]


def test_the_text_of_the_user_alone_is_logged_though_the_host_frames_it(store):
    capture = Capture(store, session="s")
    fence = (
        "<memory-context>\n[System note: The following is recalled memory context, NOT new user "
        "input.]\n\n12 line\n</memory-context>"
    )
    skill = (
        '[IMPORTANT: The user has invoked the "tidy" skill, indicating they want you to '
        "follow its instructions.]\n\nTidy up.\n\n"
        "The user has provided the following instruction alongside the skill invocation: "
        "hello\n\n[Runtime note: today]"
    )
    capture.turn_started(f"{skill}\n\n{fence}")
    capture.turn_ended(
        [
            {"role": "user", "content": f"{skill}\n\n{fence}"},
            {"role": "assistant", "content": "hi"},
        ],
        f"{skill}\n\n{fence}",
    )
    assert written(store) == "u:hello a:hi"


def test_a_turn_without_a_hook_before_it_is_logged_as_well(store):
    capture = Capture(store, session="s")
    capture.turn_ended(
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}], "x"
    )
    assert written(store) == "u:x a:a"
    capture.turn_ended(
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": "a"}], "x"
    )
    assert written(store) == "u:x a:a"
