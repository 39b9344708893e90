"""Several real processes with a model on one memory.

No line is paid for twice beyond the calls that were out when one died.
"""

import os
import time
from collections import Counter

from children import children
from soundness import assert_sound

from optchat.base.record import BUILDERS, Entry
from optchat.base.settings import Settings

JOBS = 4
WRITER = """
from optchat.compaction.model import Model, Reply
from optchat.compaction.prompts import FRAMES

root, book, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])

def note(*words):
    file = os.open(book, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (" ".join(map(str, words)) + chr(10)).encode())
    os.close(file)

def ask(said, model):
    sources = [part.split(f"{chr(10)}</{FRAMES[1]}>")[0] for part in said[1].content.split(f"<{FRAMES[1]}>{chr(10)}")[1:]]
    name = "_".join("".join(source[:24].split()) for source in sources)
    note(os.getpid(), "asked", name, time.time())
    time.sleep(seconds)
    note(os.getpid(), "answered", name, time.time())
    kind = said[1].content.partition("of the kind ")[2].partition(":")[0]
    return Reply((f"{kind}: " if len(sources) == 1 else "") + " ".join(s[:440 // len(sources)].rpartition(" ")[0] for s in sources), 100, 10)

def opened():
    return Memory.open(root, Settings(summarizer="model", compact_jobs=4), model=Model("tiny-1", ask))

def speak(memory, first, count):
    memory.record([Entry(kind="user", text=f"{k} of them: " + "we moved the release with Maria to Friday since three invoices are missing. " * 9) for k in range(first, first + count)])
"""


def calls(book):
    """What was asked and answered: (process, word, source, when)."""
    return [
        (int(pid), word, name, float(when))
        for pid, word, name, when in (line.split() for line in book.read_text().splitlines())
    ]


def until(condition, timeout_s=30):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def all_built(memory, total):
    return memory.store.read(lambda index: index.count("nodes")) == sum(
        total >> level for level in range(total.bit_length())
    )


def test_a_killed_owner_of_calls_is_followed_within_seconds(opened, root, tmp_path):
    book = tmp_path / "book"
    with children() as start:
        owner = start(
            WRITER + "memory = opened()\nspeak(memory, 0, 40)\nsay('open')\ntime.sleep(99)",
            root,
            book,
            0.1,
        )
        owner.hear()
        until(lambda: book.exists() and len(calls(book)) > 24)
        heir = start(WRITER + "memory = opened()\nsay('open')\ntime.sleep(99)", root, book, 0.1)
        heir.hear()
        time.sleep(0.3)
        assert {pid for pid, *_ in calls(book)} == {owner.process.pid}
        owner.kill()
        died = time.time()
        memory = opened(settings=Settings(summarizer="model"))
        until(lambda: all_built(memory, 40), timeout_s=60)
    found = calls(book)
    out = {name for pid, word, name, _ in found if pid == owner.process.pid and word == "asked"}
    out -= {name for pid, word, name, _ in found if pid == owner.process.pid and word == "answered"}
    times = Counter(name for _, word, name, _ in found if word == "asked")
    twice = {name for name, count in times.items() if count > 1}
    assert len(out) <= JOBS
    assert len(twice) <= 2 * JOBS, (
        "those that were out, and those whose lines were back and not on disk yet"
    )
    assert max(times.values()) == 2
    assert sum(times.values()) <= 40 + 38 + 2 * JOBS
    assert min(when for pid, _, _, when in found if pid == heir.process.pid) - died < 4
    assert_sound(memory)
    assert memory.store.read(lambda index: index.rows("SELECT DISTINCT by FROM nodes")) == [
        (BUILDERS.index("model"),)
    ]


def test_a_fork_with_calls_out_has_no_call_answered_twice_and_can_go_on_alone(
    opened, root, tmp_path
):
    code = (
        WRITER
        + """
memory = opened()
speak(memory, 0, 8)
time.sleep(0.3)
child = os.fork()
if child:
    assert memory.settle(30)
    say("parent", child)
    wait_for("end")
    memory.close()
else:
    os.close(1)  # or who reads what the parent says would wait for the child as well
    os.close(2)
    speak(memory, 8, 8)
    time.sleep(60)
    os._exit(0)
"""
    )
    book = tmp_path / "book"
    with children() as start:
        parent = start(code, root, book, 0.1)
        child = parent.hear(60).split()[1]
        try:
            memory = opened(settings=Settings(summarizer="model"))
            until(lambda: all_built(memory, 16))
            found = calls(book)
            assert {pid for pid, *_ in found} == {parent.process.pid}
            assert Counter(word for _, word, *_ in found) == {"asked": 31, "answered": 31}
            assert max(Counter(name for _, word, name, _ in found if word == "asked").values()) == 1
            parent.tell("end")
            parent.rest(30)
            memory.record(
                [
                    Entry(
                        kind="user",
                        text=f"{k} of them: " + "and the museum opens its doors at nine. " * 20,
                    )
                    for k in range(16, 20)
                ]
            )
            until(lambda: all_built(memory, 20), timeout_s=20)
            assert {pid for pid, *_ in calls(book)[62:]} == {int(child)}
        finally:
            os.kill(int(child), 9)
    assert_sound(memory)


def test_processes_that_come_and_go_pay_for_each_line_once(opened, root, tmp_path):
    """Each is there for a moment, says something and closes.

    What was out when it closed may be paid for once more.
    """
    book = tmp_path / "book"
    code = (
        WRITER
        + """
memory = opened()
speak(memory, int(sys.argv[4]), 4)
time.sleep(0.6)
memory.close()
say("closed", time.time())
time.sleep(0.3)
"""
    )
    with children() as start:
        for number in range(4):
            start(code, root, book, 0.05, number * 4).rest(30)
    memory = opened(settings=Settings(summarizer="model"))
    times = Counter(name for _, word, name, _ in calls(book) if word == "asked")
    built = memory.store.read(lambda index: index.count("nodes"))
    assert built >= 12
    assert sum(times.values()) <= built + 4 * JOBS
    assert_sound(memory)
