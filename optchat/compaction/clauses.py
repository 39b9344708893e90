"""From the text of a message or a line to items and their clauses, by the shape of the source.

Prose, tool call, JSON, output, trace.

Says where one clause ends and what each is worth for its place and shape; what the words in it are
worth is not decided here. Leaves and the items of older lines are read the same way: a verbatim
item of a merged line may still be JSON or a trace. Called by ``local.py`` with plain text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import Any, Final

from ..base.json_line import clean
from ..base.secrets import mask
from .items import Item, Segment, Words
from .lexicon import (
    CUE,
    DOT,
    ENDING,
    FAULT,
    FENCE,
    LINE,
    NAME,
    POLITE,
    SPOKEN,
    STAMP,
    STATUS,
    is_polite,
)
from .plain import tidy

STEPS: Final = ("tool", "echo")
"""Kinds that hold output rather than someone's words.

A line is a clause there, and failures count most.
"""
_LONG: Final = 16
"""Words from which a clause is searched for repeats."""
LONGEST: Final = 150
"""Characters of a clause. A longer one is divided, at a comma where there is one."""


def read(found: list[tuple[str, str]]) -> tuple[list[Item], list[Segment], Words]:
    """Items, clauses and words of (kind, plain text) pairs: single spaces, newlines kept."""
    texts, from_json = [], []
    for kind, text in found:
        fields = _fields(kind, text)
        from_json.append(fields is not None)
        lines = text.split("\n") if fields is None else "\n".join(fields).split("\n")
        joined = " \n ".join([line for line in lines if line])
        texts.append(
            _MARKER.sub(lambda match: match[0].replace(" ", "\x01"), joined)
            if " bytes]" in joined
            else joined
        )
    words = Words(texts)
    items = [
        Item(kind, low, high, is_json)
        for (kind, _), low, high, is_json in zip(
            found, words.bounds, words.bounds[1:], from_json, strict=False
        )
    ]
    segments: list[Segment] = []
    marked = [at for at, flags in enumerate(words.flags) if flags & _MARKED]
    done = 0
    for place, item in enumerate(items):
        done = _Reader(words, item, place, segments).clauses(marked, done)
    words.weigh_up()
    return items, segments, words


_LONGEST_FENCE: Final = 24
"""Characters: what goes on longer on the line of a fence is text."""
_END_POINTS: Final = tuple(".!?。！？")
_MARKER: Final = re.compile(r"\[(base64|hex), (\d{1,12}) bytes\]")
"""One word as long as words are chosen, or its number would be all that is left of it.

Plain text has no control characters.
"""
_MARKED: Final = SPOKEN | ENDING | FENCE


class _Reader:
    """Adds the clauses of one item; remembers what the lines before say about the next."""

    def __init__(self, words: Words, item: Item, place: int, segments: list[Segment]) -> None:
        self.words, self.item, self.place, self.segments = words, item, place, segments
        self.steps = item.kind in STEPS
        self.fenced = False
        self.diff = self.steps and "@@" in words.words[item.low : item.high]
        self.frames: list[int] = []
        """Places of stack frames among the segments."""
        self.shapes: dict[tuple[str, ...], int] = {}

    def clauses(self, marked: list[int], done: int) -> int:
        """Adds every clause.

        ``marked`` are positions of words that say something about theirs, ``done`` of them before
        this item.

        Returns how many are done then.
        """
        flags, low, spoken, end = self.words.flags, self.item.low, 0, self.item.high
        if self.steps:
            self._weigh_words(low, end)
        status: list[int] = []
        last = bisect_left(marked, end, done)
        for at in marked[done:last]:
            flag = flags[at]
            spoken |= flag
            if flag & STATUS:
                status.append(at)
            if flag & ENDING and self._is_end(at, flag):
                high = at if flag & LINE else at + 1
                if high > low:
                    self._clause(low, high, spoken, status)
                low, spoken, status = at + 1, 0, []
        if end > low:
            self._clause(low, end, spoken, status)
        if self.frames:
            self._weigh_frames()
        return last

    def _is_end(self, at: int, flag: int) -> bool:
        """Not the newline of a hard-wrapped sentence, nor the dot of an abbreviation."""
        words, after = self.words.words, at + 1
        if after >= self.item.high or not words[after][:1].islower():
            return True
        if flag & LINE:
            return (
                self.steps
                or at == self.item.low
                or not (words[at - 1][-1].isalnum() or words[at - 1][-1] == ",")
            )
        return not flag & DOT

    def _clause(self, low: int, high: int, flags: int, status: list[int]) -> None:
        """One clause, without its bullet or time stamp, unless it holds no word at all (a ruler, a
        frame of a table).
        """
        words, keys, marks = self.words.words, self.words.keys, self.words.flags
        factor, skipped = 1.0, STAMP if self.steps else 0
        if (
            flags & FENCE
            and high - low < 3
            and words[low].startswith("```")
            and len(words[low]) < _LONGEST_FENCE
        ):
            self.fenced = not self.fenced
            return
        if not self.steps and words[low].startswith(">"):
            factor = 0.3  # quoted: another's words
        changed = self.diff and words[low][0] in "+-"
        while not changed and low < high and (not keys[low] or marks[low] & skipped):
            low += 1
        while high > low and not keys[high - 1] and words[high - 1][:1] not in _END_POINTS:
            high -= 1
        if low >= high or (
            high - low == 1 and words[low][:-1].isdigit() and words[low][-1] in ".)"
        ):
            return
        if self.fenced:
            factor *= 0.5
        starts = self.words.starts
        if starts[high - 1] - starts[low] > LONGEST:
            self._divide(low, high, factor, status)
        else:
            self._add(low, high, factor, flags, status)

    def _divide(self, low: int, high: int, factor: float, status: list[int]) -> None:
        """A long clause in pieces, each ended by a comma where there is one in its last two
        thirds.
        """
        words, starts, marks = self.words.words, self.words.starts, self.words.flags
        first, comma = low, low
        for at in range(low, high):
            if starts[at] + len(words[at]) - starts[first] > LONGEST and at > first:
                cut = comma if comma > first else at
                self._add_piece(first, cut, factor, status, marks)
                first = comma = cut
            if words[at][-1] in ",;:，；：、" and starts[at] - starts[first] > LONGEST // 3:
                comma = at + 1
        self._add_piece(first, high, factor, status, marks)

    def _add_piece(
        self, low: int, high: int, factor: float, status: list[int], marks: tuple[int, ...]
    ) -> None:
        keys, flags = self.words.keys, 0
        while low < high and not keys[low]:
            low += 1
        while low < high and not keys[high - 1]:
            high -= 1
        for flag in marks[low:high]:
            flags |= flag
        if low < high:
            self._add(
                low,
                high,
                factor,
                flags,
                status[bisect_left(status, low) : bisect_left(status, high)],
            )

    def _add(self, low: int, high: int, factor: float, flags: int, status: list[int]) -> None:
        words = self.words
        mark = words.flags[low]
        if high - low > _LONG:
            self._once(low, high)
        if mark & NAME:
            words.weights[low] *= (
                0.8  # every sentence opens with a capital: only half a sign of a name
            )
        if flags & CUE:
            factor *= 1.5
        if status:
            factor *= 1.2  # what is open, undone or planned
        if words.words[high - 1][-1] in "?？":
            factor *= 1.3
        seg = Segment(
            self.place, low, high, factor, flags, status, words.bytes(*words.span(low, high))
        )
        first = words.words[low]
        if self.item.from_json:
            seg.factor *= (
                1.5 if low == self.item.low or first.partition("=")[0] in _SALIENT else 0.8
            )
        if self.steps:
            self._weigh_step(seg, first)
        elif mark & POLITE and is_polite(words.text[words.starts[low] : words.starts[low] + 40]):
            seg.factor *= 0.05 if max(words.weights[low + 2 : seg.high], default=0.0) < 1.0 else 0.6
        self.segments.append(seg)

    def _once(self, low: int, high: int) -> None:
        """A word said twice in a clause weighs once."""
        seen: set[str] = set()
        for at in range(low, high):
            key = self.words.keys[at]
            if key in seen:
                self.words.weights[at] = 0.0
            seen.add(key)

    def _weigh_words(self, low: int, high: int) -> None:
        """In steps times say little, the same few tools and directories come again and again, and
        what differs follows them.
        """
        words, flags, weights = self.words.words, self.words.flags, self.words.weights
        for at in [at for at in range(low, high) if flags[at] & STAMP]:
            weights[at] *= 0.2
        if self.item.kind == "tool" and high > low:
            weights[low] *= 0.3
            for at in range(low, min(low + 2, high - 1)):
                if words[at] in ("cd", "command=cd"):
                    weights[at + 1] *= 0.05

    def _weigh_step(self, seg: Segment, first: str) -> None:
        """The first line, and lines that say something failed.

        Less for each that differs from one before in its digits only.
        """
        words = self.words
        if seg.flags & FAULT:
            seg.factor *= 2.0
        if seg.low == self.item.low:
            seg.factor *= 2.0 if self.item.kind == "tool" else 1.3
        if first in ("at", "File"):
            self.frames.append(len(self.segments))
        if self.diff and first[0] in "+-":
            seg.factor *= 1.6
        elif self.item.high - seg.high or self.shapes:
            shape = words.shapes[seg.low : seg.high]
            times = self.shapes.get(shape, 0)
            self.shapes[shape] = times + 1
            if times:
                seg.factor *= 0.6 if times < 3 else 0.2

    def _weigh_frames(self) -> None:
        """Of a trace only the innermost frame of the user's code counts.

        Python prints it last, the others first.
        """
        words, segments = self.words, self.segments
        mine = []
        for place in self.frames:
            start, end = words.span(segments[place].low, segments[place].high)
            line = words.text[start:end]
            if not any(part in line for part in _FOREIGN):
                mine.append(place)
        python = words.words[segments[(mine or self.frames)[-1]].low] == "File"
        chosen = (mine or self.frames)[-1 if python else 0]
        frames, own = set(self.frames), set(mine)
        for place in self.frames:
            factor = 2.0 if place == chosen else 0.1 if place in own else 0.02
            segments[place].factor *= factor
            if python and place + 1 < len(segments) and place + 1 not in frames:
                segments[place + 1].factor *= factor  # the line of code under it


_FOREIGN: Final = (
    "site-packages",
    "dist-packages",
    "lib/python",
    "<frozen",
    "node_modules",
    "node:",
    "internal/",
    "java.",
    "javax.",
    "sun.",
    "jdk.",
    "org.springframework",
    "org.junit",
    "System.",
    "Microsoft.",
    "/usr/lib/",
    "/rustc/",
    "core::",
    "std::",
)


# ---- JSON

_SALIENT_KEYS: Final = """
command cmd query q pattern path file file_path filename url uri name title id error message msg
stderr reason status exit_code
returncode code description question answer summary result task goal prompt content text old_string
new_string target branch
"""
_SALIENT: Final = frozenset(_SALIENT_KEYS.split())
_MOST_VALUES: Final = 400
"""Scalars of a JSON text that are looked at; a line has room for a few."""
_DEEPEST: Final = 8
"""Levels of a JSON text that are looked into."""
_EMPTY: Final = ("", "null", "[]", "{}")


def _fields(kind: str, text: str) -> list[str] | None:
    """Of a tool call or a JSON text ``key=value`` for each scalar, in the order of the source.

    None of any other text.
    """
    if text[-1:] not in ("}", "]", ")"):
        return None
    if kind == "tool":
        brace = text.find("{")
        name, body = text[:brace].strip(" (:"), text[brace:].rstrip(") ") if brace >= 0 else ""
    else:
        name, body = "", text
    if body[:1] not in ("{", "[") or (data := _decoded(body)) is None:
        return None
    found: list[tuple[str, Any]] = []
    _walk("", data, _DEEPEST, found)
    parts = [mask(clean(tidy(f"{key}={value}" if key else value))) for key, value in found]
    if name:
        # What was done stands with what to, in one clause.
        parts[:1] = [f"{name} {parts[0]}" if parts else name]
    return [part for part in parts if part]


def _decoded(text: str) -> Any:
    """The JSON object or list, numbers as they stand in the source; None if it is none."""
    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=str, strict=False)
    except (
        ValueError,
        RecursionError,
    ):  # prose in braces, a cut or bottomless document: read as lines
        return None


def _walk(key: str, value: Any, depth: int, found: list[tuple[str, Any]]) -> None:
    """Adds key and text of the scalars that say something, depth first, at most a few hundred."""
    if len(found) >= _MOST_VALUES or not depth:
        return
    if isinstance(value, dict):
        for inner, each in value.items():
            _walk(" ".join(inner.split()), each, depth - 1, found)
    elif isinstance(value, list):
        if value and all(isinstance(each, str) and len(each) < 60 for each in value):
            found.append((key, ", ".join(value)))
            return
        for each in value:
            _walk(key, each, depth - 1, found)
    else:
        shown = (
            value if isinstance(value, str) else {True: "true", False: "false"}.get(value, "null")
        )
        if shown not in _EMPTY:
            found.append((key, shown))
