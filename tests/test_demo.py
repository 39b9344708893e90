"""The demonstration, and the sample conversation it is made from."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from optchat import cli
from optchat.base.record import KINDS, Entry
from optchat.commands.demo import ANSWER_HEAD, BUDGETS, SAMPLE
from optchat.imports.sources import open_source
from optchat.memory import Memory

ROOT = Path(__file__).parent.parent
LINE = re.compile(r"^(\d+)\+(\d+)\|")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What a newcomer sees, and the directory in which temporary memories are made."""
    temporary = tmp_path_factory.mktemp("temporary")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(temporary),
        "HERMES_HOME": str(temporary / "not touched"),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "optchat", "demo"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout, temporary


def views(text):
    """Both views as lists of (first message, how many)."""
    blocks = re.findall(r"^<chat>\n(.*?)\n</chat>$", text, re.MULTILINE | re.DOTALL)
    return [
        [(int(head[1]), int(head[2])) for line in block.split("\n") if (head := LINE.match(line))]
        for block in blocks
    ]


def test_both_views_cover_every_message_once_within_their_budgets(shown):
    text, _ = shown
    found = views(text)
    assert len(found) == len(BUDGETS) == 2
    for lines in found:
        end = 0
        for first, count in lines:
            assert first == end
            end = first + count
        assert end == len(SAMPLE.read_text(encoding="utf-8").rstrip("\n").split("\n"))
        assert lines[-1][1] < lines[0][1]
    assert len(found[1]) < len(found[0])
    for budget, characters in zip(
        BUDGETS, re.findall(r"lines, ([\d,]+) characters", text), strict=True
    ):
        assert budget // 4 < int(characters.replace(",", "")) <= budget


def test_the_walk_halves_the_line_down_to_the_message_that_decides(shown):
    text, _ = shown
    steps = [
        tuple(map(int, step)) for step in re.findall(r"^zoom (\d+)\+(\d+)$", text, re.MULTILINE)
    ]
    assert steps[0] in views(text)[1]
    assert [count for _, count in steps] == [steps[0][1] >> depth for depth in range(len(steps))]
    assert steps[-1][1] == 1
    for (first, count), (inner, half) in pairwise(steps):
        assert inner in (first, first + half)
        assert half * 2 == count
    last = text.rpartition("\nzoom ")[2]
    assert ANSWER_HEAD in last
    assert "2026-03-24" in last


def test_what_stands_apart_from_the_views_is_short_and_fits_a_terminal(shown):
    text, _ = shown
    prose = re.sub(r"^<chat>\n.*?\n</chat>$", "", text, flags=re.MULTILINE | re.DOTALL).split("\n")
    assert 80 <= len(prose) <= 200
    assert all(len(line) <= 120 for line in prose if "/" not in line)


def test_the_temporary_memory_is_named_and_gone(shown):
    text, temporary = shown
    place = re.search(r"lies in\s+(\S+)\.\s", text)[1]
    assert place.startswith(str(temporary))
    assert list(temporary.iterdir()) == []


def test_a_kept_memory_can_be_looked_around_in(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert cli.main(["demo", "--keep"]) == 0
    out = capsys.readouterr().out
    home = next(tmp_path.iterdir())
    assert f"optchat view --home '{home}'" in out
    assert cli.main(["check", "--home", str(home)]) == 0
    assert cli.main(["search", "boathouse", "--home", str(home)]) == 0


def test_the_demo_goes_into_a_named_home_but_never_into_a_memory_that_exists(tmp_path, capsys):
    home = tmp_path / "new" / "home"
    assert cli.main(["demo", "--home", str(home)]) == 0
    assert cli.main(["status", "--home", str(home)]) == 0
    capsys.readouterr()
    with Memory.open(tmp_path / "optchat", compact=False) as memory:
        memory.record([Entry(kind="user", text="mine")])
    assert cli.main(["demo", "--home", str(tmp_path)]) == 1
    assert "--home" in capsys.readouterr().err
    with Memory.open(tmp_path / "optchat", compact=False) as memory:
        assert memory.status()["messages"] == 1


# -- the sample


@pytest.fixture(scope="module")
def entries():
    items = list(open_source(SAMPLE).items())
    assert all(item.entry for item in items)
    return [item.entry for item in items]


def test_the_sample_has_every_kind_in_a_dozen_sessions_over_six_weeks(entries):
    assert 300 <= len(entries) <= 400
    assert set(KINDS) == {entry.kind for entry in entries}
    sessions = list(dict.fromkeys(entry.session for entry in entries))
    assert 8 <= len(sessions) <= 12
    dates = [datetime.fromisoformat(entry.date) for entry in entries]
    assert dates == sorted(dates)
    assert all(date.tzinfo for date in dates)
    assert 35 <= (dates[-1] - dates[0]).days <= 45
    assert {entry.platform for entry in entries} == {"cli", "telegram"}
    authors = {
        session: {
            entry.author for entry in entries if entry.session == session and entry.kind == "user"
        }
        for session in sessions
    }
    assert any(len(names) == 2 for names in authors.values())


def test_every_tool_call_in_the_sample_has_json_input_and_one_result(entries):
    calls = [entry for entry in entries if entry.kind == "tool"]
    assert len(calls) > 50
    for call in calls:
        name, _, given = call.text.partition(" ")
        assert name == call.tool
        assert isinstance(json.loads(given), dict)
    results = Counter(entry.call for entry in entries if entry.kind == "echo")
    assert results == Counter(call.call for call in calls)
    assert set(results.values()) == {1}


def test_the_sample_has_changes_of_mind_repeats_several_languages_and_long_outputs(entries):
    texts = [entry.text for entry in entries]
    decisions = [text for text in texts if text.startswith("Decision: ")]
    assert len(decisions) == 2
    assert "Postgres" in decisions[0]
    assert decisions[1].startswith(ANSWER_HEAD)
    assert texts.count("ok") >= 4
    assert any("发票" in text for text in texts)
    assert any("Schwimmwesten" in text for text in texts)
    assert any("Traceback (most recent call last)" in text for text in texts)
    assert max(len(text) for text in texts) > 4000
