"""Notes about sessions.

On disk at once, moved into the day's file by whoever commits, never lost, never doubled.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import timedelta

import pytest
from children import Child

from optchat.base.errors import StoreError
from optchat.base.json_line import BadLineError
from optchat.base.record import Entry
from optchat.capture.open_turns import Draft
from optchat.capture.reconcile import Bind
from optchat.capture.store import Batch
from optchat.log.note_lines import decode_note, encode_note


@pytest.fixture
def disk(memory):
    return memory.capture_store()


def draft(token, text="hello", session="s1", owner="me"):
    return Draft(token, session, text, "2026-05-01T09:00:00.000+00:00", "", owner)


def open_turns(store, session="s1"):
    return [found.token for found in store.news(session, None).drafts]


def day_notes(root):
    return [
        json.loads(line)
        for path in sorted((root / "capture").glob("2*.jsonl"))
        for line in path.read_bytes().splitlines()
    ]


def pending(root):
    return sorted(path.name for path in (root / "capture").glob("pending-*.jsonl"))


def log(store, *entries, session="s1", **more):
    batch = Batch([Entry(session=session, **entry) for entry in entries], **more)
    return store.commit(session, batch, store.news(session, None).mark)


def test_a_turn_that_begins_is_on_disk_while_another_process_holds_the_lock(memory, disk, root):
    with memory.store.locked():
        disk.begin(draft("t1"))

    assert len(pending(root)) == 1
    assert open_turns(disk) == ["t1"]


def test_another_memory_sees_a_turn_that_has_begun(disk, opened):
    disk.begin(draft("t1"))

    assert open_turns(opened().capture_store()) == ["t1"]


def test_a_turn_that_is_logged_is_open_no_more_and_leaves_no_note(memory, disk, root):
    disk.begin(draft("t1"))

    assert log(
        disk, {"kind": "user", "text": "hello", "turn": "t1"}, {"kind": "talk", "text": "hi"}
    )

    assert open_turns(disk) == []
    assert [entry.text for entry in memory.session_entries("s1")] == ["hello", "hi"]
    assert day_notes(root) == []
    assert pending(root) == []


def test_a_turn_that_is_not_logged_is_kept_through_commits_restarts_and_a_lost_index(root, opened):
    memory = opened()
    disk = memory.capture_store()
    disk.begin(draft("t1", "never answered"))
    disk.begin(draft("t2"))

    log(disk, {"kind": "user", "text": "hello", "turn": "t2"})

    assert open_turns(disk) == ["t1"]
    assert [note["token"] for note in day_notes(root)] == ["t1"]
    memory.close()
    for path in root.glob("index.sqlite*"):
        path.unlink()
    assert open_turns(opened().capture_store()) == ["t1"]


def test_a_turn_settled_without_a_message_stays_settled_when_the_index_is_made_anew(
    memory, disk, root
):
    disk.begin(draft("t1", None))
    log(disk, settled=["t1"])
    assert open_turns(disk) == []

    memory.store.rebuild_index()

    assert open_turns(disk) == []
    assert open_turns(memory.capture_store()) == []


def test_binds_come_once_to_one_who_reads_on(disk):
    log(disk, {"kind": "user", "text": "hello"})
    mark = disk.news("s1", None).mark
    assert disk.commit("s1", Batch(binds=[Bind(0, "u-1")]), mark)

    news = disk.news("s1", mark)

    assert not news.fresh
    assert news.binds == [Bind(0, "u-1")]
    assert disk.news("s1", news.mark).binds == []


def test_nothing_is_written_when_others_have_logged_since_the_mark(disk, opened, memory):
    mark = disk.news("s1", None).mark
    opened().record([Entry(kind="user", text="from elsewhere", session="s1")])

    written = disk.commit("s1", Batch([Entry(kind="user", text="mine", session="s1")]), mark)

    assert not written
    assert [entry.text for entry in memory.session_entries("s1")] == ["from elsewhere"]


def test_other_sessions_do_not_matter_to_the_mark(disk, memory):
    mark = disk.news("s1", None).mark
    memory.record([Entry(kind="user", text="from elsewhere", session="s2")])

    assert disk.commit("s1", Batch([Entry(kind="user", text="mine", session="s1")]), mark)


def test_a_branch_belongs_to_its_parents_family(disk):
    log(disk, {"kind": "user", "text": "hello"})
    disk.fork("s2", "s1", ["t9"], whole=False)
    log(disk, {"kind": "user", "text": "in the branch"}, session="s2")

    news = disk.news("s2", None)

    assert [message.text for message in news.messages] == ["hello", "in the branch"]
    assert [(fork.child, fork.parent, fork.at, fork.turns) for fork in news.forks] == [
        ("s2", "s1", 1, frozenset({"t9"}))
    ]
    assert [message.text for message in disk.news("s1", None).messages] == [
        "hello",
        "in the branch",
    ]


def test_of_summaries_only_the_last_counts(disk):
    log(disk, gap="first")
    log(disk, gap="second")

    assert disk.news("s1", None).gap == "second"
    assert disk.news("s2", None).gap == ""


def test_turns_of_any_session_grow_overdue(disk):
    disk.begin(draft("t1", session="s1"))
    disk.begin(draft("t2", session="s2"))

    assert [found.token for found in disk.overdue(disk.now() + timedelta(days=1))] == ["t1", "t2"]
    assert disk.overdue(disk.now() - timedelta(days=1)) == []


def test_what_a_dead_process_jotted_down_is_found_and_taken_over(disk, root, memory):
    with contextlib.closing(
        Child(
            """
        from optchat.capture.open_turns import Draft
        store = Memory.open(Path(sys.argv[1]), Settings(), compact=False).capture_store()
        store.begin(Draft("t1", "s1", "hello", "2026-05-01T09:00:00.000+00:00", "", "other"))
        say("done")
        os.kill(os.getpid(), 9)
        """,
            root,
        )
    ) as process:
        assert process.hear() == "done"
        process.process.wait(10)
    assert open_turns(disk) == ["t1"]
    assert len(pending(root)) == 1

    log(disk, {"kind": "user", "text": "something else", "turn": "t2"})

    assert pending(root) == []
    assert not list((root / "capture").glob("*.lock"))
    assert open_turns(disk) == ["t1"]


def test_what_a_living_process_jotted_down_is_left_to_it(disk, root):
    with contextlib.closing(
        Child(
            """
        from optchat.capture.open_turns import Draft
        store = Memory.open(Path(sys.argv[1]), Settings(), compact=False).capture_store()
        store.begin(Draft("t1", "s1", "hello", "2026-05-01T09:00:00.000+00:00", "", "other"))
        say("done")
        wait_for("end")
        """,
            root,
        )
    ) as process:
        assert process.hear() == "done"

        log(disk, {"kind": "user", "text": "mine", "turn": "t2"})

        assert len(pending(root)) == 1
        assert open_turns(disk) == ["t1"]


def test_a_batch_is_kept_aside_while_the_lock_is_stuck_and_logged_once_it_is_free(
    memory, disk, root, opened, monkeypatch
):
    other = opened()
    mark = disk.news("s1", None).mark
    monkeypatch.setattr("optchat.log.session_notes.LOCK_WAIT_S", 0.05)
    with other.store.locked():
        assert disk.commit("s1", Batch([Entry(kind="user", text="kept aside", session="s1")]), mark)
    assert any("lock" in warning for warning in memory.warnings)
    assert list(memory.session_entries("s1")) == []
    for one in (memory, other):
        assert one.status()["kept_aside"] == 1
        assert any("1 of the newest messages" in warning for warning in one.status()["warnings"])

    log(disk, {"kind": "user", "text": "of another session"}, session="s2")

    assert [entry.text for entry in memory.session_entries("s1")] == ["kept aside"]
    for one in (memory, other):
        assert one.status()["kept_aside"] == 0
        assert not any("newest messages" in warning for warning in one.status()["warnings"])
    log(disk, {"kind": "user", "text": "more"}, session="s2")
    assert [entry.text for entry in memory.session_entries("s1")] == ["kept aside"]


def test_a_batch_kept_aside_is_not_logged_again_when_its_list_has_brought_it(
    memory, disk, opened, monkeypatch
):
    other = opened()
    mark = disk.news("s1", None).mark
    monkeypatch.setattr("optchat.log.session_notes.LOCK_WAIT_S", 0.05)
    entry = Entry(kind="user", text="kept aside", session="s1")
    with other.store.locked():
        disk.commit("s1", Batch([entry]), mark)

    disk.commit(
        "s1",
        Batch([entry, Entry(kind="talk", text="and answered", session="s1")]),
        disk.news("s1", None).mark,
    )

    assert [found.text for found in memory.session_entries("s1")] == ["kept aside", "and answered"]


def test_a_batch_of_a_dead_process_is_logged_by_the_next(memory, disk, root):
    with contextlib.closing(
        Child(
            """
        from optchat.capture.store import Batch
        import optchat.log.session_notes as capture
        capture.LOCK_WAIT_S = 0.05
        memory = Memory.open(Path(sys.argv[1]), Settings(), compact=False)
        store = memory.capture_store()
        mark = store.news("s1", None).mark
        say("ready")
        wait_for("go")
        store.commit("s1", Batch([Entry(kind="user", text=text, session="s1") for text in ("one", "two", "two")]), mark)
        say("done")
        os.kill(os.getpid(), 9)
        """,
            root,
        )
    ) as process:
        assert process.hear() == "ready"
        with memory.store.locked():
            process.tell("go")
            assert process.hear() == "done"
        process.process.wait(10)
    memory.record([Entry(kind="user", text="two", session="s1")])

    log(disk, {"kind": "user", "text": "elsewhere"}, session="s2")

    assert [entry.text for entry in memory.session_entries("s1")] == ["two", "one", "two"]
    assert pending(root) == []


def test_closing_leaves_neither_file_nor_lock_behind(root, opened):
    memory = opened()
    disk = memory.capture_store()
    disk.begin(draft("t1"))
    memory.close()

    assert sorted(os.listdir(root / "capture")) == ["2026-05-01.jsonl"]
    assert open_turns(opened().capture_store()) == ["t1"]


def test_a_torn_note_is_stepped_over(root, opened):
    memory = opened()
    disk = memory.capture_store()
    disk.begin(draft("t1"))
    log(disk, {"kind": "user", "text": "hello", "turn": "t2"})
    memory.close()
    with (root / "capture" / "2026-05-01.jsonl").open("ab") as file:
        file.write(b'{"type":"draft","session":"s1","tok')
    store = opened().capture_store()
    assert open_turns(store) == ["t1"]

    store.begin(draft("t3"))
    log(store, {"kind": "user", "text": "more", "turn": "t4"})

    assert sorted(open_turns(store)) == ["t1", "t3"]


def test_a_full_disk_is_told_and_nothing_is_taken_for_kept(disk, monkeypatch):
    def full(*_):
        raise StoreError("cannot append: No space left on device")

    monkeypatch.setattr("optchat.log.files.append", full)

    with pytest.raises(StoreError):
        disk.begin(draft("t1"))


def test_every_note_comes_back_as_it_was_and_a_flipped_byte_is_found():
    note = {"type": "draft", "session": "s1", "text": "näh 😀\n", "turns": ["a"], "none": None}
    line = encode_note(note)

    assert decode_note(line.rstrip(b"\n")) == note
    assert decode_note(encode_note(note | {"text": "\ud83d"})[:-1])["text"] == "�"
    for at in range(len(line) - 1):
        with pytest.raises(BadLineError):
            decode_note(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 : -1])


def test_open_turns_come_in_the_order_in_which_they_were_begun_whatever_clocks_say(disk):
    def begun(token, date, owner):
        disk.begin(Draft(token, "s1", token, date, "", owner))

    begun("first", "2026-10-25T02:50:00.000+02:00", "me")
    begun("second", "2026-10-25T02:10:00.000+01:00", "me")  # later, though it reads as earlier
    begun("third", "2026-10-25T02:05:00.000+01:00", "me")  # the clock was put back
    begun("between", "2026-10-25T10:00:00.000+09:00", "you")

    assert open_turns(disk) == ["first", "between", "second", "third"]


def test_open_turns_of_following_sessions_come_in_their_order(disk):
    """Whatever the sessions are called: a set of names has another order in each process."""
    for number in range(6):
        disk.begin(
            Draft(
                str(number),
                f"s{number}",
                "again",
                f"2026-05-01T12:00:0{5 - number}.000+02:00",
                "",
                "me",
            )
        )
        disk.fork(f"s{number + 1}", f"s{number}", [str(number)], whole=True)

    assert [draft.token for draft in disk.news("s6", None).drafts] == [
        str(number) for number in range(6)
    ]
