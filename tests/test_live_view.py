"""The view that is kept.

Saved, reloaded, the same in every process, within its budget, whatever became of its file.
"""

import json
import shutil

import faults
import pytest
from children import children
from clock import Clock
from soundness import assert_sound

from optchat.base.address import cover
from optchat.base.record import Entry, Node
from optchat.base.settings import Settings
from optchat.log import files
from optchat.memory import Memory
from optchat.tree import lines, live_view, saved_view
from optchat.tree.render import FRAME_CHARS, weigh
from optchat.tree.view import tile

SMALL = Settings(view_budget_chars=4_000)


def said(count, start=0):
    return [
        Entry(
            kind="user",
            text=f"message {k} says something of its own about matter {k * 7919 % 1000}",
        )
        for k in range(start, start + count)
    ]


def grow(memory, count, batch=64):
    start = memory.store.total()
    for first in range(start, start + count, batch):
        memory.record(said(min(batch, start + count - first), first))
        assert memory.settle(60)


def lines_of(memory):
    return [line.place for line in memory.live_view.lines()[0]]


def assert_tiles(memory):
    lines, total = memory.live_view.lines()
    at = 0
    for line in tile(lines, total):
        assert line.place.first == at
        at = line.place.end
    assert at == total == memory.store.total()
    assert len(memory.view()) <= memory.settings.view_budget_chars


def test_a_short_log_is_shown_line_by_line_and_nothing_is_saved(memory, root):
    grow(memory, 20)
    assert [place.address for place in lines_of(memory)] == [f"{k}+1" for k in range(20)]
    assert not (root / "view.json").exists()


def test_a_long_log_is_merged_down_to_the_low_mark_and_saved(opened, root):
    memory = opened(settings=SMALL)
    grow(memory, 200)
    saved = json.loads((root / "view.json").read_bytes())
    assert saved["budget"] == 4_000
    assert_tiles(memory)
    merged = [
        weigh(line) for line in memory.live_view.lines()[0] if list(line.place) in saved["lines"]
    ]
    assert sum(merged) + FRAME_CHARS <= 4_000
    assert_sound(memory)


def test_between_two_batches_of_merges_the_view_only_grows_at_its_end(opened):
    memory = opened(settings=SMALL)
    grow(memory, 120)
    for _ in range(60):
        before, generation = memory.view().splitlines()[3:-1], memory.live_view._generation
        grow(memory, 1)
        after = memory.view().splitlines()[3:-1]
        if memory.live_view._generation == generation:
            assert after[: len(before)] == before


def test_a_view_reloaded_is_the_same_to_the_letter(opened):
    memory = opened(settings=SMALL)
    for _ in range(8):
        grow(memory, 37)
        assert opened(settings=SMALL).view() == memory.view()


def test_two_processes_show_the_same_view_whoever_merges(opened, root):
    here = opened(settings=SMALL)
    code = """
    memory = Memory.open(sys.argv[1], Settings(view_budget_chars=4000), compact=False)
    for start in range(0, 600, 100):
        wait_for("go")
        first = memory.store.total()
        memory.record([Entry(kind="talk", text=f"child {k} " + "word " * (k % 9)) for k in range(first, first + 50)])
        assert memory.settle(60)
        say(memory.view().encode().hex())
    """
    with children() as start:
        child = start(code, root)
        for _ in range(6):
            grow(here, 50)
            child.tell("go")
            theirs = bytes.fromhex(child.hear(60)).decode()
            assert here.view() == theirs
        child.rest()
    assert_sound(here)


def test_a_larger_budget_opens_the_view_up_and_a_smaller_one_closes_it(opened):
    memory = opened(settings=SMALL)
    grow(memory, 400)
    few = lines_of(memory)
    larger = opened(settings=Settings(view_budget_chars=12_000))
    assert len(lines_of(larger)) > 2 * len(few)
    assert_tiles(larger)
    smaller = opened(settings=Settings(view_budget_chars=2_000))
    assert len(lines_of(smaller)) < len(few)
    assert_tiles(smaller)
    assert_tiles(opened(settings=SMALL))


@pytest.mark.parametrize("budget", [2_000, 2_001, 3_000, 16_000, 200_000])
def test_any_budget_is_kept_whatever_is_built(opened, root, budget):
    memory = opened(settings=Settings(view_budget_chars=budget))
    for _ in range(4):
        memory.record(said(300, memory.store.total()))
        assert len(memory.view()) <= budget
        memory.compactor.step()
        assert_tiles(memory)


def test_ten_thousand_bare_messages_fit_the_smallest_budget(opened):
    memory = opened(settings=Settings(view_budget_chars=2_000))
    for first in range(0, 10_000, 1_000):
        memory.record(said(1_000, first))
    assert len(memory.view()) <= 2_000
    assert_tiles(memory)


GARBAGE = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "a text": b'"x"',
    "no lines": b'{"version":1,"generation":1,"budget":4000}',
    "lines that are none": b'{"version":1,"generation":1,"budget":4000,"lines":[1,2]}',
    "texts for numbers": b'{"version":1,"generation":1,"budget":4000,"lines":[["0","0"]]}',
    "truth for numbers": b'{"version":1,"generation":1,"budget":4000,"lines":[[true,false]]}',
    "negative": b'{"version":1,"generation":1,"budget":4000,"lines":[[0,-1]]}',
    "overlapping": b'{"version":1,"generation":1,"budget":4000,"lines":[[3,0],[0,2]]}',
    "out of order": b'{"version":1,"generation":1,"budget":4000,"lines":[[0,5],[0,2]]}',
    "far away": b'{"version":1,"generation":1,"budget":4000,"lines":[[48,18446744073709551615]]}',
    "beyond the log": b'{"version":1,"generation":1,"budget":4000,"lines":[[0,100000]]}',
    "a level too high": b'{"version":1,"generation":1,"budget":4000,"lines":[[49,0]]}',
    "another version": b'{"version":9,"generation":1,"budget":4000,"lines":[[0,0]]}',
    "an endless budget": b'{"version":1,"generation":1,"budget":1e999,"lines":[[0,0]]}',
    "a null budget": b'{"version":1,"generation":1,"budget":null,"lines":[[0,0]]}',
    "half a character": b'{"version":1,"generation":1,"budget":4000,"lines":[[0,0]],"x":"\\ud83d"}',
    "no UTF-8": b"\xff\xfe\x00",
    "an empty view": b'{"version":1,"generation":1,"budget":4000,"lines":[]}',
}


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """The directory of a memory that was closed with all its lines built."""
    root = tmp_path_factory.mktemp("grown") / "memory"
    with Memory.open(root, SMALL, compact=False, clock=Clock()) as memory:
        grow(memory, 300)
    return root


@pytest.mark.parametrize("name", GARBAGE)
def test_a_view_file_that_is_missing_or_garbage_is_folded_anew(opened, root, grown, name):
    shutil.copytree(grown, root)
    (root / "view.json").write_bytes(GARBAGE[name])
    memory = opened(settings=SMALL)
    assert_tiles(memory)
    assert opened(settings=SMALL).view() == memory.view()
    assert_sound(memory)


def test_a_view_file_deleted_under_an_open_memory_is_made_again(opened, root):
    memory, other = opened(settings=SMALL), opened(settings=SMALL)
    grow(memory, 200)
    assert other.view() == memory.view()
    (root / "view.json").unlink()
    grow(memory, 10)
    assert_tiles(memory)
    assert other.view() == memory.view()
    assert (root / "view.json").exists()


def test_a_view_file_that_cannot_be_read_or_written_does_not_hide_the_view(opened, root):
    """A directory in its place stands for all that can be wrong with it, also for root."""
    memory = opened(settings=SMALL)
    grow(memory, 200)
    memory.close()
    (root / "view.json").unlink()
    (root / "view.json").mkdir()
    memory = opened(settings=SMALL)
    assert_tiles(memory)
    grow(memory, 50)
    assert_tiles(memory)
    (root / "view.json").rmdir()
    assert opened(settings=SMALL).view() == memory.view()


def test_merges_that_could_not_be_saved_are_saved_with_the_next_view(opened, root):
    memory = opened(settings=SMALL)
    for _ in range(100):
        with faults.disk(how=faults.no_space, at=0, only="replace") as disk:
            grow(memory, 1)
            assert_tiles(memory)
        if disk.broken:
            break
    assert disk.broken
    shown = memory.view()
    assert saved_view.load(root / "view.json") is not None
    assert opened(settings=SMALL).view() == memory.view() == shown


def test_a_view_is_shown_while_another_process_keeps_the_lock(opened, root):
    memory = opened(settings=SMALL)
    memory.record(said(200))
    while memory.compactor.step():
        pass
    fresh = opened(settings=SMALL)
    fresh.live_view._path.unlink(missing_ok=True)
    with files.Lock(root / "write.lock").held(1):
        assert len(fresh.view()) <= 4_000
        assert not fresh.live_view._path.exists()
    fresh.view()
    assert fresh.live_view._path.exists()
    assert_tiles(fresh)


@pytest.mark.slow
def test_a_tail_of_many_thousands_is_not_brought_in_leaf_by_leaf(opened, root, monkeypatch):
    memory = opened(settings=SMALL)
    grow(memory, 100)
    saved = (root / "view.json").read_bytes()
    for first in range(100, 5_000, 1_000):
        memory.record(said(min(1_000, 5_000 - first), first))
    memory.settle(60)
    (root / "view.json").write_bytes(saved)
    monkeypatch.setattr(live_view, "LINES_MAX", 512)
    monkeypatch.setattr(lines, "LINES_MAX", 512)
    held = []
    real = live_view.View.insert
    monkeypatch.setattr(
        live_view.View,
        "insert",
        lambda self, leaves: (real(self, leaves), held.append(len(self.lines)))[0],
    )
    lagging = opened(settings=SMALL)
    assert_tiles(lagging)
    assert max(held) < 512 + 200
    assert len(lagging.live_view.lines()[0]) < 200
    assert opened(settings=SMALL).view() == lagging.view()
    assert_sound(lagging)


def test_a_new_view_of_a_long_log_asks_only_for_the_lines_it_shows(opened, root):
    memory = opened(settings=SMALL)
    grow(memory, 4_096, batch=4_096)
    (root / "view.json").unlink()
    asked = []
    fresh = opened(settings=SMALL)
    real = fresh.store.read
    fresh.store.read = lambda question: asked.append(question) or real(question)
    fresh.view()
    assert len(asked) < 1_000


def test_a_line_whose_text_is_damaged_is_shown_as_not_summarized(opened, root):
    memory = opened(settings=SMALL)
    grow(memory, 100)
    memory.close()
    (day,) = (root / "tree").iterdir()
    spoiled = day.read_bytes().replace(b"message", b"massage")
    day.write_bytes(spoiled)
    memory = opened(settings=SMALL)
    assert "massage" not in memory.view()
    assert_tiles(memory)
    memory.settle(60)
    assert "not summarized" not in memory.view()
    assert_tiles(memory)
    assert memory.check()["disagreements"] == []


def test_the_lines_of_a_view_are_a_tiling_by_nodes_of_the_tree(opened):
    memory = opened(settings=SMALL)
    grow(memory, 333)
    lines, total = memory.live_view.lines()
    assert [line.place for line in tile(lines, total)] == [
        place for line in tile(lines, total) for place in cover(line.place.first, line.place.end)
    ]


def test_lines_that_never_merge_cost_no_more_in_a_longer_log(opened, monkeypatch):
    """With compaction off every long message leaves a hole that keeps its neighbours from
    merging.
    """
    monkeypatch.setattr(live_view, "LINES_MAX", 64)
    monkeypatch.setattr(lines, "LINES_MAX", 64)
    memory = opened(settings=Settings(view_budget_chars=4_000, compact_enabled=False))
    costs = []
    for first in range(0, 1_000, 50):
        memory.record(
            [
                Entry(kind="user", text=f"message {k} " + "long " * (300 * (k % 2)))
                for k in range(first, first + 50)
            ]
        )
        assert memory.settle(60)
        asked = []
        real = memory.store.read
        memory.store.read = lambda question, real=real, asked=asked: (
            asked.append(question) or real(question)
        )
        memory.live_view.update(wait_s=0.0)
        memory.store.read = real
        costs.append(len(asked))
        assert_tiles(memory)
        assert len(memory.live_view.lines()[0]) <= 64 + 50
    assert max(costs[10:]) <= max(costs[:10]) * 1.2
    assert "message 999" not in memory.view()
    assert "message 998" in memory.view()
    fresh = opened(settings=memory.settings)
    assert_tiles(fresh)
    assert "message 998" in fresh.view()
    assert_sound(memory)


def test_a_view_that_waits_for_a_model_is_shown_with_few_questions(opened):
    """Every other message is long, and the model that is to sum it up is down for a week."""
    memory = opened(settings=Settings(view_budget_chars=4_000, summarizer="model"))
    memory.record(
        [Entry(kind="user", text=f"message {k} " + "long " * (200 * (k % 2))) for k in range(2_000)]
    )
    memory.settle(60)
    memory.view()
    asked, locked = [], []
    for name, calls in (("_one", asked), ("_all", asked)):
        real = getattr(memory.store._index, name)
        setattr(
            memory.store._index,
            name,
            lambda *args, real=real, calls=calls: calls.append(args) or real(*args),
        )
    real = memory.store.locked
    memory.store.locked = lambda **options: locked.append(1) or real(**options)
    text = memory.view()
    assert len(memory.live_view.lines()[0]) >= 1_000
    assert len(text) <= 4_000
    assert len(asked) <= 60
    assert not locked, "nothing can merge, and nobody who writes is held up"
    assert_tiles(memory)


@pytest.mark.parametrize("step", [pytest.param(6, marks=pytest.mark.slow), 60])
@pytest.mark.parametrize("fresh_each_time", [False, True])
def test_lines_that_a_model_writes_late_leave_the_view_it_would_have_been(
    opened, root, step, fresh_each_time
):
    """An import of 700 messages whose merges a model writes, oldest first, while the view is shown
    again and again.
    """
    memory = opened(settings=Settings(view_budget_chars=8_000, summarizer="model"))
    memory.record([Entry(kind="user", text=f"message {k} " + "long " * 80) for k in range(700)])
    memory.settle(60)
    while waiting := memory.store.read(lambda index: index.ready(step)):
        memory.store.commit(
            [
                Node(
                    level=r.place.level,
                    index=r.place.index,
                    text="a line of a model " * 22,
                    by="model",
                )
                for r in waiting
            ]
        )
        assert len(memory.view()) <= 8_000
        if fresh_each_time and waiting[0].place.index % 16 == 0:
            memory.close()
            memory = opened(settings=memory.settings)
        assert_tiles(memory)
    shown = [line.place for line in memory.live_view.lines()[0]]
    (root / "view.json").unlink(missing_ok=True)
    anew = [line.place for line in opened(settings=memory.settings).live_view.lines()[0]]
    assert len(shown) >= len(anew)
    for at in range(
        0, 700, 20
    ):  # no stretch of the past is told much shorter than by a view that has seen the tree whole
        size = next(place.n for place in shown if place.first <= at < place.end)
        ideal = next(place.n for place in anew if place.first <= at < place.end)
        assert size <= 2 * ideal


def test_a_secret_is_masked_before_its_line_is_built(tmp_path):
    with Memory.open(tmp_path / "memory", compact=False) as memory:
        memory.record([Entry(kind="user", text="my key is sk-abcdefghijklmnop1234567890ABCD")])
        assert "sk-abc" not in memory.view()
        assert "[secret]" in memory.view()
