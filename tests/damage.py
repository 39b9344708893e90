"""A memory with every kind of file in it, as bytes that tests lay out, damage and open, and a
literal judge of what must then be true.
"""

import contextlib
import json

from clock import Clock

from optchat.base.address import Place
from optchat.base.errors import OptchatError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.capture.open_turns import Draft
from optchat.capture.reconcile import Bind
from optchat.capture.store import Batch
from optchat.compaction import usage_sums
from optchat.memory import Memory
from optchat.tree import saved_view

SETTINGS = Settings(view_budget_chars=2_000)
DAYS = 3
TOTAL = 31
TRUTH = ("main", "tree", "capture", "usage.jsonl")


class Life:
    """The files of one memory, by name.

    ``closed`` as it was left, ``running`` as it was while a process had it open.
    """

    def __init__(self, root):
        self.clock = Clock()
        memory = Memory.open(root, SETTINGS, compact=False, clock=self.clock)
        disk = memory.capture_store()
        for day in range(DAYS):
            self._live_a_day(memory, disk, day)
            self.clock.forward(days=1)
        memory.view()
        memory.record(
            [Entry(kind="user", text="bye", session="s2")]
        )  # last of all, and short: it is cut at every byte
        assert memory.settle(30)
        saved_view.save(
            root / "context.json", saved_view.SavedView((Place(3, 0), Place(2, 2)), 32_768, 1)
        )
        (root / "config.json").write_bytes(b'{"view_budget_chars": 2000}\n')
        state = usage_sums.State()
        for call in range(3):
            event = usage_sums.Event(
                "2026-05-01T09:00:00+00:00", "line", "small", (0, call), 1, 100, 0, 10
            )
            state = state.after(event)
            with (root / "usage.jsonl").open("ab") as file:
                file.write(usage_sums.encode(event, state))
        disk.begin(self._draft("last", 2))
        self.messages = [memory.message(id_) for id_ in range(TOTAL)]
        self.running = _read(root)
        memory.close()
        self.closed = _read(root)

    def _live_a_day(self, memory, disk, day):
        session = f"s{day}"
        entries = [
            Entry(
                kind=("user", "talk")[k % 2],
                text=f"message {day} {k} ä中 " + "words " * (k * 5 % 29),
                session=session,
                uid=f"u{day}-{k}" if k % 3 == 0 else "",
                author="Ana" if k % 4 == 0 else "",
            )
            for k in range(9)
        ]
        memory.record(entries)
        disk.begin(self._draft("open", day))
        disk.begin(self._draft("answered", day))
        disk.fork(f"{session}b", session, ["t"], whole=False)
        memory.notes.append_pending({"type": "shown", "session": session, "up_to": 5, "undone": 0})
        said = Entry(kind="user", text=f"asked {day}", session=session, turn=f"answered{day}")
        batch = Batch(
            [said], binds=[Bind(1, f"bound{day}")], settled=[f"gone{day}"], gap=f"summary {day}"
        )
        assert disk.commit(session, batch, disk.news(session, None).mark)
        assert memory.settle(30)

    def _draft(self, name, day):
        return Draft(
            f"{name}{day}",
            f"s{day}",
            "asked and never answered",
            self.clock().isoformat(),
            "",
            "me",
        )

    def open(self, files, root):
        """Lay the files out and open them."""
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        return Memory.open(root, SETTINGS, compact=False, clock=self.clock)


def _read(root):
    found = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    return {
        name: data for name, data in found.items() if data and not name.endswith(("-shm", ".lock"))
    }


def room_of(name):
    return name.partition("/")[0]


def without_derived(files):
    return {name: data for name, data in files.items() if not name.startswith(("index", "search"))}


def use(memory):
    """Everything a host does with a memory, but for writing. Only our own errors may come of it."""
    uses = [
        memory.view,
        memory.status,
        lambda: memory.zoom(3),
        lambda: memory.zoom("0+8"),
        lambda: memory.date("8+4"),
        lambda: memory.search("message words"),
        lambda: list(memory.session_entries("s1")),
        lambda: memory.recall("message 2", "other"),
        lambda: memory.recall("message 2", "s0"),
        lambda: memory.capture_store().news("s1", None),
        lambda: memory.capture_store().overdue(memory.store.clock()),
    ]
    for one in uses:
        with contextlib.suppress(OptchatError):
            one()


def assert_goes_on(memory, total=TOTAL):
    """What is said next has the next number, and the tree is completed."""
    assert memory.record([Entry(kind="user", text="afterwards", session="s2")]) == [total]
    assert memory.message(total).text == "afterwards"
    assert memory.settle(30)
    assert len(memory.view()) <= SETTINGS.view_budget_chars


def lines_hit(before, first, end):
    """Numbers of the lines that bytes [first, end) lie in.

    A line's newline is the next line's matter too.
    """
    hit, at = set(), 0
    for number, line in enumerate(before.splitlines(keepends=True)):
        if first < at + len(line) and end > at:
            hit.add(number)
            if first <= at + len(line) - 1 < end:
                hit.add(number + 1)
        at += len(line)
    return hit


# -- what can be shown


def must_show(room, before, after):
    """Whether a change of a file of the truth is one that checksums, numbers and form show.

    "damage", "note", or "" for not at all.

    Said from the format's definition: a checksum covers all of a line. Lines are compared one by
    one; what only looks like the beginning of a line may be what a crash left.
    """
    if _values(before) == _values(after):
        return ""
    old, new = before.split(b"\n"), after.split(b"\n")
    if len(old) == len(new):
        verdicts = [_of_line(room, a, b) for a, b in zip(old, new, strict=True) if a != b]
        return "damage" if "damage" in verdicts else "note" if "note" in verdicts else ""
    same = {*old}
    odd = [line for line in new if line and line not in same]
    if room != "main" and all(any(line and was.startswith(line) for was in old) for line in odd):
        return "note"
    return "damage"


def _values(data):
    try:
        return [json.loads(line) for line in data.split(b"\n") if line.strip()]
    except ValueError:
        return data


def _of_line(room, old, new):
    try:
        was, is_ = json.loads(old), json.loads(new)
    except ValueError:
        if room != "main" and old.startswith(new):
            return "note"
        return "damage" if old.strip() else "note"
    if was == is_:
        return ""
    return "damage"
