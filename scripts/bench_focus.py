#!/usr/bin/env python3
"""What recall with focus costs in a long log. Prints a table, or --json. Gates nothing.

Writes a log whose words follow Zipf's law (the k-th word of 200,000 stands in it as often as
1/(k+2) says, so that some words are in nearly every message and most in a handful) with a complete
tree, makes it searchable, and asks questions made of words of its messages: first each in a process
of its own, then many in one. Usage: .venv/bin/python scripts/bench_focus.py [--json] [--sizes
100000,1000000] [--bytes 400] [--dir DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from optchat.base.address import Place
from optchat.base.record import Message, Node, encode_message, encode_node
from optchat.memory import Memory

VOCABULARY = 200_000
TURN = ("user", "talk", "tool", "echo", "tool", "echo", "talk", "talk")
KNOWN = {
    "Ottoline Fernsby": (2, "user", "By the way, the new accountant is called Ottoline Fernsby."),
    "发票导入的重试次数": (3, "user", "我们决定把发票导入的重试次数改成五次"),
    "optchat/core/view.py": (4, "tool", 'read_file: {"path": "optchat/core/view.py", "limit": 40}'),
}
"""What only one message says.

Which part of the log lies before it, its kind and text, by the question that means it.
"""

PIECES = 20_000
SESSION = 400
COLD, WARM = 12, 300


class Words:
    """Texts of made-up words."""

    def __init__(self, seed: int) -> None:
        syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
        self.dice = random.Random(seed)
        self.words = [self.spelled(k, syllables) for k in range(VOCABULARY)]
        self.sums = list(accumulate(1 / (k + 2) for k in range(VOCABULARY)))

    @staticmethod
    def spelled(k: int, syllables: list[str]) -> str:
        word = ""
        while True:
            word += syllables[k % len(syllables)]
            k = k // len(syllables) - 1
            if k < 0:
                return word

    def text(self, size: int) -> str:
        words, left = [], size
        while left > 0:
            words.append(self.words[bisect(self.sums, self.dice.random() * self.sums[-1])])
            left -= len(words[-1]) + 1
        return " ".join(words)


def write_log(root: Path, size: int, message_bytes: int) -> None:
    words = Words(7)
    pieces = [words.text(message_bytes // 2) for _ in range(PIECES)]
    known = {size // part: (kind, text) for part, kind, text in KNOWN.values()}
    for room in ("main", "tree"):
        (root / room).mkdir(parents=True)
    per_day = max(1, size // 300)
    for first in range(0, size, per_day):
        day = datetime.fromtimestamp(1_735_689_600 + first // per_day * 86_400, UTC)
        with (root / "main" / f"{day:%Y-%m-%d}.jsonl").open("ab") as out:
            for id_ in range(first, min(size, first + per_day)):
                kind, text = known.get(id_) or (
                    TURN[id_ % 8],
                    f"{words.dice.choice(pieces)} {words.dice.choice(pieces)} n{id_}",
                )
                session = f"s{id_ // SESSION}"
                out.write(
                    encode_message(
                        Message(
                            id=id_,
                            kind=kind,
                            text=text,
                            date=day.isoformat(timespec="seconds"),
                            session=session,
                        )
                    )
                )
    with (root / "tree" / "2025-11-01.jsonl").open("ab") as out:
        for level in range(size.bit_length()):
            for index in range(size >> level):
                text = (
                    f"user: {Place(level, index).address} "
                    f"{pieces[(index * 7 + level) % PIECES][:400]}"
                )
                out.write(encode_node(Node(level=level, index=index, text=text, by="local")))


def question(memory: Memory, size: int, dice: random.Random) -> str:
    """Two to eight words of some message."""
    words = memory.message(dice.randrange(size)).text.split()
    return "what did we decide about " + " ".join(
        dice.sample(words, min(len(words), dice.randrange(2, 9)))
    )


CHILD = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from optchat.memory import Memory
memory = Memory.open(sys.argv[2], compact=False)
start = time.perf_counter()
text = memory.recall(sys.argv[3], session="bench")
print(json.dumps({"ms": (time.perf_counter() - start) * 1e3, "lines": text.count("\\n  ")}))
memory.close()
"""


def cold(root: Path, query: str) -> float:
    """Milliseconds of the first recall of a process."""
    command = [
        sys.executable,
        "-c",
        CHILD,
        str(Path(__file__).resolve().parent.parent),
        str(root),
        query,
    ]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[
        "ms"
    ]


def bench(base: Path, size: int, message_bytes: int) -> dict[str, float]:
    root = base / f"log-{size}"
    write_log(root, size, message_bytes)
    os.sync()
    dice = random.Random(3)
    with Memory.open(root, compact=False) as memory:
        start = time.perf_counter()
        memory.settle()
        searchable = time.perf_counter() - start
        queries = [question(memory, size, dice) for _ in range(COLD + WARM)]
    found = {
        "full_text_us_per_message": searchable / size * 1e6,
        "full_text_bytes_per_message": sum(
            path.stat().st_size for path in root.glob("search.sqlite*")
        )
        / size,
    }
    firsts = [cold(root, query) for query in queries[:COLD]]
    found |= {"first_recall_ms": statistics.median(firsts), "first_recall_max_ms": max(firsts)}
    with Memory.open(root, compact=False) as memory:
        times, pointed = [], 0
        for number, query in enumerate(queries[COLD:]):
            start = time.perf_counter()
            text = memory.recall(query, session=f"session {number}")
            times.append(time.perf_counter() - start)
            pointed += "\n  " in text
        found |= {
            "recall_p50_ms": statistics.median(times) * 1e3,
            "recall_p95_ms": statistics.quantiles(times, n=20)[-1] * 1e3,
            "recall_max_ms": max(times) * 1e3,
            "with_focus_percent": 100 * pointed / len(times),
            "known_found": sum(
                text in memory.recall(query) for query, (_, _, text) in KNOWN.items()
            ),
        }
        start = time.perf_counter()
        plain = sum(len(memory.view()) for _ in range(20)) / 20
        found |= {"plain_view_ms": (time.perf_counter() - start) / 20 * 1e3, "view_chars": plain}
    shutil.rmtree(root)
    return found


def show(report: dict[str, dict[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "",
        *(f"{int(size):,} messages" for size in report),
        title="recall with focus",
        title_justify="left",
    )
    for name in next(iter(report.values())):
        table.add_row(name, *(f"{row[name]:,.1f}" for row in report.values()))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--bytes", type=int, default=400, help="of one message (default: 400)")
    parser.add_argument(
        "--dir", type=Path, help="where to put the logs (default: a temporary directory)"
    )
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="optchat-bench-", dir=options.dir))
    try:
        report = {size: bench(base, int(size), options.bytes) for size in options.sizes.split(",")}
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(json.dumps(report, indent=1)) if options.json else show(report)


if __name__ == "__main__":
    main()
