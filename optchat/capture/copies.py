"""Which stretches of a log are copies: a conversation listed and logged once more. Pure.

A host may show a whole old list under a new session id (after ``/new``, in a branch, at exit), and
older builds took it for something new: the same kinds and words in the same order, in one batch,
after the first. People repeat themselves too, so that words alone are no proof; what is,
``_Run.proves`` says. Better a copy is not named than something hidden that was really said.

O(N) time. Called by ``memory/check.py`` and ``memory/hiding.py``, which read the log.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from ..log.hidden import Piece
from .prints import ANNOUNCED, CALLED, NAMED, OPENS, SILENT, Places, Prints, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..base.record import Message

LEAST: Final = 4
LEAST_TURNS: Final = 2
"""Messages and turns of a copy without any id; a single turn needs more to be named."""
_TELLING_CHARS: Final = 32
"""A single turn is named if its words are as long together: "ok" and "done" are said every day."""
_DISTINCT: Final = 3
_MANY: Final = 8
"""Messages of a copy whose texts are all alike: fewer are named only where three of them differ."""
_AT_ONCE_S: Final = 2
"""Between two messages of one batch, by the writer's clock: no two turns are that quick."""
_ROW_S: Final = 5
"""Between a message as it was logged and the host's row of it, whose date a copy may have."""
_SPREAD_S: Final = 60
"""What repeats the dates as well is a copy, if they lie at least so far apart."""
_LOOKED_AT: Final = 64
"""Earlier places a copy is looked for at, since the same two messages may begin many conversations;
and messages it is followed for without a sign that it is one."""
_SKIPPED: Final = 16
"""Messages that a copy may lack in one place: what was taken back, and what no list shows."""


class Stretch(NamedTuple):
    """Messages that are copies, side by side in the log: ``session`` repeats ``of_session``."""

    pieces: tuple[Piece, ...]
    session: str
    of_session: str

    @property
    def first(self) -> int:
        """The first copy."""
        return self.pieces[0].first

    @property
    def end(self) -> int:
        """The message after the last copy."""
        return self.pieces[-1].first + self.pieces[-1].length

    @property
    def of(self) -> tuple[int, int]:
        """The first and the last message that they repeat."""
        last = max(piece.of + piece.length - 1 for piece in self.pieces)
        return min(piece.of for piece in self.pieces), last


def is_same(copy: Message, original: Message) -> bool:
    """Whether two messages are of one kind and say the same, as a host gives a text back."""
    return copy.kind == original.kind and words_of(copy) == words_of(original)


class CopyFinder:
    """Takes in every message of a log, in any order, and then finds the copies."""

    def __init__(self) -> None:
        self._prints = Prints()
        self._of = array("i")  # what a copy repeats; -1: it is none
        self._seen = array("i")  # the same beginning, seen before; -1: never

    def add(self, message: Message) -> None:
        """A message of the log."""
        self._prints.add(message)

    def find(self) -> list[Stretch]:
        """The copies, oldest first."""
        self._prints.link()
        total, at = len(self._prints), 0
        self._of, self._seen = (array("i", [-1]) * total for _ in range(2))
        self._named = Places(total, self._name_of)
        self._begun, self._dated = Places(total, self._begin_of), Places(total, self._dated_of)
        found: list[_Run] = []
        while at < total:
            run = self._best(at)
            if run is None:
                self._note(at)
                at += 1
                continue
            found.append(run)
            for original in run.originals:
                self._of[at] = original
                self._note(at)
                at += 1
        return list(self._joined(found))

    # -- inside

    def _note(self, at: int) -> None:
        """From now on this message can be what a later one repeats."""
        prints = self._prints
        flags = prints.flags[at]
        if flags & (NAMED | CALLED) and self._named.find(self._name_of(at)) < 0:
            self._named.put(at)
        if not flags & OPENS or prints.following[at] < 0:
            return
        if flags & ANNOUNCED or self._of[at] >= 0:
            self._seen[at] = self._begun.find(self._begin_of(at))
            self._begun.put(at)
        else:
            self._dated.put(at)

    def _name_of(self, at: int) -> int:
        return hash((self._prints.names[at], self._prints.keys[at]))

    def _begin_of(self, at: int) -> int:
        return hash((self._prints.keys[at], self._prints.keys[self._prints.following[at]]))

    def _dated_of(self, at: int) -> int:
        return hash((self._begin_of(at), self._prints.dates[at]))

    def _best(self, at: int) -> _Run | None:
        """The longest copy that begins here."""
        best: _Run | None = None
        for original in self._candidates(at):
            run = self._run(at, original)
            if run.proves() and (best is None or run.end > best.end):
                best = run
                if run.end - at >= _LOOKED_AT:
                    break  # it is the one; a long copy must not be compared with many
        return best

    def _candidates(self, at: int) -> Iterator[int]:
        prints = self._prints
        flags = prints.flags[at]
        if not prints.keys[at] or flags & ANNOUNCED:
            return
        if flags & (NAMED | CALLED) and (first := self._named.find(self._name_of(at))) >= 0:
            yield first
        if not flags & OPENS or prints.following[at] != at + 1:
            return
        original = self._begun.find(self._begin_of(at))
        for _ in range(_LOOKED_AT):
            if original < 0:
                break
            yield original
            original = self._seen[original]
        if prints.dates[at] and (original := self._dated.find(self._dated_of(at))) >= 0:
            yield original

    def _run(self, at: int, original: int) -> _Run:
        """The messages from ``at`` on that go on as those from ``original`` on."""
        prints = self._prints
        run, copy = _Run(prints, at), at
        while original >= 0 and self._fits(copy, original, first=copy == at):
            run.add(copy, original, self._of[original] if self._of[original] >= 0 else original)
            copy += 1
            if copy >= len(prints) or prints.sessions[copy] != prints.sessions[at]:
                break
            if not prints.keys[copy] or run.is_hopeless():
                break
            original = self._next(copy, original, at)
        return run

    def _next(self, copy: int, original: int, before: int) -> int:
        """What a copy goes on with: the next message, or one soon after where it lacks some."""
        prints, silent = self._prints, True
        at = prints.following[original]
        for _ in range(_SKIPPED):
            if not 0 <= at < before:
                return -1
            if prints.keys[at] == prints.keys[copy] and (silent or self._goes_on(copy, at)):
                return at
            silent = silent and bool(prints.flags[at] & SILENT)
            at = prints.following[at]
        return -1

    def _goes_on(self, copy: int, original: int) -> bool:
        after, then = self._prints.following[copy], self._prints.following[original]
        keys = self._prints.keys
        return after == copy + 1 and then >= 0 and keys[after] == keys[then]

    def _fits(self, copy: int, original: int, *, first: bool) -> bool:
        """Whether one may be a copy of the other: same words; no turn, id or time of its own."""
        prints = self._prints
        if prints.keys[copy] != prints.keys[original] or prints.flags[copy] & ANNOUNCED:
            return False
        if prints.same_id(copy, original, NAMED | CALLED):
            return True
        if prints.other_id(copy, original):
            return False
        at_once = first or prints.near(copy - 1, copy, _AT_ONCE_S)
        return at_once or prints.near(copy, original, _ROW_S)

    def _joined(self, runs: list[_Run]) -> Iterator[Stretch]:
        """Runs as stretches; those that lie side by side and repeat one session are one."""
        names, sessions = self._prints.session_names(), self._prints.sessions
        pieces: list[Piece] = []
        for at, run in enumerate(runs):
            pieces += run.pieces()
            if at + 1 < len(runs) and self._goes_with(run, runs[at + 1]):
                continue
            session, of_session = sessions[run.first], sessions[run.originals[0]]
            yield Stretch(tuple(pieces), names[session], names[of_session])
            pieces = []

    def _goes_with(self, run: _Run, after: _Run) -> bool:
        """Whether two runs are one stretch: side by side, and of the same two sessions."""
        sessions = self._prints.sessions
        if after.first != run.end or sessions[after.first] != sessions[run.first]:
            return False
        return sessions[after.originals[0]] == sessions[run.originals[0]]


class _Run:
    """Messages side by side from ``first`` on and what they repeat, with what speaks for it."""

    def __init__(self, prints: Prints, first: int) -> None:
        self.first = first
        self.originals = array("i")
        self._prints = prints
        self._named = False  # the host gave one of them the id of what it repeats
        self._calls = False  # an endpoint gave a call, or its result, that id
        self._announced = False  # of what they repeat, a turn was announced
        self._timed = True  # each has the date of what it repeats
        self._turns = 0
        self._chars = 0
        self._words: set[int] = set()

    @property
    def end(self) -> int:
        """The message after the last copy."""
        return self.first + len(self.originals)

    def add(self, copy: int, original: int, root: int) -> None:
        """One more message; ``root``: what it repeats, where ``original`` is a copy itself."""
        prints = self._prints
        self.originals.append(root)
        self._named |= prints.same_id(copy, original, NAMED)
        self._calls |= prints.same_id(copy, original, CALLED)
        if prints.flags[copy] & OPENS:
            self._turns += 1
            self._announced |= bool(prints.flags[root] & ANNOUNCED)
        self._timed = self._timed and prints.dates[copy] == prints.dates[root] != 0
        self._chars += prints.chars[copy]
        if len(self._words) < _DISTINCT:
            self._words.add(prints.keys[copy])

    def is_hopeless(self) -> bool:
        """Whether it has gone on for long with nothing that could prove anything."""
        if len(self.originals) < _LOOKED_AT or self._named or self._calls or self._announced:
            return False
        return not self._timed or self._spread() < _SPREAD_S

    def proves(self) -> bool:
        """Whether it must be a copy.

        A host gives an id once, and so does an endpoint give that of a call: one that is there
        twice is enough. Without any, what is said by a user is announced when its turn begins; of a
        copy nobody was told, and more than one turn came in at once. A single turn must have come
        in alone and under another session. What was never announced is a copy if it repeats the
        dates as well.
        """
        if self._named or (self._calls and len(self.originals) > 1):
            return True
        if self._turns < LEAST_TURNS:
            return self._proves_a_turn()
        least = LEAST if len(self._words) >= _DISTINCT else _MANY
        if len(self.originals) < least:
            return False
        return self._announced or (self._timed and self._spread() >= _SPREAD_S)

    def pieces(self) -> Iterator[Piece]:
        """It as few pieces."""
        begin = 0
        for at in range(1, len(self.originals) + 1):
            if at == len(self.originals) or self.originals[at] != self.originals[at - 1] + 1:
                yield Piece(self.first + begin, self.originals[begin], at - begin)
                begin = at

    # -- inside

    def _proves_a_turn(self) -> bool:
        if not self._announced or len(self.originals) < LEAST_TURNS or self._chars < _TELLING_CHARS:
            return False
        sessions = self._prints.sessions
        return sessions[self.first] != sessions[self.originals[0]] and self._is_alone()

    def _is_alone(self) -> bool:
        """Whether nothing but these messages came in with them, unless its turn was announced."""
        prints, first, end = self._prints, self.first, self.end
        if first and self._came_with(first - 1, first):
            return False
        announced = end < len(prints) and bool(prints.flags[end] & ANNOUNCED)
        return end == len(prints) or announced or not self._came_with(end - 1, end)

    def _came_with(self, one: int, other: int) -> bool:
        sessions = self._prints.sessions
        return sessions[one] == sessions[other] and self._prints.near(one, other, _AT_ONCE_S)

    def _spread(self) -> int:
        return abs(self._prints.dates[self.end - 1] - self._prints.dates[self.first])
