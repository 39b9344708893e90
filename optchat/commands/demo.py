"""``optchat demo``.

A sample conversation logged, summed up, shown at two budgets, and opened from a coarse line down to
one message.

Does with the public interface what Hermes does with it, on a memory of its own; never on one that
exists. No model, no network.
"""

from __future__ import annotations

import shutil
import tempfile
import textwrap
import time
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..base.errors import StoreError
from ..base.settings import Settings
from ..imports.sources import JsonLines
from ..memory import Memory
from .output import bytes_text
from .progress import Bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLE: Final = Path(__file__).parent.parent / "sample" / "conversation.jsonl"
BUDGETS: Final = (16_000, 4_000)
WIDTH: Final = 100

QUESTION: Final = "Which database is the booking service on, and why was it changed back?"
ANSWER_SESSION: Final = "back-to-sqlite"
ANSWER_HEAD: Final = "Decision: back to SQLite."
"""How the message begins that the walk from a coarse line ends at.

The decision is reversed once: the older one is wrong by then.
"""


def run_demo(
    home: Path | None, *, keep: bool, out: Callable[[str], None], program: str = "optchat"
) -> int:
    """Show what a memory is, giving the text to ``out``; the exit status.

    Without a home it lies in a temporary directory, which is removed unless it shall be kept.
    ``program`` is what the user types before a command.
    """
    with _place(home, keep=keep) as place:
        root = place / "optchat"
        out(
            _prose(
                "# optchat, shown on a sample conversation\n\nThe memory of this "
                f"demonstration lies in {root}."
            )
        )
        total = _log(root, out)
        shown = {budget: _show(root, budget, out) for budget in BUDGETS}
        steps, spent_s = _walk(root, out)
        out(_summary(total, shown[BUDGETS[-1]], steps, spent_s))
        out(_parting(home or place, program, kept=keep or home is not None))
    return 0


@contextmanager
def _place(home: Path | None, *, keep: bool) -> Iterator[Path]:
    if home is not None:
        if (home / "optchat").exists():
            hint = "Name an empty directory with --home, or leave it out for a temporary one"
            raise StoreError(
                "the demo writes only to a memory of its own, and here is one already",
                path=home / "optchat",
                hint=hint,
            )
        yield home
        return
    made = Path(tempfile.mkdtemp(prefix="optchat-demo-"))
    try:
        yield made
    finally:
        if not keep:
            shutil.rmtree(made, ignore_errors=True)


def _log(root: Path, out: Callable[[str], None]) -> int:
    """Log the sample and build its lines, session by session as they happened.

    The number of messages.
    """
    entries = [
        item.entry for item in JsonLines(SAMPLE, SAMPLE.stat().st_size).items() if item.entry
    ]
    sessions = [list(group) for _, group in groupby(entries, key=lambda entry: entry.session)]
    logged_s = built_s = 0.0
    with Bars() as bars, Memory.open(root, Settings(), compact=False, progress=bars) as memory:
        for number, session in enumerate(sessions, 1):
            began = time.perf_counter()
            memory.record(session)
            logged = time.perf_counter()
            memory.settle()
            built_s += time.perf_counter() - logged
            logged_s += logged - began
            bars("sessions", number, len(sessions))
        facts = memory.status()
    first, last = facts["first_date"][:10], facts["last_append"][:10]
    out(
        _prose(f"""
        ## 1. A conversation is logged

        {len(entries):,} messages of {len(sessions)} sessions, {first} to {last}, are now on disk
        word for word
        ({bytes_text(sum(len(entry.text.encode()) for entry in entries))} of text in {logged_s:.2f}
        s). A small team and its agent write
        a booking service for a boathouse: there are tool calls, test failures, three languages,
        and decisions that are changed
        later on.

        ## 2. A tree of lines is built over it

        {facts["lines_built"]:,} lines in {built_s:.2f} s, by the summarizer that needs no model. A
        line sums up 1, 2, 4, 8, …
        messages. In Hermes this happens in the background, and a model may write the lines.
    """)
    )
    return len(entries)


def _show(root: Path, budget: int, out: Callable[[str], None]) -> tuple[int, int]:
    """Print the view at one budget; its characters and lines."""
    with Memory.open(root, Settings(view_budget_chars=budget), compact=False) as memory:
        began = time.perf_counter()
        view = memory.view()
        spent_ms = (time.perf_counter() - began) * 1000
    addresses = _addresses(view)
    finest, coarsest = _span(addresses[-1])[1], _span(addresses[0])[1]
    number = BUDGETS.index(budget) + 3
    out(
        _prose(f"""
        ## {number}. The view in {budget:,} characters

        This is all the model is given of the past: {len(addresses)} lines, {len(view):,}
        characters, made in {spent_ms:.0f} ms. Together
        they cover every message once, oldest first: the newest {finest} to a line, the oldest
        {coarsest}. The head {addresses[0]} means
        {_span(addresses[0])[1]} messages from number {_span(addresses[0])[0]} on.
    """)
    )
    out(view)
    return len(view), len(addresses)


def _walk(root: Path, out: Callable[[str], None]) -> tuple[int, float]:
    """Zoom from the line of the small view that covers the decision down to its message.

    The zooms made and their seconds.
    """
    with Memory.open(root, Settings(view_budget_chars=BUDGETS[-1]), compact=False) as memory:
        target = next(
            message.id
            for message in memory.session_entries(ANSWER_SESSION)
            if message.text.startswith(ANSWER_HEAD)
        )
        address = next(address for address in _addresses(memory.view()) if _covers(address, target))
        out(
            _prose(f"""
            ## 5. From a coarse line down to one message

            Suppose the agent is asked: {QUESTION}
            The message that answers it lies under the line {address} of the small view. Each zoom
            opens a line into the two it was
            made from; ">" marks the half to go on with. This demonstration knows which one that
            is, an agent goes by what they say.
        """)
        )
        steps, spent_s = 0, 0.0
        while True:
            began = time.perf_counter()
            found = memory.zoom(address)
            spent_s += time.perf_counter() - began
            steps += 1
            out(f"\nzoom {address}")
            if _span(address)[1] == 1:
                break
            for line in found.split("\n"):
                inside = _covers(line.partition("|")[0], target)
                out(_shortened(line, lines=4 if inside else 1, mark=">" if inside else " "))
            address = next(a for a in _addresses(found) if _covers(a, target))
        out(_indented(found))
        out(f"\ndate {target}\n{_indented(memory.date(target))}")
    return steps, spent_s


def _summary(total: int, shown: tuple[int, int], steps: int, spent_s: float) -> str:
    chars, lines = shown
    return _prose(f"""
        ## What you saw

        Nothing was thrown away: {total:,} messages are on disk, and {lines} lines of {chars:,}
        characters were enough to find one of
        them in {steps} zooms ({spent_s * 1000:.0f} ms for all of them). The view has a fixed
        budget, so it does not grow with the
        conversation: after a million messages it is as long as today, and one more zoom goes twice
        as deep.
    """)


def _parting(home: Path, program: str, *, kept: bool) -> str:
    if not kept:
        return _prose(
            f"The temporary memory is now removed. To look around in one:\n\n  {program} "
            "demo --keep"
        )
    return _prose(f"""
        The memory stays. Look around in it:

          {program} status --home '{home}'
          {program} search boathouse --home '{home}'
          {program} view --home '{home}'
    """)


def _addresses(view: str) -> list[str]:
    heads = (line.partition("|")[0] for line in view.split("\n") if "|" in line)
    return [head for head in heads if head.replace("+", "", 1).isdigit() and "+" in head]


def _span(address: str) -> tuple[int, int]:
    first, _, count = address.partition("+")
    return int(first), int(count)


def _covers(address: str, id_: int) -> bool:
    first, count = _span(address)
    return first <= id_ < first + count


def _shortened(line: str, *, lines: int, mark: str) -> str:
    return textwrap.fill(
        line,
        WIDTH,
        max_lines=lines,
        placeholder=" …",
        initial_indent=f"{mark} ",
        subsequent_indent="    ",
    )


def _indented(text: str) -> str:
    filled = (
        textwrap.fill(line, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )
    return textwrap.indent("\n".join(filled), "  ")


def _prose(text: str) -> str:
    """Paragraphs filled to the width.

    Headings and indented lines as they are; an empty line at either end.
    """
    filled = []
    for paragraph in textwrap.dedent(text).strip("\n").split("\n\n"):
        as_it_is = paragraph.startswith(("#", "  "))
        filled.append(
            paragraph
            if as_it_is
            else textwrap.fill(
                " ".join(paragraph.split()), WIDTH, break_long_words=False, break_on_hyphens=False
            )
        )
    return "\n" + "\n\n".join(filled).rstrip() + "\n"
