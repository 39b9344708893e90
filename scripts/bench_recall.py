#!/usr/bin/env python3
"""How much of what a question needs is recalled. Prints a table, or --json. Gates nothing.

DATA is a JSON file of conversations with questions about them: [{name, speaker_a, speaker_b,
messages: [{id, session, date, speaker, text}], questions: [{question, evidence: [message id]}]}].
All conversations are logged one after another into one memory, kinds user and talk by speaker, and
its lines are built locally. Each question is then asked in a session of its own. It counts if all
messages that are its evidence stand word for word in what is shown: recalled         in the text of
recall() after zooms      in that text and what at most 8 zooms of a fixed navigator bring focus off
the same with the plain view full-text hits   in the best hits of search(), as many as fit into the
budget The navigator reads like a model that looks for the question's words and nothing else. Of all
lines in front of it, those it has opened included, it takes the one that matches best by BM25 and
opens it. A line of one message, which has nothing more to show, stands for what was said around it:
the aligned four messages that hold it, unless all four have a line of their own already. Usage:
.venv/bin/python scripts/bench_recall.py DATA [--budget N] [--json] [--dir DIR]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from optchat.base import terms
from optchat.base.errors import AddressError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.memory import Memory
from optchat.recall.rank import K1, B
from optchat.tree.render import one_line

ZOOMS = 8
AROUND = 4
HITS_MAX = 400
LINE = re.compile(r"^ {0,2}(\d+)\+(\d+)\|(.*)$", re.MULTILINE)


# -- the memory


def iso(date: str) -> str:
    """A date as the data writes it ("1:56 pm on 8 May, 2023"), in ISO 8601.

    Empty where it is written in another way.
    """
    try:
        return datetime.strptime(date, "%I:%M %p on %d %B, %Y").isoformat() + "+00:00"
    except ValueError:
        return ""


def log(memory: Memory, conversations: list[dict]) -> list[tuple[str, list[int]]]:
    """Log everything; the questions, each with the ids its evidence got."""
    questions = []
    for talk in conversations:
        entries = [
            Entry(
                kind="user" if said["speaker"] == talk["speaker_a"] else "talk",
                text=f"{said['speaker']}: {said['text']}",
                session=f"{talk['name']}/{said['session']}",
                date=iso(said["date"]),
            )
            for said in talk["messages"]
        ]
        ids = dict(
            zip((said["id"] for said in talk["messages"]), memory.record(entries), strict=True)
        )
        questions += [
            (asked["question"], [ids[id_] for id_ in asked["evidence"]])
            for asked in talk["questions"]
        ]
    return questions


# -- the navigator


def matches(texts: list[str], asked: dict[str, float]) -> list[float]:
    """BM25 of each text, out of these texts alone."""
    counts = [terms.counted(text, asked) for text in texts]
    held = Counter(term for count in counts for term in count)
    mean = sum(map(len, texts)) / len(texts)
    return [
        sum(
            asked[term]
            * terms.rarity(held[term], len(texts))
            * n
            * (K1 + 1)
            / (n + K1 * (1 - B + B * len(text) / mean))
            for term, n in count.items()
        )
        for text, count in zip(texts, counts, strict=True)
    ]


def navigate(memory: Memory, text: str, question: str) -> str:
    """The text and all that the zooms bring."""
    asked = terms.asked(question)
    lines = {(int(first), int(n)): rest for first, n, rest in LINE.findall(text)}
    seen, opened = [text], set()
    for _ in range(ZOOMS):
        keys = [*lines]
        best = sorted(zip(matches([*lines.values()], asked), keys, strict=True), reverse=True)
        target = next((where for _, key in best if (where := to_open(key, lines, opened))), None)
        if target is None:
            break
        opened.add(target)
        try:
            shown = memory.zoom(*target)
        except (
            AddressError
        ):  # the four messages around the last ones of the log may not be all there yet
            continue
        seen.append(shown)
        lines.pop(target, None)
        lines |= {(int(first), int(n)): rest for first, n, rest in LINE.findall(shown)}
    return "\n".join(seen)


def to_open(
    key: tuple[int, int], lines: dict[tuple[int, int], str], opened: set[tuple[int, int]]
) -> tuple[int, int] | None:
    first, n = key
    if n == 1:
        first, n = first // AROUND * AROUND, AROUND
        if all((first + k, 1) in lines for k in range(AROUND)):
            return None
    return None if (first, n) in opened else (first, n)


# -- the figures


def measure(
    name: str,
    rows: list[dict],
    questions: list[tuple[str, list[int]]],
    source: dict[int, str],
    show,
) -> None:
    """Ask every question and note how much of its evidence ``show`` brings."""
    complete, parts, chars, times = 0, 0.0, [], []
    for number, (question, evidence) in enumerate(questions):
        start = time.perf_counter()
        text = show(number, question)
        times.append(time.perf_counter() - start)
        chars.append(len(text))
        found = sum(source[id_] in text for id_ in evidence)
        complete += found == len(evidence)
        parts += found / len(evidence)
    rows.append(
        {
            "shown": name,
            "complete_percent": 100 * complete / len(questions),
            "evidence_percent": 100 * parts / len(questions),
            "chars_mean": statistics.mean(chars),
            "chars_max": max(chars),
            "ms_p50": statistics.median(times) * 1e3,
            "ms_p95": statistics.quantiles(times, n=20)[-1] * 1e3,
        }
    )


def full_text(memory: Memory, question: str, budget: int) -> str:
    """Lines of the best hits, as many as fit."""
    lines = []
    for hit in memory.search(question, HITS_MAX):
        line = f"{hit.id}+1|{one_line(f'{hit.kind}: {hit.text}')}\n"
        if len(line) <= budget:
            lines.append(line)
            budget -= len(line)
    return "".join(lines)


def run(data: Path, budget: int, root: Path) -> dict[str, object]:
    rows: list[dict] = []
    with Memory.open(root, Settings(view_budget_chars=budget)) as memory:
        questions = log(memory, json.loads(data.read_bytes()))
        memory.settle()
        total = memory.status()["messages"]
        source = {
            id_: one_line(memory.message(id_).source)
            for _, evidence in questions
            for id_ in evidence
        }
        texts: list[str] = []

        def recalled(number: int, question: str) -> str:
            texts.append(memory.recall(question, session=f"question {number}"))
            return texts[-1]

        measure("recalled", rows, questions, source, recalled)
        measure(
            f"after {ZOOMS} zooms",
            rows,
            questions,
            source,
            lambda number, question: navigate(memory, texts[number], question),
        )
        measure(
            "full-text hits",
            rows,
            questions,
            source,
            lambda _, question: full_text(memory, question, budget),
        )
    with Memory.open(root, Settings(view_budget_chars=budget, focus_chars=0)) as memory:
        texts.clear()

        def plain(_: int, question: str) -> str:
            texts.append(memory.recall(question))
            return texts[-1]

        measure("focus off", rows, questions, source, plain)
        measure(
            f"focus off, {ZOOMS} zooms",
            rows,
            questions,
            source,
            lambda number, question: navigate(memory, texts[number], question),
        )
    return {"messages": total, "questions": len(questions), "budget": budget, "results": rows}


def show(report: dict) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=(
            f"{report['questions']} questions about {report['messages']:,} messages, budget "
            f"{report['budget']:,}"
        )
    )
    for number, name in enumerate(report["results"][0]):
        table.add_column(name.replace("_", " "), justify="right" if number else "left")
    for row in report["results"]:
        table.add_row(
            *(f"{value:,.1f}" if isinstance(value, float) else str(value) for value in row.values())
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the conversations and their questions")
    parser.add_argument(
        "--budget", type=int, default=16_000, help="characters of one recall (default: 16000)"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--dir", type=Path, help="where to put the memory (default: a temporary directory)"
    )
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="optchat-bench-", dir=options.dir))
    try:
        report = run(options.data, options.budget, base / "memory")
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(json.dumps(report, indent=1)) if options.json else show(report)


if __name__ == "__main__":
    main()
