#!/usr/bin/env python3
"""Draws docs/scale.svg.

What one step costs in a log of 1,000 to 1,000,000 messages, from docs/scale.json.

With --measure the figures are taken first, by the other bench scripts, and written to
docs/scale.json; at 1,000,000 messages that takes about half an hour and 10 GB. Usage:
.venv/bin/python scripts/chart.py [--measure] [--sizes 1000,10000,100000,1000000]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
DATA, CHART = DOCS / "scale.json", DOCS / "scale.svg"

SERIES = {
    "turn of 8 messages, durable": ("append", "turn_of_8_ms", 1),
    "open and first view": ("append", "open_and_view_s", 1e3),
    "view": ("append", "view_ms", 1),
    "recall of a question, p95": ("recall", "recall_p95_ms", 1),
    "CPU for a message's lines by a model": ("compaction", "cpu_ms_per_message", 1),
    "idle wake of the compactor": ("compaction", "idle_wake_ms", 1),
}
"""What is drawn.

The line's name, the bench it is from, the figure there, and what makes milliseconds of it.
"""
COLORS = ("#1f6feb", "#2da44e", "#bf8700", "#cf222e", "#8250df", "#57606a")

LEFT, TOP, WIDTH, HEIGHT, LEGEND = 70, 40, 520, 330, 260
LOW, HIGH = -3, 3  # powers of ten of a millisecond


def measured(script: str, *arguments: str) -> dict:
    command = [sys.executable, str(HERE / script), "--json", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(sizes: list[int]) -> dict:
    """The figures of every size, and the machine they were taken on."""
    listed = ",".join(map(str, sizes))
    engine = measured("bench.py", "--sizes", listed)
    recall = measured("bench_focus.py", "--sizes", listed)
    compaction = measured("bench_compact.py", "--sizes", listed)
    return {
        "machine": (
            f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
        ),
        "append": engine.pop("log with a complete tree"),
        "recall": recall,
        "compaction": {str(size): compaction.pop(f"{size}, 1 lane") for size in sizes},
        "besides": engine | compaction,
    }


def points(data: dict, series: tuple[str, str, float]) -> list[tuple[int, float]]:
    bench, figure, factor = series
    return [
        (int(size), row[figure] * factor)
        for size, row in sorted(data[bench].items(), key=lambda item: int(item[0]))
    ]


def place(size: float, ms: float, sizes: tuple[int, int]) -> tuple[float, float]:
    """Where a figure stands, both axes in powers of ten."""
    low, high = map(math.log10, sizes)
    x = LEFT + (math.log10(size) - low) / (high - low) * WIDTH
    y = TOP + (HIGH - min(max(math.log10(ms), LOW), HIGH)) / (HIGH - LOW) * HEIGHT
    return round(x, 1), round(y, 1)


def label(power: int) -> str:
    ms = 10.0**power
    return f"{ms:g} ms" if ms < 1_000 else f"{ms / 1_000:g} s"


def drawn(data: dict) -> str:
    """The chart as SVG."""
    sizes = sorted(int(size) for size in data["append"])
    ends = sizes[0], sizes[-1]
    box = f"0 0 {LEFT + WIDTH + LEGEND} {TOP + HEIGHT + 60}"
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" '
            'font-size="12">'
        ),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        (
            f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">What one step costs, by '
            "messages in the log</text>"
        ),
    ]
    for power in range(LOW, HIGH + 1):
        _, y = place(sizes[0], 10.0**power, ends)
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{LEFT + WIDTH}" y2="{y}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{label(power)}</text>')
    for size in sizes:
        x, _ = place(size, 1, ends)
        parts.append(f'<text x="{x}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{size:,}</text>')
    for number, (name, series) in enumerate(SERIES.items()):
        color, found = COLORS[number], points(data, series)
        spots = [place(size, ms, ends) for size, ms in found]
        parts.append(
            f'<polyline fill="none" stroke="{color}" stroke-width="2" '
            f'points="{" ".join(f"{x},{y}" for x, y in spots)}"/>'
        )
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>' for x, y in spots]
        y = TOP + 10 + 44 * number
        parts.append(
            f'<rect x="{LEFT + WIDTH + 20}" y="{y - 9}" width="10" height="10" fill="{color}"/>'
        )
        parts.append(f'<text x="{LEFT + WIDTH + 36}" y="{y}">{name}</text>')
        parts.append(
            f'<text x="{LEFT + WIDTH + 36}" y="{y + 16}" fill="#57606a">{found[0][1]:.3g} to '
            f"{found[-1][1]:.3g} ms</text>"
        )
    parts.append(
        f'<text x="{LEFT}" y="{TOP + HEIGHT + 45}" fill="#57606a">messages; both scales in '
        f"powers of ten; {data['machine']}</text>"
    )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    options = parser.parse_args()
    DOCS.mkdir(exist_ok=True)
    if options.measure:
        DATA.write_text(
            json.dumps(measure([int(size) for size in options.sizes.split(",")]), indent=1) + "\n"
        )
    CHART.write_text(drawn(json.loads(DATA.read_text())))


if __name__ == "__main__":
    main()
