"""Every command and every program printed in the README is run here, in the order in which a reader
would run them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")

# What cannot be run as it is printed: the test suite would start itself, and nobody's network is
# used. The rest of each line is the same command on less.
INSTEAD = {
    "git clone https://github.com/optchat/optchat && cd optchat": (
        "git clone -q {checkout} optchat && cd optchat && test -x scripts/demo"
    ),
    "scripts/test": "scripts/test --quick --collect-only -q tests/test_docs.py",
    "scripts/check": "scripts/check --quick --collect-only -q tests/test_docs.py",
    "scripts/real_model": "{python} scripts/real_model --help",
    "scripts/bench.py": "{python} scripts/bench.py --sizes 2000 --rounds 3 --json",
}


def commands() -> list[str]:
    """The lines of all shell blocks, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with the one file the README speaks of, and the command on the path."""
    home = tmp_path_factory.mktemp("reader")
    (home / "conversation.jsonl").write_text(
        '{"role": "user", "content": "what was the deposit again?", "session": "s1", "date": '
        '"2026-03-02T10:00:00+01:00"}\n'
        '{"role": "assistant", "content": "The deposit is 30 euros.", "session": "s1"}\n'
        '{"role": "user", "content": "thanks", "session": "s1"}\n'
        '{"role": "user", "content": "and the key?", "session": "s1"}\n',
        encoding="utf-8",
    )
    tools = home / "bin"
    tools.mkdir()
    (tools / "optchat").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m optchat "$@"\n', encoding="utf-8"
    )
    (tools / "optchat").chmod(0o755)
    return home


def run(command: str, place: Path, where: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(place),
        "PYTHONPATH": str(CHECKOUT),
        "LANG": "C.UTF-8",
        "OPTCHAT_PYTHON": sys.executable,
    }
    return subprocess.run(
        ["sh", "-c", command],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_the_readme_prints_commands() -> None:
    """Guards the tests below against finding nothing."""
    found = commands()

    assert "scripts/demo" in found
    assert "scripts/test" in found
    assert sum(line.startswith("optchat ") for line in found) >= 10


def for_the_checkout() -> list[Any]:
    """The commands that are not optchat's own; those of the section on development take longest."""
    lines = [
        line for line in commands() if not line.startswith("optchat ") and "hermes" not in line
    ]
    return [
        pytest.param(line, marks=pytest.mark.slow)
        if line in ("scripts/check", "scripts/bench.py")
        else line
        for line in lines
    ]


@pytest.mark.parametrize("command", for_the_checkout())
def test_a_command_for_the_checkout_runs(command: str, place: Path) -> None:
    if shutil.which("git") is None and "git" in command:
        pytest.skip("there is no git here")
    form = INSTEAD.get(command, command).format(checkout=CHECKOUT, python=sys.executable)
    where = place if "git clone" in command else CHECKOUT

    ended = run(form, place, where)

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_the_commands_of_the_command_line_run_one_after_another(place: Path) -> None:
    for command in [line for line in commands() if line.startswith("optchat ")]:
        ended = run(command, place, place)

        assert ended.returncode == 0, f"{command}: {ended.stderr[-2000:]}"
        assert ended.stdout.strip(), command
        assert "Traceback" not in ended.stderr


def test_the_python_program_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)

    exec(
        compile(program.replace("/path/to/memory", str(tmp_path / "memory")), "README.md", "exec"),
        {},
    )

    assert "30 euros" in capsys.readouterr().out


def test_the_settings_table_is_that_of_the_program() -> None:
    from optchat.base.settings import Settings

    table = README.split("## Settings")[1].split("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))

    assert listed <= set(Settings.model_fields)
    for key in listed:
        default = Settings.model_fields[key].get_default()
        shown = str(default)
        if isinstance(default, bool):
            shown = shown.lower()
        elif isinstance(default, tuple):
            shown = ", ".join(default) or "[]"
        elif key == "retain_pre_filter":
            assert not default.enabled
            shown = "off"
        assert re.search(rf"^\| `{key}` \| `?{re.escape(shown)}`?", table, re.MULTILINE), key


def test_each_promise_names_tests_that_exist():
    promises = (
        (CHECKOUT / "DESIGN.md")
        .read_text(encoding="utf-8")
        .partition("## What we promise")[2]
        .partition("\n## ")[0]
    )
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", promises)
    assert len(named) > 20
    for file, test in named:
        assert f"def {test}(" in (CHECKOUT / "tests" / file).read_text(encoding="utf-8"), (
            f"{file} has no {test}"
        )


def test_each_file_that_the_design_names_exists():
    design = (CHECKOUT / "DESIGN.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", design)
    assert len(named) > 40
    missing = [
        name
        for name in named
        if not (CHECKOUT / name).is_file() and not (CHECKOUT / "optchat" / name).is_file()
    ]
    assert not missing


def test_each_room_has_its_row_in_the_design():
    rooms = (
        (CHECKOUT / "DESIGN.md")
        .read_text(encoding="utf-8")
        .partition("## Rooms")[2]
        .partition("\n## ")[0]
    )
    for room in (CHECKOUT / "optchat").iterdir():
        if (room / "__init__.py").exists():
            assert re.search(rf"^\| `{room.name}/`", rooms, re.MULTILINE), room.name
