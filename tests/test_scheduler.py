"""The thread that grows the tree.

What it takes, how it fails, when it rests, and who does its work when it is gone.
"""

import threading
import time

import faults
import pytest
from children import children
from soundness import assert_sound

from optchat.base.address import Place
from optchat.base.errors import OptchatError, StoreError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.compaction import local
from optchat.compaction import scheduler as module
from optchat.compaction.job import Job
from optchat.compaction.scheduler import Compactor
from optchat.log import files
from optchat.log.fulltext import Search


def until(condition, timeout_s=20):
    """Wait for something that is bound to happen."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def leaf(number, text="a text", kind="user"):
    return Job(Place(0, number), kind, (text,), len(f"{kind}: {text}".encode()))


class FakeWork:
    """Jobs by hand, and a list of what was committed."""

    def __init__(self, jobs=()):
        self.jobs = list(jobs)
        self.commits, self.rests, self.searchable, self.changes = [], 0, 0, 0
        self.failing = {}

    def _meets(self, name):
        if error := self.failing.get(name):
            raise error

    def take(self, nodes, bytes_, costs):
        self._meets("take")
        return self.jobs[:nodes]

    def commit(self, nodes):
        self._meets("commit")
        self.commits.append(nodes)
        done = {(node.level, node.index) for node in nodes}
        self.jobs = [job for job in self.jobs if tuple(job.place) not in done]

    def extend_search(self, bytes_):
        self._meets("search")
        self.searchable -= 1
        return self.searchable >= 0

    def rest(self):
        self.rests += 1

    def version(self):
        self._meets("version")
        return self.changes

    @property
    def built(self):
        return [node for commit in self.commits for node in commit]


@pytest.fixture
def lock(tmp_path):
    return files.Lock(tmp_path / "compactor.lock")


@pytest.fixture
def run(lock):
    """Starts compactors over some work and stops them."""
    started = []

    def start(work, **options):
        one = Compactor(work, files.Lock(lock.path), **options)
        started.append(one)
        one.start()
        return one

    yield start
    for one in started:
        one.stop()
        assert not one._thread.is_alive()


# -- lines


def test_a_short_source_is_its_own_line_and_a_long_one_a_local_line(lock):
    long = " ".join(f"word{k}" for k in range(400))
    work = FakeWork(
        [
            leaf(0, "ü" * 100),
            leaf(1, long),
            Job(Place(1, 1), "", ("user: a", "talk: b"), 15),
            Job(Place(1, 2), "", (long, long), 9999),
        ]
    )
    assert Compactor(work, lock, 256).step()
    first, second, third, fourth = work.built
    assert (first.text, first.by) == ("user: " + "ü" * 100, "free")
    assert second.by == fourth.by == "local"
    assert (third.text, third.by) == ("user: a\ntalk: b", "free")
    assert all(len(node.text.encode()) <= 256 for node in work.built)


@pytest.mark.parametrize("limit", [64, 24, 23])
def test_a_secret_in_a_short_source_stays_out_of_its_line(lock, limit):
    secret = "q7Lm3Kp5Rt8Yv2Nb4Hc6Jd1Fg0SaZx9Qw7Lm3Kp5Rt8Yv2"
    call, told = leaf(0, f'{{"api_key": "{secret}"}}', kind="echo"), leaf(1, "password: x12")
    work = FakeWork([call, told, Job(Place(1, 0), "", ("user: password: x12", "talk: ok"), 27)])
    Compactor(work, lock, limit).step()
    assert [node.text for node in work.built if secret in node.text or "x12" in node.text] == []
    assert all(0 < len(node.text.encode()) <= limit for node in work.built)
    assert len(work.built) == 3


def test_a_message_without_a_kind_is_a_leaf_like_any_other(lock):
    work = FakeWork([leaf(0, "short", kind=""), leaf(1, "long " * 500, kind="")])
    Compactor(work, lock).step()
    assert work.built[0].text == ": short"
    assert work.built[1].by == "local"


def test_a_size_that_the_index_has_wrong_makes_no_line_too_long(lock):
    work = FakeWork(
        [Job(Place(0, 0), "user", ("x" * 5_000,), 10), Job(Place(0, 1), "user", ("x",), 10_000)]
    )
    Compactor(work, lock).step()
    assert len(work.built[0].text.encode()) <= 512
    assert work.built[1].by == "free"


def test_a_text_the_summarizer_stumbles_over_does_not_stop_what_comes_after_it(lock, monkeypatch):
    monkeypatch.setattr(local, "leaf_line", lambda *_: 1 / 0)
    work = FakeWork([leaf(0, "ü" * 5_000), leaf(1)])
    Compactor(work, lock).step()
    assert [node.by for node in work.built] == ["fallback", "free"]
    assert len(work.built[0].text.encode()) <= 512


def test_many_lines_are_one_commit(lock):
    work = FakeWork([leaf(k) for k in range(200)])
    assert Compactor(work, lock).step()
    assert [len(commit) for commit in work.commits] == [200]


def test_with_compaction_off_only_free_lines_are_asked_for(opened):
    memory = opened(settings=Settings(compact_enabled=False))
    memory.record(
        [
            Entry(kind="user", text="short"),
            Entry(kind="echo", text="long " * 500),
            *[Entry(kind="user", text="short")] * 6,
        ]
    )
    assert memory.settle(30)
    assert memory.store.read(lambda index: index.count("nodes")) == 7 + 3 + 1
    assert "not summarized yet" in memory.view()
    assert_sound(memory)


def test_a_failure_is_reported_once_tried_again_and_forgotten_when_it_is_over(
    run, monkeypatch, caplog
):
    monkeypatch.setattr(module, "RETRY_S", (0.01,))
    work = FakeWork([leaf(0)])
    work.failing["commit"] = StoreError("cannot append to tree: No space left on device")
    one = run(work)
    until(lambda: one.failures > 3)
    assert "No space left" in one.last_error
    assert (
        len([record for record in caplog.records if "building lines failed" in record.message]) == 1
    )
    del work.failing["commit"]
    until(lambda: work.built)
    until(lambda: one.last_error == "" and one.failures == 0)


@pytest.mark.parametrize("where", ["take", "commit", "search", "version"])
def test_no_failure_of_any_kind_ends_the_thread(run, monkeypatch, where):
    monkeypatch.setattr(module, "RETRY_S", (0.01,))
    work = FakeWork([leaf(0)])
    work.failing[where] = RuntimeError("a bug of ours")
    one = run(work)
    until(lambda: one.failures > 1)
    work.failing.clear()
    work.changes += 1
    until(lambda: work.built)
    assert one._thread.is_alive()


def test_failures_are_not_tried_again_at_every_message(run):
    work = FakeWork([leaf(0)])
    work.failing["take"] = StoreError("the disk is full")
    one = run(work)
    until(lambda: one.failures == 1)
    for _ in range(50):
        one.nudge()
        time.sleep(0.002)
    assert one.failures <= 2


def test_a_lock_that_cannot_be_used_is_no_busy_loop(run, lock):
    lock.path.mkdir()
    one = run(FakeWork([leaf(0)]))
    one.nudge()
    until(lambda: one.failures >= 1)
    one.nudge()
    time.sleep(0.2)
    assert one.failures <= 2
    assert "cannot lock" in one.last_error


def test_a_full_text_that_fails_does_not_hold_up_the_tree(lock):
    work = FakeWork([leaf(0)])
    work.failing["search"] = StoreError("cannot use search.sqlite")
    one = Compactor(work, lock)
    assert one.step()
    assert work.built
    assert "search.sqlite" in one.last_error
    with pytest.raises(StoreError):
        one.step()


def test_a_thread_that_died_is_started_again_by_the_next_message(run):
    work = FakeWork()
    one = run(work)
    until(lambda: one.owner)

    class Gone(BaseException):
        pass

    threading.excepthook, hook = (lambda _args: None), threading.excepthook
    try:
        work.failing["version"] = Gone("it was ended from outside")
        one.nudge()
        work.failing["take"] = Gone("it was ended from outside")
        until(lambda: not one._thread.is_alive())
    finally:
        threading.excepthook = hook
    assert "ended from outside" in one.last_error
    work.failing.clear()
    assert not one.owner
    work.jobs = [leaf(0)]
    one.nudge()
    until(lambda: work.built)
    until(lambda: not one.last_error)


# -- resting


def test_nothing_to_do_is_done_without_turning_in_circles(run):
    work = FakeWork([leaf(0)])
    one = run(work)
    until(lambda: work.rests)
    calls = []
    work.take = lambda *_args, **_options: calls.append(1) or []
    began = time.process_time()
    one.nudge()
    time.sleep(0.5)
    assert len(calls) <= 2
    assert time.process_time() - began < 0.2


def test_who_has_not_the_lock_does_not_turn_in_circles_when_something_is_said(run):
    first = run(FakeWork())
    until(lambda: first.owner)
    second = run(FakeWork([leaf(0)]))
    tries = []
    real = second._lock.acquire
    second._lock.acquire = lambda timeout_s: tries.append(1) or real(timeout_s)
    second.nudge()
    time.sleep(0.5)
    assert len(tries) <= 3


def test_who_has_not_the_lock_takes_over_when_the_owner_stops(run):
    first = run(FakeWork())
    until(lambda: first.owner)
    work = FakeWork([leaf(0)])
    second = run(work)
    time.sleep(0.05)
    assert not work.built
    first.stop()
    until(lambda: work.built, timeout_s=5)
    assert second.owner


def test_it_gives_way_to_a_turn_but_not_for_ever(run, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.4)
    work = FakeWork()
    one = run(work)
    until(lambda: work.rests)
    work.jobs = [leaf(0)]
    began = time.monotonic()
    while not work.built and time.monotonic() - began < 10:
        one.nudge()
        time.sleep(0.01)
    assert 0.2 < time.monotonic() - began < 3


def test_it_stops_in_the_middle_of_much_work(run):
    work = FakeWork([leaf(k, "some words " * 5_000) for k in range(2_000)])
    one = run(work)
    until(lambda: work.commits)
    began = time.monotonic()
    one.stop()
    assert time.monotonic() - began < 2
    assert work.jobs


def test_it_does_not_start_again_once_it_was_stopped(run):
    one = run(FakeWork())
    one.stop()
    one.nudge()
    one.start()
    assert not one._thread.is_alive()


def test_the_work_can_be_done_by_who_waits_for_it(lock):
    work = FakeWork([leaf(k) for k in range(5)])
    one = Compactor(work, lock)
    steps = []
    assert one.run_here(lambda: True, on_step=lambda: steps.append(1))
    assert len(work.built) == 5
    assert work.rests == 1
    assert one._urgent == 0
    assert not one.run_here(lambda: False)
    with files.Lock(lock.path).held(1):
        assert not one.run_here(lambda: True)


# -- over a real memory


def test_the_tree_grows_by_itself(opened):
    memory = opened(compact=True)
    memory.record([Entry(kind="user", text=f"message {k}") for k in range(64)])
    until(lambda: memory.store.read(lambda index: index.count("nodes")) == 127)
    until(lambda: memory.full_text.indexed() == 64)
    assert_sound(memory)


def test_what_is_recorded_while_it_works_is_built_too(opened):
    memory = opened(compact=True)
    for first in range(0, 600, 20):
        memory.record(
            [
                Entry(kind="talk", text=f"message {k} " + "and more " * (k % 90))
                for k in range(first, first + 20)
            ]
        )
        time.sleep(0.003)
    assert memory.settle(60)
    assert_sound(memory)


def test_a_message_that_is_lost_gets_a_leaf_that_says_so(opened, root):
    memory = opened()
    memory.record([Entry(kind="user", text=f"message {k}") for k in range(4)])
    (day,) = (root / "main").iterdir()
    memory.close()
    day.write_bytes(day.read_bytes().replace(b"message 2", b"massage 2"))
    (root / "index.sqlite").unlink()
    memory = opened()
    assert memory.settle(30)
    assert "message 2 is lost" in memory.zoom("2+2")
    assert memory.store.read(lambda index: index.count("nodes")) == 7


def test_a_message_that_was_lost_and_is_found_is_no_free_line_of_any_length(opened, root):
    memory = opened()
    memory.record([Entry(kind="user", text="first")])
    memory.record([Entry(kind="user", text="long " * 2_000)])
    (day,) = (root / "main").iterdir()
    whole = day.read_bytes()
    first, second = whole.splitlines(keepends=True)
    memory.record([Entry(kind="user", text="last")])
    third = day.read_bytes()[len(whole) :]
    memory.close()
    day.write_bytes(first + third)
    memory = opened()
    assert memory.message(1) is None
    with day.open("ab") as file:
        file.write(second)
    memory = opened()
    assert memory.message(1).text == "long " * 2_000
    assert memory.settle(30)
    assert "lost" not in memory.view()
    assert len(memory.store.texts([Place(0, 1)])[Place(0, 1)].encode()) <= 512


@pytest.mark.parametrize("compact", [False, True])
def test_settle_says_why_it_cannot_and_works_once_it_can(opened, compact):
    memory = opened(compact=compact)
    memory.record([Entry(kind="user", text="x")])
    assert memory.settle(20)
    with faults.disk() as disk:
        memory.record([Entry(kind="user", text="y")])
        disk.at, disk.for_ever, disk.how = len(disk.operations), True, faults.no_space
        with pytest.raises(StoreError, match="No space left"):
            memory.settle(20)
    assert memory.settle(20)
    assert_sound(memory)


def test_settle_ends_when_time_is_up(opened):
    memory = opened()
    memory.record([Entry(kind="user", text="x")])
    with files.Lock(memory.root / "compactor.lock").held(1):
        began = time.monotonic()
        assert not memory.settle(0.3)
        assert time.monotonic() - began < 2
    assert memory.settle(20)


def test_the_work_is_taken_over_within_seconds_when_its_owner_is_killed(opened, root):
    with children() as start:
        owner = start(
            """
            memory = Memory.open(sys.argv[1])
            while not memory.compactor.owner:
                time.sleep(0.01)
            say("owner")
            time.sleep(60)
            """,
            root,
        )
        owner.hear()
        memory = opened(compact=True)
        time.sleep(0.1)
        assert not memory.compactor.owner
        owner.kill()
        memory.record([Entry(kind="user", text=f"message {k}") for k in range(8)])
        until(lambda: memory.store.read(lambda index: index.count("nodes")) == 15, timeout_s=5)
    assert memory.compactor.owner


def test_a_search_that_cannot_be_used_leaves_tree_view_and_status_alone(opened, root):
    (root / "search.sqlite").mkdir(parents=True)
    memory = opened()
    memory.record([Entry(kind="user", text=f"message {k}") for k in range(8)])
    with pytest.raises(OptchatError, match=r"search\.sqlite"):
        memory.settle(20)
    assert memory.store.read(lambda index: index.count("nodes")) == 15
    assert "message 7" in memory.view()
    status = memory.status()
    assert status["full_text_behind"] == 8
    assert "search.sqlite" in str(status["warnings"])
    with pytest.raises(OptchatError):
        memory.search("message")
    (root / "search.sqlite").rmdir()
    assert memory.settle(20)
    assert len(memory.search("message")) == 8


def test_a_row_that_asks_for_a_built_line_does_not_keep_it_busy_for_ever(opened):
    memory = opened()
    memory.record([Entry(kind="user", text="x")])
    assert memory.settle(20)
    index = memory.store._index
    with index.transaction():
        index._writer.execute("INSERT INTO ready VALUES (0, 0, 7, 0, 0)")
    assert memory.settle(5)
    assert_sound(memory)


def test_a_change_of_the_index_file_is_seen_as_new_work(opened):
    memory = opened()
    memory.record([Entry(kind="user", text="x")])
    work = memory.compactor._work
    before = work.version()
    (memory.root / "index.sqlite").unlink()
    memory.store.total()
    assert work.version()[0] != before[0]  # the count of changes begins anew and may be the same


def test_full_text_is_made_by_one_at_a_time_also_if_locks_do_not_work(root, opened):
    memory, other = opened(), opened()
    memory.record([Entry(kind="user", text=f"word{k}") for k in range(6)])
    one, two = memory.full_text, other.full_text
    assert isinstance(one, Search)
    one.add(0, ["word0", "word1"])
    two.add(2, ["word2"])
    one.add(2, ["word2", "word3"])
    assert two.indexed() == 3
    assert list(one.look_up(["word2"]).postings["word2"].ids) == [2]


# -- lines by a model


class FakeModelCalls:
    """Lines that come back when the test says so."""

    paused = ""

    def __init__(self, work):
        self.work, self.back, self.begun, self.busy = work, [], 0, False

    def due_in(self):
        return 0.0 if self.back else 60.0

    def collect(self):
        back, self.back = self.back, []
        return back

    def start(self):
        self.begun += 1


def written(number):
    return leaf(number).node(f"user: line {number}", "model")


@pytest.fixture
def laned(run):
    """A compactor with model calls, at work."""
    work = FakeWork()
    one = run(work)
    calls = FakeModelCalls(work)
    one.write_by(calls)
    until(lambda: one.owner and work.rests)
    return one, work, calls


def test_a_disk_that_refuses_loses_no_line_of_a_model(laned, monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", (0.01,))
    one, work, calls = laned
    work.failing["commit"] = StoreError("cannot write: the disk is full")
    calls.back = [written(0), written(1)]
    one.wake()
    until(lambda: one.failures > 3)
    begun = calls.begun
    calls.back = [written(2)]
    until(lambda: one.failures > 8)
    assert calls.begun == begun
    work.failing.clear()
    until(lambda: len(work.built) == 3)
    until(lambda: calls.begun > begun)
    assert [node.index for node in work.built] == [0, 1, 2]


def test_a_line_that_cannot_be_kept_for_a_fault_of_ours_does_not_stop_the_others(
    laned, monkeypatch
):
    monkeypatch.setattr(module, "RETRY_S", (0.01,))
    one, work, calls = laned
    real = work.commit

    def commit(nodes):
        if nodes[0].index == 0:
            raise ZeroDivisionError("a bug of ours")
        real(nodes)

    work.commit = commit
    calls.back = [written(0)]
    one.wake()
    until(lambda: one.failures or "bug" in one.last_error)
    calls.back = [written(1)]
    one.wake()
    until(lambda: [node.index for node in work.built] == [1])


def test_what_a_model_has_written_is_kept_when_the_thread_is_stopped(laned):
    one, work, calls = laned
    one.nudge()  # a turn, to which it gives way
    calls.back = [written(0)]
    one.stop()
    assert [node.index for node in work.built] == [0]


def test_what_a_model_has_written_is_kept_by_who_does_the_work_for_a_while(lock):
    work = FakeWork()
    one = Compactor(work, lock)
    calls = FakeModelCalls(work)
    one.write_by(calls)

    def keep_on():
        calls.back = [written(0)]
        return False

    assert not one.run_here(keep_on)
    assert [node.index for node in work.built] == [0]


def test_who_has_no_model_does_not_keep_the_work_from_others_who_do(run):
    modest = FakeWork([leaf(0)])
    run(modest, release_when_idle=True)
    until(lambda: modest.built)
    second = run(FakeWork())
    until(lambda: second.owner, timeout_s=5)
    modest.jobs = [leaf(1)]
    modest.changes += 1
    time.sleep(0.2)
    assert len(modest.built) == 1
    second.stop()
    until(lambda: len(modest.built) == 2, timeout_s=5)
