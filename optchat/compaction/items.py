"""Items, their words and clauses, and windows: how a clause is shortened to its weightiest stretch.

An item is one message's share of a line: a kind and its text. A segment is one clause of it; a
window is a run of whole words of a segment. All items of a line share one list of words, because
weighing them at once is what makes a line fast. Does not choose between segments (``choice.py``)
nor know shapes of sources (``clauses.py``).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from .lexicon import GLUE_WEIGHT, HAN_WORDS, STATUS, weigh
from .plain import clip

GAP: Final = "…"
NAME_WEIGHT: Final = 1.0
"""From here on a word counts as one a reader would look for."""


@dataclass(slots=True)
class Item:
    """One message's share of a line: words ``low`` to ``high`` (exclusive)."""

    kind: str
    low: int
    high: int
    from_json: bool = False


@dataclass(slots=True)
class Segment:
    """One clause.

    Words ``low`` to ``high`` of one item, and what it is worth for its place and shape.
    """

    item: int
    low: int
    high: int
    factor: float
    flags: int
    status: list[int]
    """Positions of the words that negate, condition or plan."""
    size: int
    """Bytes of UTF-8."""


class Window(NamedTuple):
    """Words low to high of one segment as text[start:end], and the status words outside that it
    must not lose.
    """

    start: int
    end: int
    size: int
    """Bytes of UTF-8, status words and their gaps included."""
    value: float
    low: int
    high: int
    before: str = ""
    after: str = ""


_HAN: Final = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA: Final = r"\u3041-\u30ff\uff66-\uff9f"
_POINTS: Final = r"\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_CJK: Final = re.compile(f"[{_HAN}{_KANA}]")
_CJK_WORD: Final = re.compile(
    rf"\n|{'|'.join(HAN_WORDS)}"
    r"|[\u30a0-\u30ff\uff66-\uff9f\u3099\u309a]+|[\u3041-\u309f]+"
    rf"|[不没沒未无無别勿若]?(?:[{_HAN}][\ufe00-\ufe0f\U000e0100-\U000e01ef]*){{1,2}}"
    rf"|[{_POINTS}]+|[^\s{_HAN}{_KANA}{_POINTS}]+"
)
_LONG_WORD: Final = 60
"""Characters from which a word of a script without spaces (Thai, Lao, Khmer) is divided."""
_CHUNK: Final = 36
"""Bytes of the pieces it is divided into: some twelve letters."""


class Words:
    """The words of all items of a line.

    Where they stand in ``text``, what they weigh, and their keys, flags and shapes.
    """

    def __init__(self, texts: list[str]) -> None:
        """Each text has single spaces, and line breaks as words of their own."""
        self.text = " ".join(texts)
        self.ascii = self.text.replace(GAP, "").isascii()
        """But for gaps: every line has some, and the slow ways are for other scripts."""
        self.bounds = [0]
        if self.ascii or not _CJK.search(self.text):
            self._divide_at_spaces(texts)
        else:
            self._divide_scripts(texts)
        weights, keys, flags, shapes = zip(*map(weigh, self.words), strict=True)
        self.weights: list[float] = list(weights)
        self.keys: tuple[str, ...] = keys
        self.flags: tuple[int, ...] = flags
        self.shapes: tuple[str, ...] = shapes

    def _divide_at_spaces(self, texts: list[str]) -> None:
        self.words: list[str] = []
        for text in texts:
            self.words += text.split(" ")
            self.bounds.append(len(self.words))
        if not self.ascii and max(map(len, self.words)) > _LONG_WORD:
            self._divide_scripts(texts)
            return
        self.starts = list(accumulate([len(word) + 1 for word in self.words], initial=0))

    def _divide_scripts(self, texts: list[str]) -> None:
        """Words of scripts without spaces, by the kind of character."""
        self.words, self.starts, self.bounds, base = [], [], [0], 0
        for text in texts:
            for match in _CJK_WORD.finditer(text):
                at = base + match.start()
                for piece in _chunks(match[0]):
                    self.words.append(piece)
                    self.starts.append(at)
                    at += len(piece)
            self.bounds.append(len(self.words))
            base += len(text) + 1
        self.starts.append(base)

    def weigh_up(self) -> None:
        """Sums from the left and places of names, once the weights are final."""
        self.names = [at for at, weight in enumerate(self.weights) if weight >= NAME_WEIGHT]
        self.sums = list(accumulate(self.weights, initial=0.0))

    def span(self, low: int, high: int) -> tuple[int, int]:
        """Where words low to high begin and end in the text."""
        return self.starts[low], self.starts[high - 1] + len(self.words[high - 1])

    def bytes(self, start: int, end: int) -> int:
        """Bytes of UTF-8 of text[start:end]."""
        return (
            end - start + 2 * self.text.count(GAP, start, end)
            if self.ascii
            else len(self.text[start:end].encode())
        )

    def whole(self, seg: Segment) -> Window:
        """All of a segment."""
        start, end = self.span(seg.low, seg.high)
        return Window(
            start, end, seg.size, self.sums[seg.high] - self.sums[seg.low], seg.low, seg.high
        )

    def window(self, seg: Segment, cap: int, inner: Window | None = None) -> Window:
        """The heaviest window of about ``cap`` bytes around ``inner``, or around the heaviest word.

        First it reaches for the names on both sides, nearest first, since the next neighbours may
        be glue; then it takes what follows, then what stands before. A word is cut only if it is
        very long: half a path finds nothing.
        """
        weights, starts, first, last = self.weights, self.starts, seg.low, seg.high
        if inner:
            low, high = inner.low, inner.high
        else:
            low = weights.index(max(weights[first:last]), first)
            high = low + 1
        room = cap if self.ascii else cap * (starts[last] - starts[first]) // seg.size
        if high - low < last - first:
            low, high = self._reach(first, last, low, high, room + 1)
        if starts[high] - starts[low] <= room:
            high = bisect_right(starts, starts[low] + room + 1, high, last + 1) - 1
            if high == last:
                low = bisect_left(starts, starts[high] - room - 1, first, low)
        while first < low < high - 1 and weights[low] <= GLUE_WEIGHT:
            low += 1
        while low + 1 < high < last and weights[high - 1] <= GLUE_WEIGHT:
            high -= 1
        start, end = starts[low], starts[high - 1] + len(self.words[high - 1])
        size = self.bytes(start, end)
        if size > cap and size > _LONGEST_WHOLE and high - low == 1:
            end = start + max(len(clip(self.text[start:end], cap)), 1)
            size = self.bytes(start, end)
        before = after = ""
        asks = high < last and self.words[last - 1][-1] in "?？"
        if asks or seg.status:
            before, after = self._status(seg, low, high, asks=asks)
            size += len(before.encode()) + len(after.encode())
        return Window(start, end, size, self.sums[high] - self.sums[low], low, high, before, after)

    def _reach(self, first: int, last: int, low: int, high: int, room: int) -> tuple[int, int]:
        """The window stretched to names within ``room`` characters."""
        names, starts = self.names, self.starts
        left, right = bisect_left(names, low) - 1, bisect_left(names, high)
        before = names[left] if left >= 0 else -1
        after = names[right] if right < len(names) else last
        while before >= first or after < last:
            to_left = before >= first and (
                after >= last or starts[low] - starts[before] <= starts[after + 1] - starts[high]
            )
            if to_left:
                if starts[high] - starts[before] <= room:
                    low = before
                left -= 1
                before = names[left] if left >= 0 else -1
            else:
                if starts[after + 1] - starts[low] <= room:
                    high = after + 1
                right += 1
                after = names[right] if right < len(names) else last
        return low, high

    def _status(self, seg: Segment, low: int, high: int, *, asks: bool) -> tuple[str, str]:
        """The nearest negation, condition or plan on either side, or the question mark, joined to
        the window by a gap.

        Without it "we have not deployed it" would come out as "deployed it".
        """
        before = after = ""
        for at in seg.status:
            if at < low:
                before = _status_word(self.words[at]) + GAP
            elif at >= high and not after:
                after = GAP + _status_word(self.words[at])
        return before, GAP + "?" if asks else after


_LONGEST_WHOLE: Final = 64
"""Bytes up to which a word is kept whole where it alone is more than the window."""


def _status_word(word: str) -> str:
    """The word itself, or of one that an earlier line joined (``not…deployed``) the part that
    matters.
    """
    for part in word.split(GAP):
        if weigh(part)[2] & STATUS:
            return part.strip(",;:.()\"'")
    return word


def _chunks(word: str) -> list[str]:
    """The word, or where it is long and not ASCII pieces of it that end between graphemes."""
    if len(word) <= _LONG_WORD or word.isascii():
        return [word]
    pieces = []
    while len(word) > _LONG_WORD // 2:
        piece = clip(word, _CHUNK) or word[0]
        pieces.append(piece)
        word = word[len(piece) :]
    return [*pieces, word] if word else pieces
