#!/usr/bin/env python3
"""What capturing a turn costs on a long list.

Milliseconds a turn, for a host without ids and for one with them. Gates nothing.

``kept``: the host passes its own message objects again. ``copied``: it passes copies of all of
them. ``restart``: the first list a new process is shown, read from a database. ``reading``: what of
a turn is not the disk's. Usage: .venv/bin/python scripts/bench_capture.py [--messages 5000]
[--turns 30] [--json] [--dir DIR]
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE), str(HERE / "tests")]

from capturestore import MemoryStore  # noqa: E402

from optchat.capture.capture import Capture  # noqa: E402
from optchat.memory import Memory  # noqa: E402

REPLY = (
    "The import stopped at row 1,204 because the invoice has no number; I have put the row "
    "aside and gone on with the others. " * 3
)


def turn(number: int, *, named: bool) -> list[dict]:
    """Four messages: what the user says, a tool call, its result, the reply."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "terminal", "arguments": f'{{"command": "grep {number} log"}}'},
    }
    messages = [
        {"role": "user", "content": f"please look at number {number} again"},
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning": "I will grep."},
        {
            "role": "tool",
            "tool_name": "terminal",
            "tool_call_id": f"call_{number}",
            "content": f"{number}: " + "line of output\n" * 60,
        },
        {"role": "assistant", "content": f"{number}: {REPLY}"},
    ]
    if named:
        for at, message in enumerate(messages):
            message["message_uid"] = f"u{number}-{at}"
    return messages


def timed(do, *arguments) -> float:
    start = time.perf_counter()
    do(*arguments)
    return (time.perf_counter() - start) * 1e3


def turns(
    capture: Capture, history: list[dict], first: int, count: int, *, named: bool, copied: bool
) -> dict[str, float]:
    begun, ended = [], []
    for number in range(first, first + count):
        new = turn(number, named=named)
        begun.append(timed(capture.turn_started, new[0]["content"]))
        history += new
        shown = copy.deepcopy(history) if copied else history
        ended.append(timed(capture.turn_ended, shown, new[0]["content"]))
    return {
        "begins": statistics.median(begun),
        "ends": statistics.median(ended),
        "ends, worst": max(ended),
    }


def bench(store, *, messages: int, count: int, named: bool) -> dict[str, float]:
    history = [message for number in range(messages // 4) for message in turn(number, named=named)]
    capture = Capture(store, session="s")
    capture.initialized()
    found = {"first list": timed(capture.list_seen, history)}
    kept = turns(capture, history, messages, count, named=named, copied=False)
    copied = turns(capture, history, 2 * messages, count, named=named, copied=True)
    found |= {f"kept, {name}": ms for name, ms in kept.items()} | {
        f"copied, {name}": ms for name, ms in copied.items()
    }
    capture.shutdown()
    again = Capture(store, session="s")
    reloaded = [{**message, "timestamp": 1.0} for message in copy.deepcopy(history)]
    found["restart, opens"] = timed(again.initialized)
    found |= {
        f"restart, {name}": ms
        for name, ms in turns(again, reloaded, 3 * messages, 1, named=named, copied=False).items()
    }
    del found["restart, ends, worst"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    for named in (False, True):
        host = "with ids" if named else "without ids"
        base = Path(tempfile.mkdtemp(dir=given.dir))
        try:
            with Memory.open(base / "memory", compact=False) as memory:
                results[host] = bench(
                    memory.capture_store(), messages=given.messages, count=given.turns, named=named
                )
        finally:
            shutil.rmtree(base)
        results[f"{host}, reading"] = bench(
            MemoryStore(), messages=given.messages, count=given.turns, named=named
        )
    if given.json:
        print(json.dumps(results, indent=1))
        return
    print(f"A list of {given.messages:,} messages; milliseconds")
    for host, found in results.items():
        print(f"\n{host}")
        for name, ms in found.items():
            print(f"  {name:<22}{ms:>10.2f}")


if __name__ == "__main__":
    main()
