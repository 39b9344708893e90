"""Model calls in flight.

Their order, how one that fails is tried again, and when everything pauses.
"""

from itertools import pairwise

import pytest

from optchat.base.address import Place
from optchat.base.cost import Cost
from optchat.compaction import model_calls as module
from optchat.compaction.job import Job, Outcome
from optchat.compaction.model import CallError, ModelDownError, RestError
from optchat.compaction.model_calls import ModelCalls, Waiting
from optchat.log.rows import Ready


class World:
    """A tree whose lines are all for a model, a clock turned by hand, and calls that come back when
    they are told to.
    """

    def __init__(self, leaves=100, jobs=4):
        self.time, self.leaves, self.built, self.by = 1000.0, leaves, {}, {}
        self.calls, self.tried, self.told, self.rest, self.old = [], [], [], "", []
        self.answers = {}  # place -> what comes of it, else a line
        self.cheap = []
        self.contexts = []
        self.model_calls = ModelCalls(
            self,
            self._write,
            lambda job, by: job.node("made here", by),
            jobs=jobs,
            spawn=lambda run, _name: self.calls.append(run),
            wake=lambda: None,
            resting=lambda: self.rest,
            told=self.told.append,
            now=lambda: self.time,
        )

    # -- what the calls ask of a memory

    def waiting(self, limit):
        nodes = [
            Ready(Place(0, k), 2_000, Cost.MODEL, spare=False)
            for k in range(self.leaves)
            if Place(0, k) not in self.built
        ]
        for level in range(1, 8):
            for k in range(self.leaves >> level):
                place = Place(level, k)
                if place not in self.built and all(child in self.built for child in place.children):
                    nodes.append(Ready(place, 1_000, Cost.MODEL, spare=False))
        nodes.sort(key=lambda ready: (ready.place.end, ready.place.level))
        front = min(
            [k for k in range(self.leaves) if Place(0, k) not in self.built] + self.cheap,
            default=self.leaves,
        )
        return Waiting(nodes[:limit], front, self.cheap)

    def jobs(self, chosen):
        return [
            Job(ready.place, "user" if ready.place.level == 0 else "", ("words",), 2_000)
            for ready in chosen
        ]

    def fallbacks(self):
        return self.old

    def context(self, job, front):
        self.contexts.append((job.place, front))
        return f"up to {front}"

    # -- time goes by

    def _write(self, job, _context):
        self.tried.append(job.place)
        answer = self.answers.get(job.place, Outcome(f"line {job.place.address}"))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def begin(self):
        """What the compactor does at each step; the places begun."""
        before = set(self.model_calls._in_flight)
        self.model_calls.start()
        return [place for place in self.model_calls._in_flight if place not in before]

    def collect(self):
        """All calls come back; the lines that are kept."""
        while self.calls:
            self.calls.pop(0)()
        nodes = self.model_calls.collect()
        for node in nodes:
            place = Place(node.level, node.index)
            self.built[place] = node.text
            self.by[place] = node.by
        return nodes

    def go_on(self, seconds=0.0):
        """Step after step, a second each, until nothing is left or so many seconds are over."""
        end = self.time + (seconds or 20_000)
        while (
            self.model_calls.busy or self.begin() or self.model_calls.paused
        ) and self.time < end:
            self.collect()
            self.begin()
            self.time += 1


# -- order


def test_no_more_calls_are_made_at_once_than_there_are_jobs():
    world = World(jobs=3)
    assert world.begin() == [Place(0, k) for k in range(3)]
    assert world.begin() == []
    world.collect()
    assert len(world.begin()) == 3


def test_a_merge_is_begun_once_both_halves_are_built_and_before_newer_messages():
    world = World(jobs=2)
    world.begin()
    world.collect()
    assert world.begin() == [Place(1, 0), Place(0, 2)]


def test_a_message_is_begun_only_while_fewer_than_eight_lines_before_it_are_missing():
    world = World(jobs=16)
    assert world.begin() == [Place(0, k) for k in range(8)]


def test_lines_that_cost_nothing_and_are_missing_count_too():
    world = World(jobs=16)
    world.cheap = [0, 1, 2, 3, 50]
    world.built = {Place(0, k): "" for k in (0, 1, 2, 3)}
    assert world.begin()[:4] == [Place(1, 0), Place(1, 1), Place(0, 4), Place(0, 5)]
    assert len([place for place in world.model_calls._in_flight if place.level == 0]) == 4


def test_the_context_ends_at_the_node_and_at_the_first_message_without_a_line():
    world = World(jobs=4)
    world.begin()
    assert world.contexts == [
        (Place(0, 0), 0),
        (Place(0, 1), 0),
        (Place(0, 2), 0),
        (Place(0, 3), 0),
    ]
    world.collect()
    world.begin()
    assert (Place(1, 1), 2) in world.contexts
    assert (Place(0, 4), 4) in world.contexts


def test_the_whole_tree_is_built():
    world = World(leaves=64)
    world.go_on()
    assert len(world.built) == 127
    assert set(world.by.values()) == {"model"}
    assert len(world.tried) == 127


# -- a line that fails


@pytest.mark.parametrize(
    "what",
    [
        Outcome(reasons=("it was empty",)),
        CallError("it took too long"),
        ZeroDivisionError("a bug of ours"),
    ],
)
def test_a_line_that_always_fails_is_made_here_after_five_tries(what):
    world = World(leaves=8)
    world.answers[Place(0, 3)] = what
    at = []
    real = world._write
    world.model_calls._write = lambda job, context: (
        at.append(world.time) if job.place == Place(0, 3) else None,
        real(job, context),
    )[1]
    world.go_on()
    assert len(at) == module.TRIES
    assert all(later - earlier >= module.RETRY_S for earlier, later in pairwise(at))
    assert world.by == {
        place: "fallback" if place == Place(0, 3) else "model" for place in world.by
    }
    assert len(world.built) == 15
    assert "0+1" not in world.model_calls.last_error


def test_lines_after_one_that_fails_go_on_until_eight_are_missing():
    world = World(leaves=64, jobs=4)
    world.answers[Place(0, 0)] = Outcome(reasons=("no",))
    world.go_on(9)
    assert Place(0, 0) not in world.built
    assert all(Place(0, k) in world.built for k in range(1, 16))


def test_a_model_that_cannot_do_it_at_all_is_not_asked_five_times_for_each_line():
    world = World(leaves=64)
    world.answers = {
        Place(level, k): Outcome(reasons=("it answers the message",))
        for level in range(7)
        for k in range(64)
    }
    world.go_on()
    assert len(world.built) == 127
    assert len(world.tried) <= 127 + 2 * module.GIVE_UP_AFTER_REFUSALS
    assert "answers the message" in world.model_calls.last_error
    world.leaves = 128
    world.answers = {Place(0, 70): Outcome(reasons=("no",))}
    world.go_on()
    assert world.tried.count(Place(0, 70)) == module.TRIES


def test_a_line_that_cannot_be_had_at_all_is_made_here_at_once():
    world = World(leaves=2)
    world.answers[Place(0, 1)] = Outcome(reasons=("it invents abc1234",), final=True)
    world.go_on()
    assert world.tried.count(Place(0, 1)) == 1
    assert world.by[Place(0, 1)] == "fallback"
    assert "abc1234" in world.model_calls.last_error or world.model_calls.last_error == ""


def test_a_line_that_is_not_worth_a_models_words_is_local_by_choice():
    world = World(leaves=2)
    world.answers[Place(0, 0)] = Outcome(spare=True)
    world.begin()
    (node,) = [node for node in world.collect() if node.index == 0]
    assert (node.by, node.spare) == ("local", True)


def test_a_call_that_never_comes_back_gives_its_place_up():
    world = World(leaves=1, jobs=1)
    world.begin()
    (lost,) = world.calls
    world.calls.clear()
    world.time += module.LOST_S + 1
    assert world.model_calls.due_in() == 0
    assert world.model_calls.collect() == []
    assert "not answered" in world.model_calls.last_error
    lost()
    assert world.model_calls.collect() == []
    world.time += module.RETRY_S
    assert world.begin() == [Place(0, 0)]


def test_a_thread_that_cannot_be_started_takes_no_lane_with_it(monkeypatch):
    world = World(jobs=1)
    monkeypatch.setattr(
        world.model_calls,
        "_spawn",
        lambda *_: (_ for _ in ()).throw(RuntimeError("can't start new thread")),
    )
    with pytest.raises(RuntimeError):
        world.begin()
    monkeypatch.setattr(world.model_calls, "_spawn", lambda run, _name: world.calls.append(run))
    assert world.begin() == [Place(0, 0)]


# -- a model that cannot be had


def test_a_model_that_is_down_is_no_lines_fault():
    world = World(leaves=8)
    world.answers = {Place(0, k): ModelDownError("402: no credit left") for k in range(8)}
    world.begin()
    world.collect()
    assert world.model_calls.paused == "402: no credit left"
    assert world.told[-1] == "402: no credit left"
    assert not world.model_calls.busy
    hour = world.time + 3_600
    while world.time < hour:
        world.begin()
        world.collect()
        world.time += 1
    assert not world.built
    assert len(world.tried) <= 4 + 20
    world.answers.clear()
    world.time += 300
    world.go_on()
    assert set(world.by.values()) == {"model"}
    assert len(world.built) == 15
    assert world.model_calls.paused == ""
    assert world.told[-1] == ""


def test_probes_of_a_model_that_is_down_come_further_apart(monkeypatch):
    world = World(leaves=8)
    world.answers = {Place(0, k): ModelDownError("no connection") for k in range(8)}
    at = []
    real = world._write
    world.model_calls._write = lambda job, context: (at.append(world.time), real(job, context))[1]
    for _ in range(2_000):
        world.begin()
        world.collect()
        world.time += 1
    first, looks = at[:4], at[4:]
    assert len(set(first)) == 1
    gaps = [later - earlier for earlier, later in pairwise(looks)]
    assert gaps == sorted(gaps)
    assert max(gaps) <= 301


def test_one_warning_says_that_lines_wait_and_one_that_they_go_on(caplog):
    world = World(leaves=8)
    world.answers = {Place(0, k): ModelDownError("no connection") for k in range(8)}
    for _ in range(500):
        world.begin()
        world.collect()
        world.time += 1
    assert len(caplog.records) == 1
    world.answers.clear()
    world.time += 300
    world.go_on()
    assert [record.message for record in caplog.records][1:] == [
        "optchat: the model answers again; lines go on being written"
    ]


def test_a_model_that_fails_line_after_line_is_down():
    """A black hole answers nothing, so that each call runs out of time.

    Nothing says whose fault that is.
    """
    world = World(leaves=64)
    world.answers = {
        Place(level, k): CallError("timed out") for level in range(7) for k in range(64)
    }
    hour = world.time + 3_600
    while world.time < hour:
        world.begin()
        world.collect()
        world.time += 1
    assert "timed out" in world.model_calls.paused
    assert len(world.built) <= 8
    world.answers.clear()
    world.time += 300
    world.go_on()
    assert len(world.built) == 127


def test_a_poison_line_does_not_keep_a_model_that_answers_others_paused():
    world = World(leaves=64)
    world.answers = {Place(0, k): CallError("400: too long") for k in (0, 1, 2)}
    world.go_on(2_000)
    assert len(world.built) == 127
    assert [place for place, by in world.by.items() if by == "fallback"] == [
        Place(0, 0),
        Place(0, 1),
        Place(0, 2),
    ]


def test_a_day_whose_tokens_are_spent_ends_the_calls_until_the_next():
    world = World(leaves=8)
    world.begin()
    world.rest = "today's tokens are spent"
    assert len(world.collect()) == 4
    assert world.begin() == []
    assert world.model_calls.paused == "today's tokens are spent"
    world.time += 3_600
    assert world.begin() == []
    world.rest = ""
    world.time += 300
    assert len(world.begin()) == 1
    world.collect()
    world.go_on()
    assert len(world.built) == 15


def test_a_call_that_was_not_made_counts_as_no_attempt():
    world = World(leaves=1)
    world.answers[Place(0, 0)] = RestError("no call is made now")
    for _ in range(20):
        world.begin()
        world.collect()
        world.time += 11
    assert not world.built
    assert not world.model_calls._failed


def test_calls_that_were_out_when_it_went_down_do_not_put_the_first_look_off():
    world = World(leaves=64, jobs=8)
    world.answers = {Place(0, k): ModelDownError("429: too many calls") for k in range(64)}
    assert len(world.begin()) == 8
    world.collect()
    world.answers.clear()
    assert world.model_calls.due_in() == module.PAUSES_S[0]
    world.time += module.PAUSES_S[0]
    assert len(world.begin()) == 1
    world.collect()
    assert world.model_calls.paused == ""


def test_a_line_under_way_when_the_model_went_down_is_kept():
    world = World(leaves=64)
    world.answers = {Place(0, 0): ModelDownError("402: no credit left")}
    world.begin()
    assert [node.index for node in world.collect()] == [1, 2, 3]
    assert world.model_calls.paused == "402: no credit left"
    assert world.told == ["402: no credit left"]


def test_the_last_calls_of_a_days_budget_do_not_end_its_pause(caplog):
    world = World(leaves=64)
    world.begin()
    world.rest = "today's tokens are spent"
    for call in world.calls:
        call()
        assert len(world.model_calls.collect()) == 1
        assert world.begin() == []
    assert world.told == ["today's tokens are spent"]
    assert len(caplog.records) == 1


def test_a_call_that_takes_long_while_the_model_is_down_is_waited_for_in_peace():
    world = World(leaves=64)
    world.answers = {Place(0, 0): ModelDownError("no connection")}
    world.begin()
    world.calls[0]()
    assert world.model_calls.collect() == []
    looks, end = 0, world.time + 800
    while world.time < end:
        world.begin()
        looks += 1
        world.time += max(world.model_calls.due_in(), 0.02)
    assert looks < 20
    assert world.model_calls.busy, "what is paid for is waited for"


def test_a_call_that_hangs_keeps_nobody_from_probing_the_model():
    world = World(leaves=64)
    world.answers = {Place(0, k): ModelDownError("no connection") for k in range(64)}
    world.begin()
    hanging = world.calls.pop()
    world.collect()
    world.answers.clear()
    world.time += module.PAUSES_S[0]
    assert len(world.begin()) == 1
    assert world.begin() == []
    world.collect()
    assert world.model_calls.paused == ""
    world.go_on(30)
    hanging()
    world.go_on(2_000)
    assert len(world.built) == 127


def test_a_line_that_is_judged_not_worth_one_does_not_end_a_pause():
    """A turn may be judged by its length, without a call."""
    world = World(leaves=64)
    world.answers = {Place(0, k): ModelDownError("402: no credit left") for k in range(64)}
    world.begin()
    world.collect()
    world.answers |= {Place(0, k): Outcome(spare=True) for k in range(3)} | {
        Place(1, 0): Outcome(spare=True)
    }
    for _ in range(100):
        world.begin()
        world.collect()
        world.time += 1
    assert set(world.built) == {Place(0, 0), Place(0, 1), Place(0, 2), Place(1, 0)}
    assert "" not in world.told
    assert len(world.tried) < 16


def test_whether_it_is_back_is_asked_with_lines_that_have_not_failed():
    world = World(leaves=64)
    world.answers = {Place(0, k): CallError("400: too long") for k in range(4)}
    world.begin()
    world.collect()
    assert "400: too long" in world.model_calls.paused
    world.time += module.PAUSES_S[0]
    assert world.begin() == [Place(0, 4)]
    world.collect()
    assert world.model_calls.paused == ""


def test_an_endpoint_that_refuses_now_and_then_does_not_fill_the_log(caplog):
    world = World(leaves=100)
    real = world._write
    calls = []

    def write(job, context):
        calls.append(job.place)
        if len(calls) % 5 == 0:
            raise ModelDownError(f"cannot use tiny: it is asked too often (request {len(calls)})")
        return real(job, context)

    world.model_calls._write = write
    world.go_on(3_000)
    assert len(world.built) == 197
    assert world.told.count("") > 10
    assert len(caplog.records) == 2


# -- fallbacks


def test_a_fallback_nothing_stands_on_is_written_anew_now_and_then():
    world = World(leaves=0)
    world.old = [Ready(Place(0, 6), 0, Cost.MODEL, spare=False)]
    assert world.begin() == []
    for _ in range(2):
        world.time += module.AGAIN_S
        assert world.model_calls.due_in() == 0
        assert world.begin() == [Place(0, 6)]
        (node,) = world.collect()
        assert (node.level, node.index, node.by) == (0, 6, "model")
        assert world.begin() == []


@pytest.mark.parametrize(
    "answer",
    [
        Outcome(reasons=("empty",)),
        Outcome(reasons=("it invents",), final=True),
        CallError("400: too long"),
    ],
)
def test_a_fallback_that_fails_again_is_left_as_it_is_and_not_paid_for_for_ever(answer):
    world = World(leaves=0)
    world.old = [Ready(Place(0, 6), 0, Cost.MODEL, spare=False)]
    world.answers[Place(0, 6)] = answer
    day = world.time + 24 * module.AGAIN_S
    while world.time < day:
        world.begin()
        assert world.collect() == []
        assert not world.model_calls.busy
        world.time += max(world.model_calls.due_in(), 1)
    assert len(world.tried) == (1 if getattr(answer, "final", False) else module.FALLBACK_RETRIES)
    world.old = [Ready(Place(1, 9), 0, Cost.MODEL, spare=False)]
    world.go_on(2 * module.AGAIN_S)
    assert Place(1, 9) in world.built, "another one is not held to what this one has cost"


def test_a_fallback_is_not_asked_for_by_a_process_that_has_only_just_begun():
    """A command that runs fifty times a day would each time pay for the same line, that each time
    fails.
    """
    for _ in range(50):
        world = World(leaves=0)
        world.old = [Ready(Place(0, 6), 0, Cost.MODEL, spare=False)]
        world.go_on(60)
        assert world.tried == []


# -- doing nothing


def test_with_nothing_to_do_nothing_is_due():
    world = World(leaves=4)
    world.go_on()
    world.begin()
    assert world.model_calls.due_in() > 3_000
    assert not world.model_calls.busy


def test_a_line_another_process_has_built_is_waited_for_no_more():
    world = World(leaves=2)
    world.answers[Place(0, 1)] = Outcome(reasons=("no",))
    world.begin()
    world.collect()
    assert world.model_calls.busy
    world.built[Place(0, 1)] = "by another"
    world.built[Place(1, 0)] = "by another"
    world.time += module.RETRY_S
    world.begin()
    assert not world.model_calls.busy


def test_a_context_that_cannot_be_masked_is_not_sent_and_holds_up_nothing_else():
    world = World(leaves=4)
    world.context = lambda *_: (_ for _ in ()).throw(CallError("cannot mask the secrets of a text"))
    assert world.begin() == []
    assert "cannot mask" in world.model_calls.paused


@pytest.mark.parametrize("leaves", [8, 0])
def test_a_long_pause_is_no_busy_loop(leaves):
    world = World(leaves=leaves)
    world.rest = "today's tokens are spent"
    looks = 0
    end = world.time + 10_000
    while world.time < end:
        world.begin()
        looks += 1
        world.time += max(world.model_calls.due_in(), 0.02)
    assert looks < 50
    world.rest = ""
    world.leaves = 0
    while world.time < end + 10_000:
        world.begin()
        looks += 1
        world.time += max(world.model_calls.due_in(), 0.02)
    assert looks < 100
