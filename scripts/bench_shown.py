#!/usr/bin/env python3
"""How much memory text one request of a host carries, in views.

Prints a table, or --json; exits 1 above 1.3.

Plays forty turns with five forced compressions, the last sixteen in another process, in the real
hosts (tests/hosts/make_hosts.py installs them) and looks at every request: all blocks with what the
host puts around them, the blank line before each included. Usage: .venv/bin/python
scripts/bench_shown.py [--json] [--hosts a,b] [--budgets 4000,16000] [--each]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "hosts")]

import make_hosts  # noqa: E402
from homes import Home, Host  # noqa: E402
from model_server import ModelServer, memory_blocks  # noqa: E402
from shown_lives import FORTY_TURNS, fill, memory_chars, told_twice  # noqa: E402

MOST = 1.3


def play(name: str, budget: int, *, each: bool) -> dict[str, float]:
    """One host's forty turns."""
    python = make_hosts.python_of(make_hosts.environment(name))
    with tempfile.TemporaryDirectory(prefix="optchat-bench-") as base, ModelServer() as server:
        home = fill(Home(Host(name, python), Path(base) / "home", server).install(), budget)
        for scenario in FORTY_TURNS:
            home.play(scenario, timeout=300)
        bodies = server.chats()
    if each:
        for number, body in enumerate(bodies):
            blocks = [len(block) for block in memory_blocks(body)]
            print(
                f"{name} {budget} request {number}: {len(body['messages'])} messages, blocks "
                f"{blocks}, {memory_chars(body) / budget:.3f} views"
            )
    return {
        "requests": len(bodies),
        "most_chars": max(map(memory_chars, bodies)),
        "most_views": max(map(memory_chars, bodies)) / budget,
        "most_blocks": max(len(memory_blocks(body)) for body in bodies),
        "requests_without_memory": sum(not memory_blocks(body) for body in bodies),
        "requests_that_say_twice": sum(bool(told_twice(body)) for body in bodies),
    }


def show(report: dict[str, dict[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", *report, title="memory text in one request", title_justify="left")
    for name in next(iter(report.values())):
        table.add_row(
            name,
            *(
                f"{row[name]:,.3f}" if name == "most_views" else f"{row[name]:,}"
                for row in report.values()
            ),
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hosts", default="a,b")
    parser.add_argument("--budgets", default="4000,16000")
    parser.add_argument("--each", action="store_true", help="a line for each request")
    options = parser.parse_args()
    report = {
        f"host {name}, {budget}": play(name, int(budget), each=options.each)
        for name in options.hosts.split(",")
        for budget in options.budgets.split(",")
    }
    print(json.dumps(report, indent=1)) if options.json else show(report)
    sys.exit(any(row["most_views"] > MOST for row in report.values()))


if __name__ == "__main__":
    main()
