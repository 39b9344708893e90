"""Times the local summarizer.

Microseconds per line, each message and each merge seen once, as in a running compactor.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from optchat.compaction.local import leaf_line, merge_lines

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 512
SAID = (
    (
        "We moved the nightly export of {n} rows to the worker on host{n}.example.net because "
        "the old queue kept timing out."
    ),
    (
        "I have not looked at the dashboard yet, but {name} said the totals for March differ by "
        "{n} euros."
    ),
    "Please use the retry limit from /srv/app{m}/settings.toml instead of the default one.",
    "That sounds good to me, and the rest of the change is mostly a matter of taste.",
    "Can you check whether invoice INV-{n} was sent to {name} before Friday?",
    (
        "The second half of the report follows the same pattern as the first, so there is little "
        "to add here."
    ),
    "Wir haben uns für Variante {m} entschieden, weil {name} die andere nicht testen konnte.",
    "The build is green again after commit {n:x}{n:x}, and the cache now holds for {m} minutes.",
)
PRINTED = (
    "2026-03-{m:02d}T10:00:00Z INFO request {n} served in {m} ms",
    "tests/test_module_{m}.py::test_case_{n} PASSED",
    "Downloading package-{n}-2.{m}.1-py3-none-any.whl ({m} kB)",
    "error: build step {m} failed with status {n}",
    "src/components/Panel{m}.tsx:{n}: unused variable 'state{m}'",
)
NAMES = ("Okonkwo", "Lindqvist", "Marchetti", "Nakagawa", "Vasquez", "Haddad")


def text_of(pick: random.Random, lines: tuple[str, ...], joint: str, size: int) -> str:
    out = ""
    while len(out) < size:
        out += (
            pick.choice(lines).format(
                n=pick.randrange(10_000, 99_999), m=pick.randrange(1, 60), name=pick.choice(NAMES)
            )
            + joint
        )
    return out[:size]


def chat(pick: random.Random, count: int) -> list[tuple[str, str]]:
    out = []
    for _ in range(count):
        kind = pick.choice(("user", "talk", "talk", "tool", "echo"))
        if kind == "echo":
            text = text_of(pick, PRINTED, "\n", 1024)
        elif kind == "tool":
            body = text_of(pick, PRINTED, "\\n", 940)
            text = (
                f'write_file {{"path": "/srv/app{pick.randrange(99)}/notes.md", "content": '
                f'"{body.rstrip(chr(92))}"}}'
            )
        else:
            text = text_of(pick, SAID, " ", 1024)
        out.append((kind, text))
    return out


def timed(
    build: Callable[..., str], calls: list[tuple[str, str, int]]
) -> tuple[list[str], list[float]]:
    lines, micros = [], []
    for call in calls:
        start = time.perf_counter()
        lines.append(build(*call))
        micros.append((time.perf_counter() - start) * 1e6)
    return lines, micros


def row(name: str, micros: list[float]) -> None:
    ordered = sorted(micros)
    print(
        f"{name:<28}{len(micros):>6}{statistics.median(micros):>9.0f}{ordered[len(ordered) * 95 // 100]:>9.0f}"
    )


def main() -> None:
    messages = chat(random.Random(7), 2048)
    print(f"{'microseconds per line':<28}{'lines':>6}{'median':>9}{'95th':>9}")
    lines, micros = timed(leaf_line, [(kind, text, LIMIT) for kind, text in messages])
    row("leaf of 1 KiB, all", micros)
    for kind in ("user", "talk", "tool", "echo"):
        row(
            f"  {kind}",
            [each for each, message in zip(micros, messages, strict=True) if message[0] == kind],
        )
    for level in range(1, 6):
        lines, micros = timed(
            merge_lines, [(a, b, LIMIT) for a, b in zip(lines[::2], lines[1::2], strict=True)]
        )
        row(f"merge at level {level}", micros)
    huge = text_of(random.Random(1), SAID, " ", 1 << 20) * 50
    _, micros = timed(leaf_line, [("talk", huge, LIMIT)])
    row("leaf of 50 MiB", micros)


if __name__ == "__main__":
    main()
