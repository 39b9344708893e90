#!/usr/bin/env python3
"""What the engine costs: append, open, fold, view, zoom, import and compaction.

Prints a table, or --json. Gates nothing.

Appends are given as a ratio to a raw write+fsync of the same bytes in the same run, because ratios
travel between machines and milliseconds do not. Usage: .venv/bin/python scripts/bench.py [--json]
[--sizes 10000,100000,1000000] [--dir DIR]
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
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from optchat.base.address import Place
from optchat.base.record import Entry, Message, Node, encode_message, encode_node
from optchat.memory import Memory
from optchat.tree.live_view import LiveView

WORDS = """
please check the booking import again because three invoices from Tuesday are missing and the retry in optchat/core/view.py line 42
failed with TimeoutError after 30 s so we decided to keep Postgres 16 move the deadline to 12 June tell Maria about migration_0042
and look at 10.3.4.5 before the release
""".split()  # noqa: SIM905 -- forty words read better as the sentence they are
TURN = ("user", "talk", "tool", "echo", "tool", "echo", "talk", "talk")


def text(bytes_: int, seed: int) -> str:
    pick = random.Random(seed)
    words: list[str] = [f"#{seed}"]
    size = len(words[0])
    while size < bytes_:
        words.append(pick.choice(WORDS))
        size += len(words[-1]) + 1
    return " ".join(words)[:bytes_]


def median_ms(times: list[float]) -> float:
    return statistics.median(times) * 1e3


# -- appends


def bench_append(base: Path, *, count: int, rounds: int, compact: bool) -> dict[str, float]:
    """One append of ``count`` messages of 1 KiB against a raw write+fsync of the very bytes it
    wrote, in turn.
    """
    root = base / f"append-{count}-{compact}"
    raw = os.open(base / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ours, theirs = [], []
    with Memory.open(root, compact=compact) as memory:
        for k in range(rounds):
            entries = [
                Entry(kind=TURN[j], text=text(1024, k * 8 + j), session="bench")
                for j in range(count)
            ]
            size = sum(
                len(
                    encode_message(
                        Message(id=k * 8, kind=e.kind, text=e.text, session="bench", date="x" * 25)
                    )
                )
                for e in entries
            )
            data = b"x" * size
            start = time.perf_counter()
            memory.record(entries)
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            os.write(raw, data)
            os.fsync(raw)
            theirs.append(time.perf_counter() - start)
    os.close(raw)
    return {
        "ms": median_ms(ours),
        "p95_ms": statistics.quantiles(ours, n=20)[-1] * 1e3,
        "raw_ms": median_ms(theirs),
        "ratio": median_ms(ours) / median_ms(theirs),
    }


# -- a log of any size with a complete tree, written as another writer would


def write_log(root: Path, size: int, message_bytes: int = 300) -> None:
    (root / "main").mkdir(parents=True)
    (root / "tree").mkdir()
    per_day = max(1, size // 300)
    day = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
    samples = [text(message_bytes - 8, k) for k in range(997)]
    out = None
    for id_ in range(size):
        if id_ % per_day == 0:
            if out:
                out.close()
            out = (
                root
                / "main"
                / f"{datetime.fromtimestamp(day + id_ // per_day * 86_400, UTC):%Y-%m-%d}.jsonl"
            ).open("ab")
        date = datetime.fromtimestamp(day + id_ * 86_400 / per_day, UTC).isoformat(
            timespec="seconds"
        )
        out.write(
            encode_message(
                Message(
                    id=id_,
                    kind=TURN[id_ % 8],
                    text=f"{id_:7d} {samples[id_ % 997]}",
                    date=date,
                    session=f"s{id_ // 400}",
                )
            )
        )
    out.close()
    with (root / "tree" / "2025-11-01.jsonl").open("ab") as tree:
        for level in range(size.bit_length()):
            for index in range(size >> level):
                words = samples[(index + level) % 997] + (
                    samples[(index * 7) % 997][:200] if level else ""
                )
                tree.write(
                    encode_node(
                        Node(
                            level=level,
                            index=index,
                            text=f"user: {Place(level, index).address} {words}",
                            by="local",
                        )
                    )
                )


CHILD = """
import json, resource, sys, time
sys.path.insert(0, sys.argv[1])
from optchat.memory import Memory
def rss():
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * resource.getpagesize()
before, start = rss(), time.perf_counter()
memory = Memory.open(sys.argv[2], compact=False)
opened = time.perf_counter() - start
view = len(memory.view())
print(json.dumps({"open_s": opened, "open_and_view_s": time.perf_counter() - start, "growth_mb": (rss() - before) / 1e6,
                  "messages": memory.store.total(), "view_chars": view}))
memory.close()
"""


def open_in_child(root: Path) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(Path(__file__).resolve().parent.parent), str(root)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


def bench_size(base: Path, size: int) -> dict[str, float]:
    root = base / f"log-{size}"
    start = time.perf_counter()
    write_log(root, size)
    made = time.perf_counter() - start
    os.sync()  # else the first fsync measured below waits for the gigabytes just written
    first = open_in_child(root)
    again = [open_in_child(root) for _ in range(5)]
    found = {
        "write_log_s": made,
        "first_open_s": first["open_s"],
        "first_open_growth_mb": first["growth_mb"],
        "open_s": statistics.median(run["open_s"] for run in again),
        "open_and_view_s": statistics.median(run["open_and_view_s"] for run in again),
        "growth_mb": statistics.median(run["growth_mb"] for run in again),
        "view_chars": again[0]["view_chars"],
    }
    with Memory.open(root, compact=False) as memory:
        memory.view()
        found["view_ms"] = timed(memory.view, 20)
        # The view file is left aside for this one figure: how long a fold from nothing takes.
        found["fold_ms"] = timed(
            lambda: LiveView(memory.store, root / "no-such-view.json", 16_000).lines(), 3
        )
        pick = random.Random(1)
        spots = [
            Place(level, pick.randrange(size >> level)) for level in (1, 3, 6, 9) for _ in range(25)
        ]
        zooms = iter(spots * 2)
        found["zoom_ms"] = timed(lambda: memory.zoom(next(zooms).address), len(spots))
        ids = iter([pick.randrange(size) for _ in range(100)])
        found["zoom_message_ms"] = timed(lambda: memory.zoom(next(ids)), 100)
        found["status_ms"] = timed(memory.status, 3)
        turns, raws = [], []
        raw = os.open(base / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for k in range(100):
            entries = [Entry(kind=kind, text=text(1024, k), session="bench") for kind in TURN]
            turns.append(timed(lambda some=entries: memory.record(some), 1))
            raws.append(timed(lambda: (os.write(raw, b"x" * 9_400), os.fsync(raw)), 1))
        os.close(raw)
        found["turn_of_8_ms"] = statistics.median(turns)
        found["turn_of_8_ratio"] = statistics.median(turns) / statistics.median(raws)
    shutil.rmtree(root)
    return found


def timed(act, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return median_ms(times)


def bench_import(base: Path, size: int) -> dict[str, float]:
    """Messages of 1 KiB logged in batches of 1,000 as ``optchat import`` does, then all lines and
    the full text.
    """
    entries = [
        Entry(kind=TURN[k % 8], text=text(1024, k), session=f"s{k // 400}") for k in range(size)
    ]
    start = time.perf_counter()
    with Memory.open(base / f"import-{size}") as memory:
        for k in range(0, size, 1000):
            memory.record(entries[k : k + 1000])
        logged = time.perf_counter() - start
        memory.settle()
        done = time.perf_counter() - start
        view = memory.view()
    shutil.rmtree(base / f"import-{size}")
    return {
        "logged_s": logged,
        "done_s": done,
        "messages_per_s": size / done,
        "view_chars": len(view),
    }


def bench_unbuilt(base: Path, size: int = 10_000) -> dict[str, int]:
    """Rendered characters with nothing summarized."""
    found = {}
    for budget in (2_000, 16_000):
        from optchat.base.settings import Settings

        with Memory.open(
            base / f"unbuilt-{budget}", Settings(view_budget_chars=budget), compact=False
        ) as memory:
            memory.record([Entry(kind="user", text=text(1024, k)) for k in range(size)])
            found[f"budget_{budget}"] = len(memory.view())
    return found


def run(sizes: list[int], base: Path, rounds: int) -> dict[str, object]:
    report: dict[str, object] = {"python": sys.version.split()[0], "cpus": os.cpu_count()}
    report["append"] = {
        f"{count} message{'s' if count > 1 else ''}, compaction {'on' if compact else 'off'}": bench_append(
            base, count=count, rounds=rounds, compact=compact
        )
        for compact in (False, True)
        for count in (1, 8)
    }
    report["unbuilt view, 10,000 messages"] = bench_unbuilt(base)
    report["import and compact"] = {
        str(size): bench_import(base, size) for size in (10_000, 100_000) if size <= max(sizes)
    }
    report["log with a complete tree"] = {str(size): bench_size(base, size) for size in sizes}
    return report


def show(report: dict[str, object]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for title, rows in report.items():
        if not isinstance(rows, dict):
            console.print(f"{title}: {rows}")
            continue
        nested = rows if all(isinstance(row, dict) for row in rows.values()) else {"": rows}
        table = Table("", *nested, title=title, title_justify="left")
        for key in next(iter(nested.values())):
            table.add_row(
                key,
                *(
                    f"{row[key]:,.3f}" if isinstance(row[key], float) else f"{row[key]:,}"
                    for row in nested.values()
                ),
            )
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument(
        "--dir", type=Path, help="where to put the logs (default: a temporary directory)"
    )
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="optchat-bench-", dir=options.dir))
    try:
        report = run([int(size) for size in options.sizes.split(",")], base, options.rounds)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(json.dumps(report, indent=1)) if options.json else show(report)


if __name__ == "__main__":
    main()
