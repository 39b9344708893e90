"""Redacting a message: what is left of its words, on disk and in whoever has the memory open."""

import io
import json
from dataclasses import asdict

import faults
import pytest
from children import children
from hypothesis import given
from hypothesis import strategies as st
from soundness import assert_sound

from optchat import cli
from optchat.base.errors import AddressError, StoreError
from optchat.base.record import Entry, Message, decode_message, encode_message
from optchat.base.settings import Settings
from optchat.capture.capture import Capture
from optchat.log.fulltext import Search
from optchat.log.redacted import REDACTED, Traces, is_blank, redacted_line
from optchat.memory import Memory

SECRET = "the key is zzqqxxyy-Secret-4711, keep it"
PART = b"zzqqxxyy"
SMALL = Settings(view_budget_chars=2_000)


@pytest.fixture
def search(tmp_path):
    one = Search(tmp_path / "search.sqlite", lambda: 7)
    yield one
    one.close()


def bytes_of(directory):
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


# -- the full text


def test_a_replaced_text_leaves_no_byte_in_the_full_text(search, tmp_path):
    texts = [f"message {number} about word{number}" for number in range(50)]
    texts[7] = "the key is zzqqxxyysecret"
    for first in range(0, 50, 10):
        search.add(first, texts[first : first + 10])
    assert search.look_up(["zzqqxxyysecret"]).postings
    assert b"zzqqxxyysecret" in bytes_of(tmp_path)
    search.replace(7, texts[7], "[redacted]")
    assert not search.look_up(["zzqqxxyysecret"]).postings
    assert search.clean()
    assert b"zzqqxxyysecret" not in bytes_of(tmp_path)
    assert search.look_up(["word8"]).postings["word8"].ids == [8]
    assert search.look_up(["redact"]).postings


def test_replacing_a_text_twice_takes_nothing_from_others(search):
    search.add(0, ["the deposit is thirty", "the deposit is forty"])
    for _ in range(3):
        search.replace(0, "the deposit is thirty", "[redacted]")
        search.replace(0, None, "[redacted]")
    assert search.look_up(["deposit"]).postings["deposit"].ids == [1]
    assert search.indexed() == 2


def test_what_was_read_before_a_text_was_replaced_is_not_added_after_it(search):
    search.add(0, ["one"])
    before = search.made()
    search.replace(
        1, "a secret word", "[redacted]"
    )  # not in the index yet: somebody is about to add it
    search.add(1, ["a secret word"], since=before)
    assert search.indexed() == 1
    search.add(1, ["[redacted]"], since=search.made())
    assert search.indexed() == 2
    assert not search.look_up(["secret"]).postings


def test_what_was_read_before_is_not_added_to_an_index_that_was_not_there_either(search):
    before = search.made()
    assert before == 0
    search.replace(0, "a secret word", "[redacted]")
    search.add(0, ["a secret word"], since=before)
    assert search.indexed() == 0


def test_where_nobody_knows_what_was_replaced_the_full_text_is_made_anew(search):
    search.add(0, ["a secret word", "another"])
    search.replace(0, None, "[redacted]")
    assert search.indexed() == 0


def test_an_index_that_was_deleted_is_not_gone_on_with_in_the_middle(search, tmp_path):
    search.add(0, ["one", "two"])
    (tmp_path / "search.sqlite").unlink()
    search.add(2, ["three"])
    assert search.indexed() == 0


# -- one line

texts = st.text(max_size=60)


@given(
    texts,
    st.sampled_from(["user", "talk", "tool", "echo"]),
    st.integers(0, 1 << 40),
    st.text(max_size=12),
    st.booleans(),
)
def test_a_redacted_line_is_as_long_as_it_was_and_says_all_but_the_words(
    text, kind, id_, session, rich
):
    extra = {"uid": "u-1", "turn": "t", "author": "Åsa", "platform": "telegram"} if rich else {}
    message = Message(
        id=id_, kind=kind, text=text, date="2026-05-01T09:00:00+02:00", session=session, **extra
    )
    line = encode_message(message)[:-1]
    new = redacted_line(line, id_)
    assert len(new) == len(line)
    assert b"\n" not in new
    after = decode_message(new)
    assert after.text == REDACTED
    assert {
        name: getattr(after, name)
        for name in ("id", "kind", "date", "session", "uid", "turn", "author", "platform")
    } == {
        name: getattr(decode_message(line), name)
        for name in ("id", "kind", "date", "session", "uid", "turn", "author", "platform")
    }
    assert redacted_line(new, id_) == new


@given(
    texts,
    st.dictionaries(
        st.sampled_from(["content", "session", "uid", "x"]),
        st.one_of(texts, st.integers(), st.lists(texts, max_size=2)),
        max_size=3,
    ),
    st.booleans(),
)
def test_a_line_of_another_writer_keeps_its_length_and_nothing_of_its_words(text, more, spaced):
    raw = {"i": 7, "kind": "user", "text": text} | more
    line = json.dumps(raw, separators=None if spaced else (",", ":")).encode()
    new = redacted_line(line, 7)
    assert len(new) == len(line)
    after = decode_message(new)
    assert (after.id, after.kind) == (7, "user")
    assert REDACTED.startswith(after.text)
    assert "content" not in json.loads(new)


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_line_becomes_one_that_can_be_read_or_none_at_all(at, value):
    line = bytearray(
        encode_message(
            Message(
                id=7, kind="talk", text=SECRET, date="2026-05-01T09:00:00Z", session="s 1", uid="u"
            )
        )[:-1]
    )
    line[at % len(line)] = value if value != 10 else 32
    new = redacted_line(bytes(line), 7)
    assert len(new) == len(line)
    assert PART not in new
    assert is_blank(new) or decode_message(new).id in (7, decode_message(new).id)


@pytest.mark.parametrize("length", range(1, 150))
def test_the_torn_beginning_of_a_line_is_known_by_the_words_it_holds(length):
    whole = encode_message(Message(id=3, kind="user", text=SECRET, session="s"))
    torn = whole[: min(length, len(whole) - 2)]
    begun = torn.partition(b'"text":"')[2]
    assert Traces(9, SECRET).is_message(torn) == bool(begun)  # it was said again, as message 9
    assert Traces(3, SECRET).is_message(torn) == (b'"i":3' in torn)
    assert not Traces(9, "something else").is_message(torn)


# -- a memory


def a_life(memory, *, before=20, after=20, secret=SECRET):
    """Forty turns with a secret in the middle; its message's id."""
    capture = Capture(memory.capture_store(), session="s")
    capture.initialized()
    listed = []
    for turn in range(before + 1 + after):
        text = (
            secret
            if turn == before
            else f"message {turn} about the harbour and word{turn} "
            + "long enough to be summed up " * (turn % 5)
        )
        capture.turn_started(text)
        listed += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": f"answer {turn}"},
        ]
        capture.turn_ended(listed, text)
    return capture, listed, 2 * before


@pytest.fixture
def lived(opened):
    """A memory with a secret, all built, its view merged; the message's id."""
    memory = opened(settings=SMALL)
    _, _, id_ = a_life(memory)
    assert memory.settle(30)
    memory.view()
    return memory, id_


def is_gone(memory, root, id_):
    assert memory.message(id_).text == REDACTED
    assert PART not in bytes_of(root)
    assert "zzqqxxyy" not in memory.view()
    assert "zzqqxxyy" not in memory.zoom(id_)
    assert not memory.search("zzqqxxyy")


def test_redacted_words_are_in_no_file_and_the_memory_is_sound(lived, root):
    memory, id_ = lived
    assert PART in bytes_of(root)
    before = memory.message(id_)
    sizes = {
        path: path.stat().st_size
        for room in ("tree", "capture")
        for path in (root / room).glob("*.jsonl")
    }
    facts = memory.redact(id_)
    assert facts == {
        "id": id_,
        "already": False,
        "lines": facts["lines"],
        "same_words": [],
        "left_in": [],
    }
    assert facts["lines"] >= 6
    is_gone(memory, root, id_)
    assert_sound(memory)
    after = memory.message(id_)
    assert (after.id, after.kind, after.date, after.session, after.turn) == (
        before.id,
        before.kind,
        before.date,
        before.session,
        before.turn,
    )
    assert {path: path.stat().st_size for path in sizes} == sizes
    assert memory.settle(30)
    is_gone(memory, root, id_)
    assert_sound(memory)
    assert REDACTED in memory.zoom(f"{id_}+2")
    assert memory.message(memory.store.total() - 1).text.startswith(f"message {id_} was redacted")
    assert [memory.message(k).text for k in range(id_)] == [
        memory.message(k).text for k in range(id_)
    ]


def test_all_other_lines_of_the_view_stay_what_they_are(lived, root):
    memory, id_ = lived
    before = memory.view().splitlines()
    memory.redact(id_)
    now = memory.view().splitlines()
    covering = next(
        line
        for line in before[3:-1]
        if int(line.split("+")[0])
        <= id_
        < int(line.split("+")[0]) + int(line.split("+")[1].split("|")[0])
    )
    assert [line for line in before if line not in now] == [covering] or covering not in now
    assert_sound(memory)
    memory.settle(30)
    assert "not summarized" not in memory.view()
    assert_sound(memory)


def test_an_index_made_anew_from_the_files_says_the_same(lived, opened, root):
    memory, id_ = lived
    memory.redact(id_)

    def state(one):
        tables = ("messages", "nodes", "ready", "damage")
        columns = {
            "messages": "id, offset, length, bytes, kind",
            "nodes": "level, idx, offset, length, bytes, chars, by, spare",
            "ready": "*",
            "damage": "room, name, offset",
        }
        return [
            one.store.read(lambda index, t=t: index.rows(f"SELECT {columns[t]} FROM {t}"))
            for t in tables
        ]

    kept = state(memory)
    memory.close()
    (root / "index.sqlite").unlink()
    again = opened(settings=SMALL)
    assert state(again) == kept
    assert_sound(again)
    assert again.settle(30)
    is_gone(again, root, id_)
    assert_sound(again)


def test_a_second_redaction_does_nothing_and_says_so(lived, root):
    memory, id_ = lived
    memory.redact(id_)
    memory.settle(30)
    total, files = (
        memory.store.total(),
        {path: path.read_bytes() for path in root.rglob("*.jsonl")},
    )
    assert memory.redact(id_)["already"]
    assert memory.store.total() == total
    assert {path: path.read_bytes() for path in root.rglob("*.jsonl")} == files
    assert_sound(memory)


@pytest.mark.parametrize("id_", [-1, 10_000, "x", "4+2", None])
def test_what_names_no_message_is_refused_as_everywhere(lived, id_):
    memory, _ = lived
    with pytest.raises(AddressError):
        memory.redact(id_)


@pytest.mark.parametrize("text", ["a", "ok", "", "[", "4711", "[redacted]", "e\u0301", "\ud83d"])
def test_short_texts_are_redacted_as_well(opened, text):
    memory = opened()
    memory.record(
        [Entry(kind="user", text=text, session="s"), Entry(kind="talk", text="other", session="s")]
    )
    memory.settle(30)
    memory.redact(0)
    assert memory.message(0).text == REDACTED
    assert_sound(memory)
    memory.settle(30)
    assert_sound(memory)


def test_the_first_message_can_be_redacted_and_the_rest_stays_searchable(opened, root):
    memory, other = opened(), opened()
    memory.record(
        [
            Entry(kind="user", text=SECRET),
            *(Entry(kind="user", text=f"harbour {k}") for k in range(9)),
        ]
    )
    memory.settle(30)
    assert len(other.search("harbour")) == 9
    memory.redact(0)
    for one in (memory, other):
        assert len(one.search("harbour")) == 9
        assert not one.search("zzqqxxyy")
    assert memory.settle(30)
    assert_sound(other)


def test_other_messages_with_the_same_words_are_named(opened):
    memory = opened()
    memory.record(
        [
            Entry(kind="user", text=text)
            for text in (SECRET, "nothing", f"you said: {SECRET}", SECRET)
        ]
    )
    assert memory.redact(0)["same_words"] == [2, 3]
    assert memory.message(3).text == SECRET


def test_a_lost_message_is_redacted_where_its_damaged_line_still_tells_its_words(opened, root):
    memory = opened()
    memory.record([Entry(kind="user", text=text, session="s") for text in ("one", SECRET, "three")])
    memory.close()
    day = next((root / "main").iterdir())
    day.write_bytes(day.read_bytes().replace(b"4711", b"4712"))
    memory = opened()
    assert memory.message(1) is None
    memory.redact(1)
    assert memory.message(1).text == REDACTED
    assert (memory.message(1).kind, memory.message(1).session) == ("user", "s")
    assert PART not in bytes_of(root)
    assert_sound(memory)


def test_doubled_and_torn_lines_with_the_words_are_blanked(opened, root):
    memory = opened()
    memory.record([Entry(kind="user", text=text, session="s") for text in ("one", SECRET, "three")])
    memory.settle(30)
    memory.close()
    for room in ("main", "tree"):
        day = next((root / room).iterdir())
        lines = day.read_bytes().splitlines(keepends=True)
        held = next(line for line in lines if PART in line)
        torn = held[:80].replace(b'"i":1', b'"i":5')
        day.write_bytes(
            b"".join(lines) + (torn + b"\n" if room == "main" else b"") + held + held[:70]
        )
    memory = opened()
    memory.redact(1)
    assert PART not in bytes_of(root)
    assert_sound(memory)


# -- whoever has it open


def test_others_that_have_the_memory_open_forget_the_words(lived, opened, root):
    memory, id_ = lived
    other = opened(settings=SMALL)
    place = f"{id_}+2"
    assert "zzqqxxyy" in other.zoom(place)
    other.view()
    memory.redact(id_)
    assert "zzqqxxyy" not in other.zoom(place)
    assert "zzqqxxyy" not in other.view()
    assert not other.search("zzqqxxyy")
    memory.settle(30)
    for one in (memory, other):
        assert "zzqqxxyy" not in one.view()
        assert REDACTED in one.zoom(place)
    assert memory.view() == other.view()
    assert_sound(other)


def test_lines_that_were_being_made_from_the_words_are_not_written(opened, root):
    memory, other = opened(), opened()
    memory.record(
        [Entry(kind="user", text=text, session="s") for text in ("one", SECRET, "three", "four")]
    )
    work = memory.builder._work
    from optchat.base.cost import ALL
    from optchat.base.record import Node

    jobs = work.take(100, 10_000, ALL)
    assert any(PART in job.source.encode() for job in jobs)
    other.redact(1)
    work.commit(
        [
            Node(level=job.place.level, index=job.place.index, text=job.source, by="free")
            for job in jobs
        ]
    )
    assert PART not in bytes_of(root)
    assert memory.settle(30)
    is_gone(memory, root, 1)
    assert_sound(memory)


def test_another_process_at_work_is_not_in_the_way(root):
    life = """
    root = Path(sys.argv[1])
    memory = Memory.open(root, Settings(view_budget_chars=2_000))
    memory.record([Entry(kind="user", text=f"message {k} about the harbour", session="s") for k in range(50)])
    memory.record([Entry(kind="user", text=sys.argv[2], session="s")])
    memory.record([Entry(kind="user", text=f"message {k} about the harbour", session="s") for k in range(50)])
    memory.settle(60)
    say("zzqqxxyy" in memory.zoom("50+2"), memory.builder.compactor.owner)
    wait_for("on")
    memory.record([Entry(kind="user", text="after", session="s")])
    memory.settle(60)
    say("zzqqxxyy" in memory.zoom("50+2"), "zzqqxxyy" in memory.view(), len(memory.search("zzqqxxyy")), memory.check()["disagreements"])
    wait_for("end")
    memory.close()
    """
    from optchat.memory import Memory

    with children() as start:
        child = start(life, root, SECRET)
        assert child.hear(60) == "True True"
        with Memory.open(root, SMALL, compact=False) as memory:
            assert memory.redact(50)["left_in"] == []
        assert PART not in bytes_of(root)
        child.tell("on")
        assert child.hear(60) == "False False 0 []"
        child.tell("end")
        child.rest()
    assert PART not in bytes_of(root)


# -- crashes


@pytest.mark.slow
@pytest.mark.parametrize("landing", [0, 40])
@pytest.mark.parametrize("how", [faults.Crash, faults.disk_error])
def test_cut_at_any_operation_it_is_finished_by_doing_it_again(opened, tmp_path, how, landing):
    def a_memory(name):
        memory = opened(tmp_path / name, settings=SMALL)
        _, _, id_ = a_life(memory, before=5, after=5)
        memory.settle(30)
        memory.view()
        return memory, id_

    memory, id_ = a_memory("count")
    with faults.disk() as disk:
        memory.redact(id_)
    steps = len(disk.operations)
    assert steps > 10
    others = None
    for step in range(steps):
        memory, id_ = a_memory(f"cut{step}")
        others = [memory.message(k) for k in range(22) if k != id_]
        with faults.disk(at=step, how=how, landing=landing):
            try:
                left = memory.redact(id_)["left_in"]
            except (faults.Crash, StoreError):
                left = None
        assert left != []  # something was refused, and was told
        again = opened(tmp_path / f"cut{step}", settings=SMALL)
        assert [again.message(k) for k in range(22) if k != id_] == others, step
        assert again.view()
        again.settle(30)
        again.redact(id_)
        is_gone(again, tmp_path / f"cut{step}", id_)
        assert (
            sum(
                message.text.endswith("gone from this memory")
                for message in again.store.messages(0, 99)
            )
            == 1
        )
        assert_sound(again)
        again.settle(30)
        assert [again.message(k) for k in range(22) if k != id_] == others
        is_gone(again, tmp_path / f"cut{step}", id_)
        assert_sound(again)
        for one in (memory, again):
            one.close()


# -- the host goes on


def turn(capture, listed, text, answer, **more):
    capture.turn_started(text)
    listed += [{"role": "user", "content": text} | more, {"role": "assistant", "content": answer}]
    capture.turn_ended(listed, text)


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("which", range(6))
def test_redacted_words_a_host_shows_again_are_not_logged(opened, root, ids, which):
    memory = opened(settings=SMALL)
    capture = Capture(memory.capture_store(), session="s")
    capture.initialized()
    listed = []

    def say(number):
        text, answer = f"question {number}", f"answer {number}"
        if which == 2 * number:
            text = SECRET
        elif which == 2 * number + 1:
            answer = SECRET
        turn(capture, listed, text, answer)
        if ids:
            for place, message in enumerate(listed):
                message["message_uid"] = f"m{place}"

    for number in range(3):
        say(number)
    capture.list_seen(listed)
    memory.redact(which)
    for number in range(3, 6):
        say(number)
        capture = capture if number != 4 else Capture(memory.capture_store(), session="s")
        capture.initialized()
    said = [message.text for message in memory.store.messages(0, 99) if message.kind != "note"]
    expected = [message["content"] for message in listed]
    expected[which] = REDACTED
    assert said == expected
    assert PART not in bytes_of(root)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("shown", [False, True], ids=["not yet shown", "shown before"])
def test_words_that_the_host_has_joined_to_others_are_not_logged_again(opened, root, place, shown):
    """Of turns that were broken off, hosts make one message."""
    memory = opened(settings=SMALL)
    capture = Capture(memory.capture_store(), session="s")
    capture.initialized()
    listed = []
    turn(capture, listed, "hello", "good day")
    texts = ["first question", "second question"]
    texts.insert(("first", "middle", "last").index(place), SECRET)
    for text in texts:
        capture.turn_started(text)
    if shown:
        listed.append({"role": "user", "content": "\n\n".join(texts)})
        capture.turn_ended(listed, texts[-1])
    else:
        capture.shutdown()
    memory.redact(next(k for k in range(9) if memory.message(k).text == SECRET))
    capture = Capture(memory.capture_store(), session="s")
    capture.initialized()
    capture.turn_started("and now")
    listed[2:] = [
        {"role": "user", "content": "\n\n".join([*texts, "and now"])},
        {"role": "assistant", "content": "yes"},
    ]
    capture.turn_ended(listed, "and now")
    turn(capture, listed, "next", "well")
    said = [message.text for message in memory.store.messages(0, 99) if message.kind != "note"]
    assert PART not in bytes_of(root)
    assert said == [
        "hello",
        "good day",
        *(REDACTED if text == SECRET else text for text in texts),
        "and now",
        "yes",
        "next",
        "well",
    ]


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("again", [False, True], ids=["same process", "after a restart"])
def test_a_question_and_its_answer_that_were_both_redacted_are_not_logged_again(
    opened, root, ids, again
):
    memory = opened(settings=SMALL)
    capture = Capture(memory.capture_store(), session="s")
    capture.initialized()
    listed = []
    turn(capture, listed, SECRET, f"I keep it: {SECRET}")
    turn(capture, listed, f"again: {SECRET}", f"yes: {SECRET}")
    for id_ in range(4):
        memory.redact(id_)
    if ids:
        for place, message in enumerate(listed):
            message["message_uid"] = f"m{place}"
    if again:
        capture = Capture(memory.capture_store(), session="s")
        capture.initialized()
    turn(capture, listed, "next", "well")
    said = [message.text for message in memory.store.messages(0, 99) if message.kind != "note"]
    assert said == [*[REDACTED] * 4, "next", "well"]
    assert PART not in bytes_of(root)


def test_a_redacted_question_that_the_host_joins_to_the_next_one_is_not_logged_again(opened, root):
    memory = opened(settings=SMALL)
    capture = Capture(memory.capture_store(), session="s")
    capture.initialized()
    listed = []
    turn(capture, listed, "hello", "good day")
    capture.turn_started(SECRET)
    listed.append({"role": "user", "content": SECRET})
    capture.turn_ended(listed, SECRET)
    memory.redact(1)
    memory.redact(2)
    capture.turn_started("and now")
    listed[-1] = {"role": "user", "content": f"{SECRET}\n\nand now"}
    listed.append({"role": "assistant", "content": "yes"})
    capture.turn_ended(listed, "and now")
    said = [message.text for message in memory.store.messages(0, 99) if message.kind != "note"]
    assert said == ["hello", REDACTED, REDACTED, "and now", "yes"]
    assert PART not in bytes_of(root)


def test_a_redacted_part_of_a_joined_message_is_known_beside_a_redacted_answer(opened, root):
    memory = opened(settings=SMALL)
    capture = Capture(memory.capture_store(), session="s")
    capture.initialized()
    capture.turn_started(SECRET)
    listed = [{"role": "user", "content": SECRET}]
    capture.turn_ended(listed, SECRET)
    capture.turn_started("the second question")
    listed = [
        {"role": "user", "content": f"{SECRET}\n\nthe second question"},
        {"role": "assistant", "content": f"I keep it: {SECRET}"},
    ]
    capture.turn_ended(listed, "the second question")
    memory.redact(0)
    memory.redact(2)
    turn(capture, listed, "next", "well")
    said = [message.text for message in memory.store.messages(0, 99) if message.kind != "note"]
    assert said == [REDACTED, "the second question", REDACTED, "next", "well"]
    assert PART not in bytes_of(root)


# -- the command


@pytest.fixture
def home(tmp_path, opened):
    memory = opened(tmp_path / "optchat")
    memory.record(
        [Entry(kind="user", text=text, session="s") for text in ("one", SECRET, f"again: {SECRET}")]
    )
    memory.settle(30)
    memory.close()
    return tmp_path


def command(capsys, monkeypatch, *args, answer=None):
    monkeypatch.setattr("sys.stdin", None if answer is None else io.StringIO(answer))
    status = cli.main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize("answer", [None, "", "\n", "n\n", "no\n", "ja\n"])
def test_the_command_asks_first_and_does_nothing_without_a_yes(home, capsys, monkeypatch, answer):
    before = bytes_of(home / "optchat" / "main")
    status, out, err = command(capsys, monkeypatch, "redact", "1", "--home", home, answer=answer)
    assert status == 1
    assert out == ""
    assert "zzqqxxyy" in err
    assert "no way back" in err
    assert "nothing was changed" in err
    assert bytes_of(home / "optchat" / "main") == before


def test_the_command_says_what_it_did_and_where_copies_are(home, capsys, monkeypatch):
    status, out, _ = command(
        capsys, monkeypatch, "redact", "1+1|user: the key", "--home", home, answer="yes\n"
    )
    assert status == 0
    assert "message 1 is redacted" in out
    assert "message 2: redact it too" in out
    assert "state.db" in out
    assert "backup" in out
    assert "optchat compact" in out
    assert "zzqqxxyy" not in out
    status, out, _ = command(capsys, monkeypatch, "redact", "1", "--yes", "--home", home)
    assert status == 0
    assert "before" in out


def test_the_command_speaks_of_no_lines_where_there_were_none(tmp_path, capsys, monkeypatch):
    with Memory.open(tmp_path / "optchat", compact=False) as memory:
        memory.record([Entry(kind="user", text="the key is zzqqxxyy")])
    _, out, _ = command(capsys, monkeypatch, "redact", "0", "--yes", "--home", tmp_path)
    assert "its words are gone, and no line had summed it up" in out
    assert "0 lines" not in out


def test_the_command_gives_programs_facts_and_asks_them_nothing(home, capsys, monkeypatch):
    status, out, err = command(
        capsys, monkeypatch, "redact", "2", "--yes", "--json", "--home", home
    )
    assert status == 0
    assert json.loads(out) == {
        "id": 2,
        "already": False,
        "lines": 1,
        "same_words": [],
        "left_in": [],
    }
    assert err == ""


@pytest.mark.parametrize("address", ["99", "x", "0+2"])
@pytest.mark.parametrize("more", [[], ["--yes"]])
def test_the_command_answers_a_wrong_number_in_one_line(home, capsys, monkeypatch, address, more):
    status, out, err = command(
        capsys, monkeypatch, "redact", address, "--home", home, *more, answer="y\n"
    )
    assert (status, out) == (1, "")
    assert err.count("\n") == 1


def test_an_index_that_cannot_be_cleaned_is_told_with_what_to_do(home, capsys, monkeypatch):
    monkeypatch.setattr("optchat.log.redact.vacuum", lambda _database: False)
    status, out, _ = command(capsys, monkeypatch, "redact", "1", "--yes", "--home", home)
    assert status == 1
    assert "delete index.sqlite*" in out


# -- what is noted beside the log


def test_what_a_living_process_has_kept_aside_does_not_bring_the_words_back(opened, root):
    memory, other = opened(), opened()
    fields = [
        {"kind": "user", "text": text, "session": "s", "turn": token}
        for text, token in ((SECRET, "t1"), ("kept", "t2"), (SECRET, "t3"))
    ]
    other.notes.append_pending(
        {
            "type": "batch",
            "session": "s",
            "first": 0,
            "entries": [asdict(Entry(**entry)) for entry in fields],
        }
    )
    memory.record([Entry(kind="user", text=SECRET, session="s", turn="t1")])
    memory.redact(0)
    other.notes.commit("x", [], [])
    said = [message.text for message in memory.store.messages(0, 99) if message.kind != "note"]
    assert said == [REDACTED, "kept", SECRET]  # the third was said in a turn of its own
    memory.redact(next(k for k in range(9) if memory.message(k).text == SECRET))
    assert PART not in bytes_of(root)
    assert_sound(memory)


def test_what_a_turn_began_with_is_gone_also_where_the_log_has_other_words(opened, root):
    """A host may mask in its list what it announced in the clear."""
    memory, other = opened(), opened()
    for one, token in ((memory, "t1"), (other, "t2")):
        one.notes.append_pending(
            {
                "type": "draft",
                "session": "s",
                "kind": "user",
                "token": token,
                "text": SECRET,
                "date": "",
                "author": "",
                "owner": "x",
            }
        )
    memory.record(
        [
            Entry(kind="user", text="the key is ***", session="s", turn="t1"),
            Entry(kind="user", text="the key is ***", session="s"),
        ]
    )
    memory.notes.commit(
        "s", [], [{"type": "bind", "session": "s", "id": 1, "uid": "", "turn": "t2"}]
    )
    memory.redact(0)
    memory.redact(1)
    assert PART not in bytes_of(root)
    assert_sound(memory)


def test_an_open_turn_with_the_same_words_is_not_touched(opened):
    memory = opened()
    memory.record([Entry(kind="user", text=SECRET, session="s", turn="t1")])
    memory.notes.append_pending(
        {
            "type": "draft",
            "session": "s",
            "kind": "user",
            "token": "t2",
            "text": SECRET,
            "date": "",
            "author": "",
            "owner": "x",
        }
    )
    memory.redact(0)
    assert [note["text"] for note in memory.notes.notes("draft")] == [SECRET]
