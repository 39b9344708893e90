"""Memories as an older build doubled them, with the repeats that people really make beside."""

from dataclasses import replace
from datetime import datetime, timedelta

from optchat.base.record import Entry

HELLO = [("user", "hello, are you there?"), ("talk", "Hello! I am here. What shall we do?")]
TIMER = [
    ("user", "set the kitchen timer to ten minutes"),
    ("tool", "timer(minutes=10)"),
    ("echo", "started"),
    ("talk", "Done: it rings in ten minutes."),
]
CAT = [("user", "my cat is called Minka"), ("talk", "A lovely name. I will remember Minka.")]
OK = [("user", "ok"), ("talk", "Done.")]


class Life:
    """Entries as capture logs them, turn by turn, with or without a host's ids."""

    def __init__(self, *, named=False):
        self.named = named
        self.now = datetime.fromisoformat("2026-05-01T09:00:00+02:00")
        self.log = []  # entries, by id
        self._turns = 0
        self._calls = 0

    def turn(self, session, turn):
        """A turn that is announced, said and logged; the ids of its messages."""
        self._turns += 1
        self.now += timedelta(minutes=3)
        entries = []
        for place, (kind, text) in enumerate(turn):
            opens = (
                {"turn": f"t{self._turns:015x}", "date": self._stamp()}
                if kind == "user"
                else {"date": self._stamp(seconds=20)}
            )
            self._calls += kind == "tool"
            call = (
                {"call": f"call_{self._calls:08x}a1B2c3D4", "tool": "timer"}
                if kind in ("tool", "echo")
                else {}
            )
            uid = {"uid": f"{self._turns:016x}{place:016x}"} if self.named else {}
            entries.append(Entry(kind=kind, text=text, session=session, **opens, **call, **uid))
        return self._say(entries)

    def again(self, ids, session, *, dated=False):
        """The same messages listed under a session and logged again at once, unannounced.

        ``dated``: with the dates of the host's rows.
        """
        self.now += timedelta(minutes=1)
        entries = []
        for id_ in ids:
            said = self.log[id_]
            entries.append(
                replace(
                    said,
                    session=session,
                    turn="",
                    date=said.date if dated or self.named else self._stamp(),
                    unshown=False,
                )
            )
        return self._say(entries)

    def _say(self, entries):
        first = len(self.log)
        self.log += entries
        return list(range(first, len(self.log)))

    def _stamp(self, seconds=0):
        return (self.now + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def exit_after_new(life):
    """Two turns, /new, /exit: the host hands the old list over under the new id."""
    first = [id_ for turn in (HELLO, TIMER) for id_ in life.turn("A", turn)]
    return [(life.again(first, "B"), first)]


def branch(life):
    """Three turns, a branch nobody was told of, a turn in it: its list begins with all of them."""
    first = [id_ for turn in (HELLO, TIMER, CAT) for id_ in life.turn("A", turn)]
    copies = life.again(first, "B", dated=True)
    life.turn("B", [("user", "and my dog Rex"), ("talk", "Rex it is.")])
    return [(copies, first)]


def resume(life):
    """A turn, /new, a turn, /resume of the first, /exit: it is handed the other's list."""
    life.turn("A", HELLO)
    other = life.turn("B", CAT)
    return [(life.again(other, "A"), other)]


WAYS = {"exit after /new": exit_after_new, "a branch": branch, "a resume": resume}


def repeats(life):
    """What people really say again."""
    for turn in (OK, OK, TIMER, HELLO, CAT, OK):
        life.turn("A", turn)
    for turn in (HELLO, TIMER, CAT):  # the same beginning on another day
        life.turn("C", turn)
