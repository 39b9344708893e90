"""Copies taken out of sight: the log keeps them, no line says and no search finds them."""

import contextlib
import json

import doubled
import faults
import pytest
from children import children
from doubled import HELLO, TIMER, Life
from hypothesis import given
from hypothesis import strategies as st
from soundness import assert_sound, index_says
from test_model import Writer, settle

from optchat import cli
from optchat.base.address import Place
from optchat.base.cost import ALL
from optchat.base.errors import AddressError, StoreError
from optchat.base.record import BUILDERS, Entry, Node
from optchat.base.settings import Settings
from optchat.compaction.model import Model
from optchat.log.hidden import Hidden, Piece, Span

SMALL = Settings(view_budget_chars=2_000)
COPY = BUILDERS.index("copy")


def a_life(way="a branch", *, named=False):
    """What is said, the copies in it, and what they repeat."""
    life = Life(named=named)
    doubled.repeats(life)
    ((copies, first),) = doubled.WAYS[way](life)
    doubled.repeats(life)
    return life, copies, first


@pytest.fixture
def lived(opened):
    """A memory doubled by a branch, all built, its view merged; the first copy and the last."""
    memory = opened(settings=SMALL)
    life, copies, _ = a_life()
    memory.record(life.log)
    assert memory.settle(30)
    memory.view()
    return memory, copies[0], copies[-1]


def leaves(memory):
    return {place: text for place, text in lines(memory).items() if place.level == 0}


def lines(memory):
    rows = memory.store.read(lambda index: index.rows("SELECT level, idx FROM nodes"))
    return memory.store.texts([Place(*row) for row in rows])


def log_bytes(root):
    return {path: path.read_bytes() for path in (root / "main").iterdir()}


def are_out_of_sight(memory, first, last):
    """Nothing is made from the words of messages first to last."""
    found = lines(memory)
    inside = {
        place: text
        for place, text in found.items()
        if place.first >= first and place.end <= last + 1
    }
    assert len([place for place in inside if place.level == 0]) == last + 1 - first
    assert all(text.startswith(("(copy of ", "(a copy of messages ")) for text in inside.values())
    over = {
        place: text
        for place, text in found.items()
        if place not in inside and place.first <= last and place.end > first
    }
    said = [text.replace("(", "") for text in over.values()]
    assert not any("copy of" in text for text in said)


# -- what a user sees


@pytest.mark.parametrize("named", [False, True], ids=["without ids", "with ids"])
@pytest.mark.parametrize("way", doubled.WAYS)
def test_a_check_names_the_copies_and_the_command_takes_them_away(
    way, named, tmp_path, opened, capsys
):
    home = tmp_path / "home"
    memory = opened(home / "optchat", settings=SMALL)
    life, copies, _ = a_life(way, named=named)
    memory.record(life.log)
    memory.settle(30)
    assert cli.main(["check", "--home", str(home)]) == 0
    told = capsys.readouterr().out
    assert f"messages {copies[0]}-{copies[-1]} are a copy of" in told
    assert "no damage" in told
    assert "copies --hide" in told
    assert cli.main(["copies", "--hide", "--home", str(home)]) == 0
    assert f"out of sight: {len(copies)} messages" in capsys.readouterr().out
    assert cli.main(["check", "--home", str(home)]) == 0
    told = capsys.readouterr().out
    assert "are a copy of" not in told
    assert f"{len(copies)} copies are out of sight" in told
    memory.settle(30)
    are_out_of_sight(memory, copies[0], copies[-1])
    assert cli.main(["copies", "--json", "--home", str(home)]) == 0
    (stretch,) = json.loads(capsys.readouterr().out)["copies"]
    assert (stretch["first"], stretch["last"], stretch["in_sight"]) == (copies[0], copies[-1], 0)
    assert_sound(memory)


def test_the_command_takes_one_stretch_and_brings_it_back(tmp_path, opened, capsys):
    home = tmp_path / "home"
    memory = opened(home / "optchat", settings=SMALL)
    life, copies, _ = a_life()
    memory.record(life.log)
    memory.settle(30)
    span = f"{copies[0]}-{copies[-1]}"
    assert cli.main(["copies", "--home", str(home)]) == 0
    assert f"copies --hide --home {home}" in capsys.readouterr().out
    assert cli.main(["copies", "--hide", span, "--home", str(home)]) == 0
    assert cli.main(["copies", "--hide", f"{copies[0]}+{len(copies)}", "--home", str(home)]) == 0
    assert f"{len(copies)} were so before" in capsys.readouterr().out
    assert cli.main(["copies", "--show", span, "--home", str(home)]) == 0
    assert f"in sight again: {len(copies)} messages" in capsys.readouterr().out
    assert memory.copies.find()[0]["in_sight"] == len(copies)
    for wrong in ("x", "0-3", "5-4", "900-901"):
        assert cli.main(["copies", "--hide", wrong, "--home", str(home)]) == 1
        assert "optchat: " in capsys.readouterr().err


def test_a_memory_with_no_copies_says_so(tmp_path, opened, capsys):
    home = tmp_path / "home"
    memory = opened(home / "optchat")
    memory.record([Entry(kind="user", text="one", session="s")])
    assert cli.main(["copies", "--home", str(home)]) == 0
    assert "nothing was logged twice" in capsys.readouterr().out
    assert memory.copies.hide() == {"hidden": 0, "already": 0, "lines": 0}


# -- what is shown


def test_no_line_says_a_copy_and_the_log_keeps_every_byte(lived, root):
    memory, first, last = lived
    before, kept = log_bytes(root), lines(memory)
    facts = memory.copies.hide()
    assert (facts["hidden"], facts["already"]) == (last + 1 - first, 0)
    assert memory.settle(30)
    are_out_of_sight(memory, first, last)
    assert log_bytes(root) == before
    now = lines(memory)
    untouched = [place for place in kept if place.end <= first or place.first > last]
    assert {place: now[place] for place in untouched} == {place: kept[place] for place in untouched}
    assert now[Place(0, first)] == "(copy of 22+1)"
    assert "(a copy of messages 24-27)" in now.values()
    assert_sound(memory)


def test_a_line_over_copies_and_others_says_the_others_alone(opened):
    memory = opened()
    life = Life()
    said = [id_ for turn in (HELLO, TIMER) for id_ in life.turn("A", turn)]
    life.turn("A", [("user", "good"), ("talk", "Good.")])
    copies = life.again(said, "B", dated=True)
    life.turn("B", [("user", "and tea"), ("talk", "Tea it is.")])
    memory.record(life.log)
    memory.settle(30)
    memory.copies.hide()
    memory.settle(30)
    now = lines(memory)
    assert copies == [8, 9, 10, 11, 12, 13]
    assert now[Place(3, 1)] == now[Place(1, 7)] == "user: and tea\ntalk: Tea it is."
    assert now[Place(2, 2)] == "(a copy of messages 0-3)"


def test_a_view_gives_the_room_of_copies_to_what_was_said(opened):
    memory = opened(settings=SMALL)
    life = Life()
    said = []
    for number in range(60):
        said += life.turn("A", [("user", f"and {number}"), ("talk", f"so we count to {number}")])
    life.again(said, "B", dated=True)
    life.turn("B", [("user", "and tea"), ("talk", "Tea it is.")])
    memory.record(life.log)
    memory.settle(30)
    before = memory.view()
    memory.copies.hide()
    assert len(memory.view()) <= 2_000
    memory.settle(30)
    now = memory.view()
    assert len(now) <= 2_000
    assert "not summarized" not in now
    assert words_of_a(now) > 2 * words_of_a(before)
    assert_sound(memory)


def test_a_view_that_has_room_for_all_keeps_a_line_for_each_message_in_sight(opened):
    memory, other = opened(), opened()
    life, copies, _ = a_life()
    memory.record(life.log)
    memory.settle(30)
    assert len(other.view().splitlines()) == len(life.log) + 4
    memory.copies.hide()
    for one in (memory, other):
        shown = [line.split("|")[0] for line in one.view().splitlines()[3:-1]]
        single = [address for address in shown if address.endswith("+1")]
        assert single == [f"{k}+1" for k in range(len(life.log)) if k not in copies]
        assert [address for address in shown if address not in single] == ["30+2", "32+4", "36+2"]
    memory.copies.show(copies[0], copies[-1])
    memory.settle(30)
    assert len(other.view().splitlines()) == len(life.log) + 4
    assert_sound(memory)


def words_of_a(view):
    """How much of a view is about the first 120 messages."""
    told = [line for line in view.splitlines()[3:-1] if int(line.split("+")[0]) < 120]
    return sum(len(line) for line in told)


def test_zoom_still_shows_the_words_with_the_remark(lived):
    memory, first, _ = lived
    memory.copies.hide()
    memory.settle(30)
    assert memory.zoom(first) == f"{first}+1|user (copy of 22+1): hello, are you there?"
    assert memory.zoom(22) == "22+1|user: hello, are you there?"
    assert memory.zoom(f"{first}+2").splitlines()[0] == f"{first}+1|(copy of 22+1)"


def test_a_search_finds_what_they_repeat(lived):
    memory, first, last = lived
    hidden = set(range(first, last + 1))
    words = ("kitchen timer", "Minka", "hello there")
    memory.copies.hide()
    for query in words:
        for newest in (False, True):
            hits = memory.search(query, newest=newest)
            assert hits
            assert not hidden & {hit.id for hit in hits}
    for query in words:
        shown = {
            int(line.strip().split("+")[0])
            for line in memory.recall(query).splitlines()
            if line.startswith("  ")
        }
        assert not hidden & shown
    assert not hidden & set(memory.full_text.newest(["minka"], 100))
    assert len(memory.full_text.newest(["minka"], 2)) == 2


def test_copies_cost_no_call_of_a_model(opened):
    writer = Writer()
    settings = Settings(summarizer="model")
    before = opened(settings=settings)
    life = Life()
    long = (
        "We agreed with Maria that the release moves to 12 June because invoices are missing. " * 9
    )
    said = [
        id_
        for k in range(4)
        for id_ in life.turn("A", [("user", f"{k} {long}"), ("talk", f"yes {k} {long}")])
    ]
    copies = life.again(said, "B", dated=True)
    before.record(life.log)
    before.copies.hide()
    # Hidden first: a compactor that already runs may have asked for a line of a copy by then.
    before.close()
    memory = opened(settings=settings, model=Model("tiny-1", writer), compact=True)
    settle(memory)
    asked = [request for request in writer.requests if "(copy of" not in request[1].content]
    assert len(copies) == 8
    assert len(writer.requests) == 8 + 7  # eight messages, and the lines above them
    assert len(asked) == len(writer.requests)
    assert memory.store.read(
        lambda index: index.rows("SELECT count(*) FROM nodes WHERE by = ?", (COPY,))
    ) == [(15,)]
    # A tree file that was lost is made anew, and again no word of theirs is asked for.
    memory.close()
    for path in (memory.root / "tree").iterdir():
        path.write_bytes(
            b"".join(
                line
                for line in path.read_bytes().splitlines(keepends=True)
                if b'"copy"' not in line
            )
        )
    again = opened(settings=settings, model=Model("tiny-1", writer), compact=True)
    settle(again)
    assert again.store.read(
        lambda index: index.rows("SELECT count(*) FROM nodes WHERE by = ?", (COPY,))
    ) == [(15,)]
    assert len(writer.requests) == 8 + 7
    assert_sound(again)


# -- it stays, and it can be undone


def test_an_index_made_anew_says_the_same(lived, opened, root):
    memory, first, last = lived
    memory.copies.hide()
    memory.settle(30)
    kept, view = index_says(root), memory.view()
    memory.close()
    for path in (*root.glob("index.sqlite*"), *root.glob("search.sqlite*")):
        path.unlink()
    again = opened(settings=SMALL)
    assert again.settle(30)
    assert again.view() == view
    assert not {hit.id for hit in again.search("Minka")} & set(range(first, last + 1))
    assert index_says(root) == kept
    are_out_of_sight(again, first, last)
    assert_sound(again)


def test_hidden_before_a_line_was_built_it_is_never_built(opened):
    memory = opened(settings=SMALL)
    life, copies, _ = a_life()
    memory.record(life.log)
    memory.copies.hide()
    memory.close()
    for path in memory.root.glob("index.sqlite*"):
        path.unlink()
    again = opened(settings=SMALL)
    again.settle(30)
    are_out_of_sight(again, copies[0], copies[-1])
    assert_sound(again)


def test_brought_back_it_is_as_if_nothing_had_been_done(lived):
    memory, first, last = lived
    before = lines(memory)
    memory.copies.hide()
    memory.settle(30)
    assert memory.copies.show(first, last)["shown"] == last + 1 - first
    assert "(copy of" not in memory.view()
    memory.settle(30)
    assert lines(memory) == before
    assert "Minka" in memory.zoom(last - 1)
    assert {last - 1, last} <= set(memory.full_text.newest(["minka"], 99))
    assert memory.copies.show(first, last) == {"shown": 0, "lines": 0}
    assert_sound(memory)


def test_done_again_it_changes_no_byte(lived, root):
    memory, first, last = lived
    memory.copies.hide()
    memory.settle(30)
    files = {path: path.read_bytes() for path in root.rglob("*.jsonl")}
    assert memory.copies.hide() == {"hidden": 0, "already": last + 1 - first, "lines": 0}
    assert {path: path.read_bytes() for path in root.rglob("*.jsonl")} == files


def test_a_part_of_a_stretch_can_go_and_the_rest_later(lived):
    memory, first, last = lived
    memory.copies.hide(first, first + 2)
    memory.settle(30)
    are_out_of_sight(memory, first, first + 2)
    assert memory.copies.find()[0]["in_sight"] == last - first - 2
    assert memory.copies.hide()["already"] == 3
    memory.settle(30)
    are_out_of_sight(memory, first, last)
    assert memory.copies.show(first + 1)["shown"] == 1
    memory.settle(30)
    assert "copy" not in lines(memory)[Place(0, first + 1)]
    assert_sound(memory)


def test_what_is_no_copy_stays_unless_it_is_forced_and_said_before(lived):
    memory, first, _ = lived
    with pytest.raises(AddressError, match="only 2 of them"):
        memory.copies.hide(first - 2, first + 1)
    with pytest.raises(AddressError, match="none of them"):
        memory.copies.hide(0, 3)
    with pytest.raises(AddressError, match="message 0 repeats none before 0"):
        memory.copies.hide(0, 3, force=True)
    assert "(copy of" not in "".join(lines(memory).values())
    assert memory.copies.hide(2, 3, force=True)["hidden"] == 2  # "ok" for the second time
    memory.settle(30)
    assert lines(memory)[Place(0, 2)] == "(copy of 0+1)"
    assert lines(memory)[Place(2, 0)] == lines(memory)[Place(1, 0)]
    assert_sound(memory)


def test_no_words_anybody_says_take_anything_out_of_sight(lived, opened):
    memory, first, last = lived
    note = {"type": "hidden", "session": "", "pieces": [[0, 10, 10]]}
    memory.record(
        [
            Entry(kind="note", text=json.dumps(note)),
            Entry(kind="user", text="(copy of 3+1)", session="s"),
        ]
    )
    memory.settle(30)
    assert not memory._hidden()
    assert first < last


def test_a_redacted_original_takes_no_copy_with_it(lived):
    memory, first, _ = lived
    memory.copies.hide()
    memory.redact(22)
    memory.settle(30)
    assert "hello, are you there?" in memory.zoom(first)
    assert memory.redact(first)["already"] is False
    memory.settle(30)
    assert "hello" not in memory.zoom(first)
    assert lines(memory)[Place(0, first)] == "(copy of 22+1)"
    assert_sound(memory)


# -- others at work


def test_others_that_have_the_memory_open_see_it_at_once(lived, opened):
    memory, first, last = lived
    other = opened(settings=SMALL)
    other.view()
    assert "(copy of" not in other.zoom(f"{first}+2")
    memory.copies.hide()
    assert "(copy of" in other.zoom(f"{first}+2")
    assert not set(range(first, last + 1)) & {hit.id for hit in other.search("Minka")}
    other.settle(30)
    assert memory.view() == other.view()
    memory.copies.show(first, last)
    assert "(copy of" not in other.zoom(first)
    assert_sound(other)


def test_lines_that_were_being_made_from_the_words_are_not_written(opened):
    memory, other = opened(), opened()
    life, copies, _ = a_life()
    memory.record(life.log)
    work = memory.builder._work
    jobs = work.take(1_000, 1 << 20, ALL)
    other.copies.hide()
    work.commit(
        [
            Node(level=job.place.level, index=job.place.index, text=job.source, by="free")
            for job in jobs
        ]
    )
    assert memory.settle(30)
    are_out_of_sight(memory, copies[0], copies[-1])
    assert_sound(memory)


def test_another_process_at_work_is_not_in_the_way(root, opened):
    life, copies, _ = a_life()
    with opened(root, settings=SMALL) as memory:
        memory.record(life.log)
    child_life = """
    memory = Memory.open(Path(sys.argv[1]), Settings(view_budget_chars=2_000))
    place = f"{sys.argv[2]}+2"
    memory.settle(60)
    say("copy of" in memory.zoom(place), memory.builder.compactor.owner)
    wait_for("on")
    memory.record([Entry(kind="user", text="after", session="s")])
    memory.settle(60)
    say("copy of" in memory.zoom(place), memory.check()["disagreements"], memory.check()["damage"])
    wait_for("end")
    memory.close()
    """
    with children() as start:
        child = start(child_life, root, copies[0])
        assert child.hear(60) == "False True"
        memory = opened(root, settings=SMALL)
        assert memory.copies.hide()["hidden"] == len(copies)
        child.tell("on")
        assert child.hear(60) == "True [] []"
        are_out_of_sight(memory, copies[0], copies[-1])
        child.tell("end")
        child.rest()


# -- crashes


@pytest.mark.slow
@pytest.mark.parametrize("landing", [0, 40])
@pytest.mark.parametrize("how", [faults.Crash, faults.disk_error])
@pytest.mark.parametrize("act", ["hide", "show"])
def test_cut_at_any_operation_it_is_finished_by_doing_it_again(opened, tmp_path, act, how, landing):
    def a_memory(name):
        memory = opened(tmp_path / name, settings=SMALL)
        life, copies, _ = a_life("exit after /new")
        memory.record(life.log)
        memory.settle(30)
        memory.view()
        if act == "show":
            memory.copies.hide()
            memory.settle(30)
        return memory, copies[0], copies[-1]

    def do(memory):
        return memory.copies.hide() if act == "hide" else memory.copies.show(first, last)

    memory, first, last = a_memory("count")
    with faults.disk() as disk:
        do(memory)
    memory.settle(30)
    whole, log = lines(memory), list(memory.store.messages(0, 999))
    steps = len(disk.operations)
    assert steps > 5
    for step in range(steps):
        memory, first, last = a_memory(f"cut{step}")
        cut = contextlib.suppress(faults.Crash, StoreError)
        with faults.disk(at=step, how=how, landing=landing), cut:
            do(memory)
        again = opened(tmp_path / f"cut{step}", settings=SMALL)
        assert list(again.store.messages(0, 999)) == log, step
        assert again.view()
        again.settle(30)
        do(again)
        again.settle(30)
        assert lines(again) == whole, step
        assert len(again._hidden()) == (last + 1 - first if act == "hide" else 0)
        assert_sound(again)
        for one in (memory, again):
            one.close()


# -- what is out of sight, as arithmetic


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 60), st.integers(0, 20)),
        max_size=12,
    )
)
def test_what_is_out_of_sight_is_what_was_noted_last(steps):
    notes, model = [], {}
    for hide, first, of, length in steps:
        if hide:
            notes.append({"pieces": [[first, of, length]]})
            model = {first + k: of + k for k in range(length)} | model
        else:
            notes.append({"shown": [first, first + length]})
            model = {id_: was for id_, was in model.items() if not first <= id_ < first + length}
    hidden = Hidden.of_notes(notes)
    assert {
        id_: hidden.original(id_) for id_ in range(100) if hidden.original(id_) is not None
    } == model
    assert len(hidden) == len(model)
    assert bool(hidden) == bool(model)
    assert list(hidden.in_sight(range(100))) == [id_ for id_ in range(100) if id_ not in model]
    for level in range(5):
        for index in range(5):
            place = Place(level, index)
            inside = [id_ in model for id_ in range(place.first, place.end)]
            assert hidden.covers(place) == all(inside)
            assert hidden.touches(place) == any(inside)
            if all(inside):
                assert hidden.line(place).startswith(
                    "(copy of " if not level else "(a copy of messages "
                )
    again = Hidden.of_notes([*notes, {"shown": [0, 100]}])
    assert not again
    assert hidden.without(Span(0, 100)).pieces == []


def test_a_line_names_what_it_repeats_shortly():
    hidden = Hidden(
        [
            Piece(0, 100, 8),
            Piece(8, 500, 8),
            Piece(16, 120, 8),
            *(Piece(24 + k, 1_000 * k, 1) for k in range(8)),
        ]
    )
    assert hidden.line(Place(3, 0)) == "(a copy of messages 100-107)"
    assert hidden.line(Place(4, 0)) == "(a copy of messages 100-107, 500-507)"
    assert hidden.line(Place(3, 3)) == "(a copy of messages 0-7000)"
    assert hidden.line(Place(1, 12)) == "(a copy of messages 0, 1000)"
