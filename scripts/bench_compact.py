#!/usr/bin/env python3
"""What compaction with a model costs beside the model.

Calls, tokens, requests that begin like earlier ones, our own time.

The model is a function that waits a fixed time and answers with words of its source. Each size is a
log with a complete tree, onto which turns of eight messages are logged and worked off. Usage:
.venv/bin/python scripts/bench_compact.py [--json] [--sizes 1000,10000,100000] [--turns 40] [--delay
0.02] [--backlog 10000] [--dir DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import TURN, text, write_log

from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.compaction.model import Model, Reply, Said
from optchat.compaction.prompts import FRAMES
from optchat.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

TASK = f"</{FRAMES[0]}>"
SIZES = {"user": 200, "talk": 900, "tool": 300, "echo": 2_000}
"""Bytes of a message of each kind.

Short questions, answers of a paragraph or two, calls, and their long results.
"""


class FakeModel:
    """Answers with the beginning of its source, after a fixed time; remembers what it was sent."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.requests: list[bytes] = []
        self.shares: list[float] = []
        self.seconds = 0.0
        self._mutex = threading.Lock()

    def ask(self, said: Sequence[Said], _model: str) -> Reply:
        began = time.perf_counter()
        sent = "\n".join(one.content for one in said).encode()
        with self._mutex:
            before = sent.find(TASK.encode())
            self.shares.append(
                max((_common(sent, earlier) for earlier in self.requests[-64:]), default=0)
                / max(before, 1)
            )
            self.requests.append(sent)
            # What is needed of them is known: their number.
            self.requests[:-64] = [b""] * len(self.requests[:-64])
        time.sleep(self.delay_s)
        line = self._line(said[-1].content)
        with self._mutex:
            self.seconds += time.perf_counter() - began
        return Reply(line, len(sent) // 4, len(line) // 4, 0)

    @staticmethod
    def _line(content: str) -> str:
        sources = content.split(f"<{FRAMES[1]}>\n")[1:]
        texts = [source.split(f"\n</{FRAMES[1]}>")[0] for source in sources]
        room = 480 // max(len(texts), 1)
        kind = content.partition("of the kind ")[2].partition(":")[0]
        begun = f"{kind}: " if len(texts) == 1 and not texts[0].startswith(f"{kind}: ") else ""
        return begun + " ".join(
            one.encode()[: room - len(begun)].decode(errors="ignore").rpartition(" ")[0]
            for one in texts
        )


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two requests begin with alike, by halving.

    A loop over bytes would take longer than all else.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def entries(number: int) -> list[Entry]:
    return [
        Entry(kind=kind, text=text(SIZES[kind], number * 8 + k), session="bench")
        for k, kind in enumerate(TURN)
    ]


def opened(root: Path, model: FakeModel, jobs: int) -> Memory:
    settings = Settings(compact_jobs=jobs, compact_tokens_per_day=0, summarizer="model")
    return Memory.open(root, settings, compact=False, model=Model("fake", model.ask))


def idle(memory: Memory) -> dict[str, float]:
    """One wake of a compactor that has nothing to do, and one look at everything it could do."""
    compactor = memory.compactor
    wakes, looks = [], []
    for _ in range(200):
        start = time.perf_counter()
        compactor._work.version()
        compactor.model_calls.due_in()
        wakes.append(time.perf_counter() - start)
        start = time.perf_counter()
        compactor.step()
        looks.append(time.perf_counter() - start)
    return {
        "idle_wake_ms": statistics.median(wakes) * 1e3,
        "idle_step_ms": statistics.median(looks) * 1e3,
    }


def steady(root: Path, *, turns: int, delay_s: float, jobs: int, first: int) -> dict[str, float]:
    """Turns logged one by one, each worked off before the next."""
    model = FakeModel(delay_s)
    with opened(root, model, jobs) as memory:
        memory.settle()
        nodes = memory.status()["lines_built"]
        cpu = wall = 0.0
        for number in range(first, first + turns):
            memory.record(entries(number))
            cpu, wall = cpu - time.process_time(), wall - time.perf_counter()
            memory.settle()
            cpu, wall = cpu + time.process_time(), wall + time.perf_counter()
        status = memory.status()
        nodes = status["lines_built"] - nodes
        found = {
            "calls_per_message": len(model.requests) / (turns * 8),
            "tokens_in_per_message": status["model"]["tokens_in"] / (turns * 8)
            if first == 0
            else 0.0,
            "prefix_share": statistics.mean(model.shares[1:]),
            "prefix_share_p10": statistics.quantiles(model.shares[1:], n=10)[0],
            "cpu_ms_per_message": cpu / (turns * 8) * 1e3,
            "overhead_ms_per_call": (wall - model.seconds / jobs)
            / max(len(model.requests), 1)
            * 1e3,
            "nodes": nodes,
            "refused": memory.builder._model_calls.refused,
        }
        return found | (idle(memory) if jobs == 1 else {})


def backlog(root: Path, messages: int) -> dict[str, float]:
    """A log of which nothing is summed up yet, worked off by a model that answers at once."""
    model = FakeModel(0.0)
    largest = [0]
    real = model.ask

    def ask(said: Sequence[Said], name: str) -> Reply:
        largest[0] = max(largest[0], sum(len(one.content.encode()) for one in said))
        return real(said, name)

    model.ask = ask  # type: ignore[method-assign]
    with opened(root, model, 4) as memory:
        for number in range(messages // 8):
            memory.record(entries(number))
        start, cpu = time.perf_counter(), time.process_time()
        memory.settle()
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        return {
            "messages": messages,
            "seconds": wall,
            "messages_per_s": messages / wall,
            "cpu_ms_per_message": cpu / messages * 1e3,
            "calls_per_message": len(model.requests) / messages,
            "largest_request_bytes": largest[0],
            "prefix_share": statistics.mean(model.shares[1:]),
            "view_chars": len(memory.view()),
        }


def run(
    base: Path, sizes: list[int], turns: int, delay_s: float, unbuilt: int
) -> dict[str, dict[str, float]]:
    report: dict[str, dict[str, float]] = {}
    for size in sizes:
        root = base / f"log-{size}"
        write_log(root, size)
        os.sync()
        for jobs in (1, 4):
            first = 0 if jobs == 1 else turns
            report[f"{size}, {jobs} lane{'s' * (jobs > 1)}"] = steady(
                root, turns=turns, delay_s=delay_s, jobs=jobs, first=first
            )
        shutil.rmtree(root)
    if unbuilt:
        report[f"backlog of {unbuilt}"] = backlog(base / "backlog", unbuilt)
    return report


def show(report: dict[str, dict[str, float]]) -> None:
    for name, facts in report.items():
        print(f"\n{name}")
        for fact, value in facts.items():
            print(
                f"  {fact:28} {value:12,.3f}"
                if isinstance(value, float)
                else f"  {fact:28} {value:12,}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--delay", type=float, default=0.02, help="seconds the fake model takes")
    parser.add_argument(
        "--backlog",
        type=int,
        default=10_000,
        help="messages of a log that is not summed up; 0 leaves it out",
    )
    parser.add_argument("--dir", type=Path, help="where to work; a temporary directory otherwise")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",") if size]
    base = Path(tempfile.mkdtemp(prefix="bench-", dir=options.dir))
    try:
        report = run(base, sizes, options.turns, options.delay, options.backlog)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(json.dumps(report)) if options.json else show(report)


if __name__ == "__main__":
    main()
