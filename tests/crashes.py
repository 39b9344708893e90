"""Lives of a memory that a disk may fail in at any operation, told by a teller who notes what was
acknowledged.

A life is a function of a ``Teller``. The same life is lived without a fault (to count operations),
with a crash at one of them and then again from what is left on the disk, or with an error that the
code itself has to get over.
"""

import copy
import shutil
from dataclasses import dataclass, field
from unittest import mock

from clock import Clock
from hostsim import SUMMARY, SUMMARY_END
from model import shown_lines, tiles
from soundness import assert_sound

from optchat.base.errors import OptchatError, StoreError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.capture.capture import Capture
from optchat.capture.open_turns import Draft
from optchat.capture.store import Batch
from optchat.log.index import Index
from optchat.memory import Memory

SMALL = Settings(view_budget_chars=2_000)
TRIES_MAX = 4
DRAFT = Draft("begun", "d", "begun and never shown", "2026-05-01T08:00:00.000+00:00", "", "dead")


@dataclass
class Said:
    """One text; ``sure`` once it was acknowledged.

    ``loose``: kept aside by somebody, so that its place is not known.
    """

    text: str
    sure: bool = False
    loose: bool = False


@dataclass
class Host:
    """What a host has of a conversation.

    Its list, the part its database holds, the session, and which turn comes next.
    """

    session: str = "s1"
    live: list = field(default_factory=list)
    saved: list = field(default_factory=list)
    turn: int = 0


class Teller:
    """Says things to the memory in ``root`` and knows which of them must be there whatever happens
    from now on.
    """

    def __init__(self, root, disk=None):
        self.root = root
        self.disk = disk
        self.clock = Clock()
        self.said = []
        self.host = Host()
        self.saves_first = True
        self._opened = []

    def again(self, root):
        """Who goes on after a crash with what is left in ``root``."""
        other = Teller(root)
        other.said, other.host = copy.deepcopy((self.said, self.host))
        other.host.live = copy.deepcopy(other.host.saved)
        other.clock.now, other.saves_first = self.clock.now, self.saves_first
        return other

    def do(self, act):
        """Do something that a fault may hit; the same again until it works, as a caller would."""
        for attempt in range(TRIES_MAX):
            try:
                return act()
            except OptchatError:
                if attempt + 1 == TRIES_MAX:
                    raise
                if attempt and self.disk:
                    self.disk.heal()
        return None

    def open(self):
        memory = self.do(lambda: Memory.open(self.root, SMALL, compact=False, clock=self.clock))
        self._opened.append(memory)
        return memory

    def text(self, what="message", **more):
        """A text that was never said before, with a word of its own and of some length."""
        number = len(self.said)
        self.said.append(
            Said(f"{what} {number} w{number}w" + " and so on" * (number % 5 * 6), **more)
        )
        return self.said[-1].text

    def record(self, memory, count):
        entries = [
            Entry(kind="user" if k % 2 else "talk", text=self.text(), session="r")
            for k in range(count)
        ]
        self.do(lambda: memory.record(entries))
        self.sure(*(entry.text for entry in entries))

    def sure(self, *texts):
        for one in self.said:
            one.sure = one.sure or one.text in texts

    def close(self):
        """Let go of files and locks; nothing of it may be needed."""
        for memory in self._opened:
            memory.close()


# -- lives: what is there before, and what is then done


def nothing(_teller):
    pass


def records(teller):
    """Batches of several sizes over two days."""
    memory = teller.open()
    for count, hours in ((3, 0), (1, 15), (2, 0)):
        teller.clock.forward(hours=hours)
        teller.record(memory, count)
    memory.close()


def left_by_others(teller):
    """What another could not index, a line it was cut in, and the notes of a process that was
    killed.
    """
    memory = teller.open()
    teller.record(memory, 2)
    teller.clock.forward(days=-1)
    with mock.patch.object(Index, "add_messages", _refused):
        teller.record(memory, 3)
    teller.clock.forward(days=1)
    with (teller.root / "main" / "2026-05-01.jsonl").open("ab") as file:
        file.write(b'{"i":5,"kind":"us')
    with Memory.open(
        teller.root.with_name(f"{teller.root.name}-dead"), SMALL, compact=False, clock=teller.clock
    ) as dead:
        texts = [teller.text("aside", sure=True, loose=True) for _ in range(3)]
        entries = [{"kind": "user", "text": text, "session": "d"} for text in texts]
        dead.capture_store().begin(DRAFT)
        dead.notes.append_pending({"type": "batch", "session": "d", "first": 0, "entries": entries})
        (notes,) = (dead.root / "capture").glob("pending-*.jsonl")
        shutil.copy(notes, teller.root / "capture")
    memory.close()


def _refused(*_, **__):
    raise StoreError("cannot use index.sqlite: database or disk is full")


def takes_in(teller):
    """The next to write brings all of it in, also the notes, and those only once."""
    memory = teller.open()
    teller.record(memory, 2)
    store = memory.capture_store()
    text = teller.text("other")
    batch = Batch(
        [Entry(kind="user", text=text, session="o", turn="t1")], gap="summed up", settled=["t2"]
    )
    since = [store.news("o", None)]
    while not teller.do(
        lambda: store.commit("o", batch, since[-1].mark)
    ):  # a first attempt has left something: what it is says the log
        since.append(store.news("o", None))
        batch.entries = [
            entry
            for entry in batch.entries
            if entry.text not in [m.text for m in since[-1].messages]
        ]
    teller.sure(text)
    teller.record(memory, 1)
    memory.close()


def builds(teller):
    """Lines, a view that has to be merged and saved, and the full text, twice."""
    memory = teller.open()
    for count in (14, 5):
        teller.record(memory, count)
        teller.do(lambda: memory.settle(20))
        teller.do(memory.view)
    memory.close()


def derived_files_gone(teller):
    builds(teller)
    for path in [*teller.root.glob("*.sqlite*"), teller.root / "view.json"]:
        path.unlink()


def derived_files_damaged(teller):
    builds(teller)
    for path in teller.root.glob("*.sqlite"):
        path.write_bytes(b"SQLite format 3\x00" + bytes(5000))
    for path in teller.root.glob("*.sqlite-*"):
        path.unlink()
    (teller.root / "view.json").write_bytes(b'{"lines":')


def makes_anew(teller):
    """Whatever is derived is made again."""
    memory = teller.open()
    teller.do(memory.view)
    teller.do(lambda: memory.settle(20))
    teller.do(lambda: memory.search("and"))
    teller.record(memory, 1)
    memory.close()


def converses(teller):
    """Turns of an agent through capture.

    Begun, ended, with a tool and a compression, and given up at the end.
    """
    memory, host = teller.open(), teller.host
    capture = Capture(memory.capture_store(), session=host.session)
    _hook(capture.initialized)
    while host.turn < 5:
        if host.turn == 2 and host.session == "s1":
            _compress(teller, capture)
        _turn(teller, capture, memory)
        host.turn += 1
    if teller.disk:
        teller.disk.heal()
    capture.turn_ended(host.live)
    teller.sure(*texts_in(host.live))
    begun = teller.text("never shown")
    teller.do(lambda: capture.turn_started(begun)) if not teller.disk else capture.turn_started(
        begun
    )
    teller.sure(begun)
    capture.shutdown()
    memory.close()


def _hook(act):
    """Something a host says once; whether it was taken.

    A disk that refused in one turn works in the next.
    """
    try:
        act()
    except OptchatError:
        return False
    return True


def _turn(teller, capture, memory):
    host = teller.host
    teller.clock.forward(seconds=-3600 if host.turn == 3 else 20)
    ask = teller.text("ask")
    if _hook(lambda: capture.turn_started(ask)):
        teller.sure(ask)
    if host.turn == 3:
        _hook(lambda: memory.recall("so on", host.session))
    new = [{"role": "user", "content": ask}]
    if host.turn % 2:
        call = {
            "id": f"c{host.turn}",
            "function": {"name": "terminal", "arguments": teller.text("call")},
        }
        new += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": teller.text("result")},
        ]
    new.append({"role": "assistant", "content": teller.text("answer")})
    live = [*host.live, *new]
    if teller.saves_first:
        host.saved = live
    if _hook(lambda: capture.turn_ended(live)):
        teller.sure(*texts_in(live))
    _hook(lambda: memory.list_shown(host.session, live))
    host.live = host.saved = live
    if teller.disk and teller.disk.broken:
        teller.disk.heal()


def _compress(teller, capture):
    host = teller.host
    if _hook(lambda: capture.ended(host.live)):
        teller.sure(*texts_in(host.live))
    _hook(lambda: capture.switched("s2", parent="s1", reason="compression"))
    host.session = "s2"
    host.live = host.saved = [
        {"role": "user", "content": f"{SUMMARY}\n\n{SUMMARY_END}", "_compressed_summary": True},
        *host.live[-2:],
    ]


def texts_in(messages):
    """What a list says, calls included."""
    for message in messages:
        yield message["content"]
        for call in message.get("tool_calls", ()):
            yield call["function"]["arguments"]


# -- what must hold


def assert_law_7(found, said):
    """Everything acknowledged is there, once and in order.

    Of the one batch that was under way all, a beginning or nothing.
    """
    assert len(found) == len(set(found)), "something is there twice"
    missing = [one.text for one in said if one.sure and one.text not in found]
    assert not missing, f"acknowledged and lost: {missing}"
    firm = [one.text for one in said if not one.loose]
    kept = [text for text in found if text in set(firm)]
    assert kept == sorted(kept, key=firm.index), "out of order"
    assert set(found) <= {one.text for one in said}, "nobody ever said that"
    under_way = [one.text for one in said if not one.sure]
    begun = [text for text in under_way if text in found]
    assert begun == under_way[: len(begun)], "the end of a batch without its beginning"


def assert_whole(memory, said):
    """The log obeys law 7, goes on with the next number, and all that is derived from it comes to
    agree with it.
    """
    total = memory.store.total()
    found = texts_of(memory, said)
    assert_law_7(found, said)
    assert memory.record([Entry(kind="note", text="last")]) == [total]
    assert memory.settle(20)
    assert texts_of(memory, said) == [*found, "last"]
    lines, _ = shown_lines(memory.view())
    assert tiles([(first, end) for first, end, _ in lines], total + 1)
    for id_, text in list(enumerate(found))[
        :: max(1, len(found) // 4)
    ]:  # by the word that only this one has
        assert [hit.id for hit in memory.search(text.split()[2])] == [id_]
    assert_sound(memory)


def texts_of(memory, said):
    """The log, text by text; of a call what it was called with."""
    messages = memory.store.messages(0, memory.store.total())
    return [
        next(one.text for one in said if one.text in message.text)
        if message.kind == "tool"
        else message.text
        for message in messages
    ]
