"""The command line as people and shells meet it.

Exit statuses, one line for what goes wrong, and never a traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from optchat import cli
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.compaction.model import Model, ModelDownError, Reply
from optchat.hermes import status as host_status
from optchat.hermes import tools
from optchat.memory import Memory

ROOT = Path(__file__).parent.parent
READING = [
    ["status"],
    ["view"],
    ["view", "--query", "boats"],
    ["zoom", "0"],
    ["date", "0"],
    ["search", "boats"],
    ["compact"],
    ["check"],
]


def optchat(*args, env=None, **more):
    """The real command in a process of its own."""
    more = {"capture_output": True, "text": True, "encoding": "utf-8", "errors": "replace", **more}
    command = [sys.executable, "-W", "error", "-m", "optchat", *map(str, args)]
    clean = {
        key: value
        for key, value in os.environ.items()
        if key not in ("HERMES_HOME", "PYTHONIOENCODING")
    }
    return subprocess.run(
        command,
        env={**clean, "PYTHONPATH": str(ROOT), **(env or {})},
        timeout=60,
        check=False,
        **more,
    )


@pytest.fixture
def home(tmp_path):
    """A home with ten messages, all lines built; the ninth is long."""
    with Memory.open(tmp_path / "optchat", compact=False) as memory:
        entries = [
            Entry(
                kind="user",
                text="Which boats are free?",
                session="s1",
                date="2026-03-02T09:00:00+01:00",
                author="Ann",
                platform="telegram",
            ),
            Entry(
                kind="talk",
                text="Eleven kayaks, 五艘划艇 and Ilse.",
                session="s1",
                date="2026-03-02T09:01:00+01:00",
            ),
            *(Entry(kind="user", text=f"message {number}", session="s2") for number in range(2, 8)),
            Entry(
                kind="echo",
                text="\n".join(
                    f"-rw-r--r-- file {number} of a long listing" for number in range(1000)
                ),
                session="s2",
                tool="terminal",
            ),
            Entry(kind="user", text="ok", session="s2"),
        ]
        memory.record(entries)
        memory.settle()
    return tmp_path


def in_process(capsys, *args):
    status = cli.main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return status, out, err


def one_line(err):
    assert err.count("\n") == 1, err
    assert err.startswith("optchat: ")
    assert "Traceback" not in err
    return err


# -- usage


def test_help_names_every_command_and_each_has_its_own(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert set(cli.ACTIONS) == {
        *("status", "view", "zoom", "date", "search", "import", "compact", "check"),
        *("copies", "redact", "demo"),
    }
    for name in cli.ACTIONS:
        assert re.search(rf"^    {name} ", shown, re.MULTILINE)
        with pytest.raises(SystemExit) as ended:
            cli.main([name, "--help"])
        assert ended.value.code == 0
        assert "--home" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["zoom"],
        ["search"],
        ["import"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--limit", "many"],
    ],
)
def test_wrong_usage_ends_with_status_2(args, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(args)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "usage:" in err
    assert "_positive" not in err, "a name of the code tells a user nothing"


def test_no_command_shows_the_help_and_ends_with_status_2(capsys):
    status, out, err = in_process(capsys)
    assert (status, out) == (2, "")
    assert "COMMAND" in err


def test_a_host_can_take_the_commands_into_a_parser_of_its_own(home, capsys):
    parser = argparse.ArgumentParser(prog="hermes")
    plugin = parser.add_subparsers(dest="command").add_parser("optchat")
    cli.register_cli(plugin)
    assert (
        cli.optchat_command(parser.parse_args(["optchat", "date", "0", "--home", str(home)])) == 0
    )
    assert "2026-03-02T09:00:00+01:00" in capsys.readouterr().out
    one_line(in_hermes(capsys, 2)[1])


def in_hermes(capsys, status, *args):
    """What a command prints that is run inside Hermes and ends with this status.

    An older host ends with 0 whatever it returns.
    """
    parser = argparse.ArgumentParser(prog="hermes optchat")
    cli.register_cli(parser)
    parsed = parser.parse_args([str(arg) for arg in args])
    if status == 0:
        assert cli.optchat_command(parsed) == 0
    else:
        with pytest.raises(SystemExit) as ended:
            cli.optchat_command(parsed)
        assert ended.value.code == status
    return capsys.readouterr()


def test_advice_names_the_program_the_user_has_and_the_memory_it_is_about(tmp_path, capsys):
    source, home = tmp_path / "talk.jsonl", tmp_path / "another home"
    home.mkdir()
    source.write_text('{"role": "user", "content": "hello"}')
    here, there, module = (
        "optchat compact --home",
        "hermes optchat compact --home",
        f"{sys.executable} -m optchat compact --home",
    )

    assert "Run: hermes optchat --help" in in_hermes(capsys, 2).err
    assert "To see one: hermes optchat demo" in in_hermes(capsys, 1, "status", "--home", home).err
    assert f"now: {there} '{home}'" in in_hermes(capsys, 0, "import", source, "--home", home).out
    assert f"now: {there} '{home}'" in in_hermes(capsys, 0, "status", "--home", home).out
    assert (
        f"searchable: {there} '{home}'"
        in in_hermes(capsys, 0, "search", "hello", "--home", home).err
    )
    assert f"now: {here} '{home}'" in in_process(capsys, "status", "--home", home)[1]
    assert f"now: {module} '{home}'" in optchat("status", "--home", home).stdout
    assert optchat("status", env={"HERMES_HOME": str(home)}).stdout.endswith(
        " -m optchat compact\n"
    )


def test_importing_the_command_line_loads_nothing_but_the_standard_library():
    script = (
        "import sys, optchat.cli, optchat.__main__; print([m for m in ('orjson', 'filelock', "
        "'pydantic', 'rich', 'optchat.memory', 'optchat.commands') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert done.stdout.strip() == "[]"


# -- what the commands print


def test_status_is_aligned_and_has_no_complaint_when_all_is_well(home, capsys):
    status, out, err = in_process(capsys, "status", "--home", home)
    assert (status, err) == (0, "")
    rows = out.rstrip("\n").split("\n")
    assert all(row[12] == " " and row[13] != " " for row in rows)
    assert rows[0].split()[1] == str(home / "optchat")
    assert rows[1].startswith("messages     10 in 2 sessions, since 2026-03-02")
    assert not any(row.startswith("!") for row in rows)


def test_status_says_what_to_do_about_a_backlog_and_bad_settings(tmp_path, capsys):
    with Memory.open(tmp_path / "optchat", compact=False) as memory:
        memory.record([Entry(kind="user", text=f"message {number}") for number in range(5)])
    (tmp_path / "optchat" / "config.json").write_text('{"node_bytes": 3, "colour": "blue"}')
    status, out, err = in_process(capsys, "status", "--home", tmp_path)
    assert (status, err) == (0, "")
    complaints = [row for row in out.split("\n") if row.startswith("! ")]
    assert any("optchat compact" in row for row in complaints)
    assert any("node_bytes" in row for row in complaints)
    assert any("colour" in row for row in complaints)
    assert all(
        str(tmp_path / "optchat" / "config.json") in row
        for row in complaints
        if "compact" not in row
    ), "which file is to be corrected"
    (tmp_path / "optchat" / "config.json").write_text("{")
    out = in_process(capsys, "status", "--home", tmp_path)[1]
    assert f"! {tmp_path / 'optchat' / 'config.json'} is not JSON" in out
    assert "Correct it" in out


def test_status_tells_what_the_model_costs_and_why_it_rests(home, capsys, monkeypatch):
    asked = []

    def ask(request, other):
        asked.append(request)
        if len(asked) > 1:
            raise ModelDownError("cannot use small-1: its account has no credit left")
        return Reply("user: word after word", tokens_in=1200, tokens_out=30, cached=800)

    settings = Settings(summarizer="model", compact_jobs=1)
    with Memory.open(
        home / "optchat", settings, compact=False, model=Model("small-1", ask)
    ) as memory:
        memory.record(
            [
                Entry(kind="user", text="word " * 300, session="s9"),
                Entry(kind="talk", text="phrase " * 300, session="s9"),
            ]
        )
        memory.settle(5)

    _, out, _ = in_process(capsys, "status", "--home", home)

    rows = dict(
        row.split(maxsplit=1) for row in out.splitlines() if row and not row.startswith("!")
    )
    assert rows["calls"] == "2 today, 2 in all"
    assert "tokens today 1,200 in (800 from a cache), 30 out" in out
    assert "paused: cannot use small-1: its account has no credit left" in rows["model"]
    advice = [
        row for row in out.splitlines() if row.startswith("!") and "hermes optchat compact" in row
    ]
    assert len(advice) == 1
    assert "auxiliary.optchat_compact" in advice[0]
    assert '"summarizer": "local"' in advice[0]
    monkeypatch.setattr("optchat.hermes.status.host_config", dict)
    assert '"summarizer": "local"' in host_status.rows(home)["what to do"]


def test_a_days_tokens_that_are_spent_are_no_reason_to_look_for_a_fault(home, capsys):
    def ask(request, other):
        return Reply("user: word after word", tokens_in=1200, tokens_out=30)

    settings = Settings(summarizer="model", compact_jobs=1, compact_tokens_per_day=100)
    with Memory.open(
        home / "optchat", settings, compact=False, model=Model("small-1", ask)
    ) as memory:
        memory.record(
            [Entry(kind=kind, text=f"{kind} " * 300, session="s9") for kind in ("user", "talk")]
        )
        memory.settle(5)

    _, out, _ = in_process(capsys, "status", "--home", home)

    assert "compact_tokens_per_day" in out
    assert "raise it in config.json" in out
    assert "To ask it now" not in out


def test_what_a_model_refused_before_it_came_back_is_told_and_is_no_complaint(home, capsys):
    down = []

    def ask(request, other):
        if not down:
            down.append(request)
            raise ModelDownError("cannot use small-1: its account has no credit left")
        return Reply("user: word after word", tokens_in=12, tokens_out=3)

    for _ in range(2):
        with Memory.open(
            home / "optchat",
            Settings(summarizer="model"),
            compact=False,
            model=Model("small-1", ask),
        ) as memory:
            memory.record([Entry(kind="user", text="word " * 300, session="s9")])
            memory.settle(5)

    _, out, _ = in_process(capsys, "status", "--home", home)

    assert "\nmodel        ready\n" in out
    assert "\nlast error   cannot use small-1: its account has no credit left" in out
    assert "! last error" not in out


def test_outside_of_hermes_a_line_only_a_model_may_write_waits_and_compact_says_so(
    tmp_path, capsys
):
    with Memory.open(tmp_path / "optchat", compact=False) as memory:
        memory.record(
            [Entry(kind="user", text="word " * 300), Entry(kind="echo", text="row " * 300)]
        )
    (tmp_path / "optchat" / "config.json").write_text('{"summarizer": "model"}')

    status, out, _ = in_process(capsys, "compact", "--home", tmp_path)

    assert (status, "built 1 line; 1 still wait: no model can be reached from here" in out) == (
        1,
        True,
    )
    facts = json.loads(in_process(capsys, "compact", "--json", "--home", tmp_path)[1])
    assert (facts["complete"], facts["waiting"], facts["reason"].partition(";")[0]) == (
        False,
        1,
        "no model can be reached from here",
    )
    assert "hermes optchat compact" in in_process(capsys, "status", "--home", tmp_path)[1]


def test_status_as_json_holds_the_same_facts(home, capsys):
    status, out, _ = in_process(capsys, "status", "--json", "--home", home)
    facts = json.loads(out)
    assert status == 0
    assert (
        facts["messages"],
        facts["sessions"],
        facts["lines_built"],
        facts["lines_ready"],
        facts["full_text_behind"],
    ) == (10, 2, 18, 0, 0)


def test_view_is_printed_as_the_model_gets_it(home, capsys):
    with Memory.open(home / "optchat", compact=False) as memory:
        view = memory.view()
    assert in_process(capsys, "view", "--home", home) == (0, view + "\n", "")
    status, out, _ = in_process(capsys, "view", "--query", "boats", "--home", home)
    assert status == 0
    assert out.startswith(view.split("\n", maxsplit=1)[0])


def test_zoom_opens_a_line_and_a_message_by_any_spelling_of_its_address(home, capsys):
    status, out, _ = in_process(capsys, "zoom", "0+2", "--home", home)
    assert status == 0
    assert [line.partition("|")[0] for line in out.strip().split("\n")] == ["0+1", "1+1"]
    for address in ("1", "1+1", " 1 ", "1+1|talk: as copied from the view"):
        status, out, _ = in_process(capsys, "zoom", address, "--home", home)
        assert (status, "五艘划艇" in out) == (0, True)


def test_zoom_turns_the_pages_of_a_long_message(home, capsys):
    status, first, _ = in_process(capsys, "zoom", "8", "--home", home)
    assert (status, "page 1 of 3" in first) == (0, True)
    status, last, _ = in_process(capsys, "zoom", "8", "--page", "3", "--home", home)
    assert (status, "page 3 of 3" in last) == (0, True)
    status, out, err = in_process(capsys, "zoom", "8", "--page", "4", "--home", home)
    assert (status, out) == (1, "")
    assert "1 to 3" in one_line(err)


@pytest.mark.parametrize("address", ["10", "3+2", "0+3", "-1", "x", "", "0+1000000000000000000000"])
@pytest.mark.parametrize("command", ["zoom", "date"])
def test_a_wrong_address_gets_one_line_and_status_1(home, capsys, command, address):
    status, out, err = in_process(capsys, command, "--home", home, "--", address)
    assert (status, out) == (1, "")
    one_line(err)


def test_date_says_when_by_whom_and_where(home, capsys):
    status, out, _ = in_process(capsys, "date", "0", "--home", home)
    assert status == 0
    for part in ("2026-03-02T09:00:00+01:00", "s1", "Ann", "telegram"):
        assert part in out
    status, out, _ = in_process(capsys, "date", "0", "--json", "--home", home)
    first = {
        "id": 0,
        "date": "2026-03-02T09:00:00+01:00",
        "kind": "user",
        "session": "s1",
        "author": "Ann",
        "platform": "telegram",
        "tool": None,
    }
    assert json.loads(out) == {"address": "0", "messages": [first]}
    status, out, _ = in_process(capsys, "date", "8+2", "--json", "--home", home)
    assert [(message["id"], message["tool"]) for message in json.loads(out)["messages"]] == [
        (8, "terminal"),
        (9, None),
    ]


def test_view_and_zoom_print_their_text_as_json(home, capsys):
    for command in (["view"], ["view", "--query", "kayaks"], ["zoom", "0"]):
        _, text, _ = in_process(capsys, *command, "--home", home)
        status, out, _ = in_process(capsys, *command, "--json", "--home", home)
        assert (status, json.loads(out)["text"] + "\n") == (0, text)


def test_search_prints_one_line_a_hit_that_zoom_takes(home, capsys):
    status, out, _ = in_process(capsys, "search", "kayaks", "--home", home)
    assert (status, out) == (0, "1+1|talk: Eleven kayaks, 五艘划艇 and Ilse.\n")
    status, out, _ = in_process(
        capsys, "search", "message", "--limit", "2", "--json", "--home", home
    )
    assert len(json.loads(out)["hits"]) == 2
    status, out, _ = in_process(capsys, "search", "submarine", "--home", home)
    assert (status, out) == (0, "nothing found for: submarine\n")
    status, out, _ = in_process(capsys, "search", "listing", "--home", home)
    assert (status, out.count("\n")) == (0, 1)
    assert len(out) < 450


def test_search_prints_what_the_tool_shows_best_or_newest_first(home, capsys):
    with Memory.open(home / "optchat", compact=False) as memory:
        for query, newest, ids in (("message 4", False, [4, 5, 3]), ("message", True, [7, 6, 5])):
            shown = json.loads(
                tools.call(memory, "optchat_search", {"query": query, "limit": 3, "newest": newest})
            )["text"]
            args = [
                "search",
                *query.split(),
                "--limit",
                "3",
                *["--newest"] * newest,
                "--home",
                home,
            ]
            assert in_process(capsys, *args) == (0, shown + "\n", "")
            hits = json.loads(in_process(capsys, *args, "--json")[1])["hits"]
            assert [hit["line"] for hit in hits] == shown.split("\n")
            assert [hit["id"] for hit in hits] == ids
        memory.record([Entry(kind="user", text="message 10")])
    status, out, err = in_process(capsys, "search", "message", "10", "--home", home)
    assert (status, out.count("message 10")) == (0, 0)
    assert "1 of the newest messages cannot be found yet" in one_line(err)


def test_import_compact_and_check_follow_one_another(tmp_path, capsys):
    source = tmp_path / "talk.jsonl"
    source.write_text(
        '{"role": "user", "content": "hello"}\n{"role": "assistant", "content": "hi"}\n{broken\n'
    )
    status, out, err = in_process(capsys, "import", source, "--home", tmp_path)
    assert (status, err) == (0, "")
    assert "2 added, 0 known already, 1 unreadable" in out
    assert "line 3 is not JSON" in out
    assert "optchat compact" in out
    status, out, _ = in_process(capsys, "import", source, "--json", "--home", tmp_path)
    assert (json.loads(out)["added"], json.loads(out)["known"]) == (0, 2)
    status, out, _ = in_process(capsys, "compact", "--home", tmp_path)
    assert (status, out) == (0, "built 3 lines; all 3 lines are there\n")
    status, out, _ = in_process(capsys, "compact", "--json", "--home", tmp_path)
    assert json.loads(out) == {"built": 0, "complete": True, "lines": 3, "waiting": 0, "reason": ""}
    status, out, _ = in_process(capsys, "check", "--home", tmp_path)
    assert (status, "no damage" in out) == (0, True)


def test_check_names_damage_and_ends_with_status_1(home, capsys):
    day = next((home / "optchat" / "main").iterdir())
    day.write_bytes(day.read_bytes().replace(b"message 4", b"massage 4"))
    status, out, _ = in_process(capsys, "check", "--home", home)
    assert status == 1
    assert "damage: " in out
    assert day.name in out
    status, out, _ = in_process(capsys, "check", "--json", "--home", home)
    assert (status, bool(json.loads(out)["damage"])) == (1, True)


def test_an_import_of_which_nothing_can_be_read_ends_with_status_1(tmp_path, capsys):
    source = tmp_path / "talk.jsonl"
    source.write_text("{broken\n" * 3)
    status, out, _ = in_process(capsys, "import", source, "--home", tmp_path)
    assert (status, "3 unreadable" in out) == (1, True)
    for wrong in (tmp_path, tmp_path / "gone.jsonl"):
        status, out, err = in_process(capsys, "import", wrong, "--home", tmp_path)
        assert (status, out) == (1, "")
        assert str(wrong) in one_line(err)


# -- homes


@pytest.mark.parametrize("args", READING)
@pytest.mark.parametrize("place", ["empty", "gone/deep"])
def test_a_home_without_memory_is_said_in_one_line_and_left_alone(tmp_path, capsys, args, place):
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    status, out, err = in_process(capsys, *args, "--home", tmp_path / place)
    assert (status, out) == (1, "")
    assert "optchat import" in one_line(err)
    assert sorted(tmp_path.rglob("*")) == before


def test_import_makes_a_memory_but_no_home(tmp_path, capsys):
    source = tmp_path / "talk.jsonl"
    source.write_text('{"role": "user", "content": "hello"}\n')
    status, _, err = in_process(capsys, "import", source, "--home", tmp_path / "typo")
    assert status == 1
    assert "mkdir" in one_line(err)
    assert not (tmp_path / "typo").exists()


def test_the_home_comes_from_the_option_then_from_the_environment_then_from_the_user(
    home, tmp_path, monkeypatch
):
    def chosen(*args):
        parser = argparse.ArgumentParser()
        cli.register_cli(parser)
        return cli.home_of(parser.parse_args(["status", *args]))

    monkeypatch.setenv("HERMES_HOME", str(home))
    assert chosen() == home
    assert chosen("--home", "/elsewhere") == Path("/elsewhere")
    monkeypatch.delenv("HERMES_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert chosen() == tmp_path / ".hermes"


def test_a_memory_that_cannot_be_read_is_said_in_one_line(home, capsys):
    day = home / "optchat" / "index.sqlite"
    day.unlink()
    day.mkdir()
    status, _, err = in_process(capsys, "status", "--home", home)
    assert status == 1
    one_line(err)


def test_bad_settings_are_named_once_and_the_command_goes_on(home, capsys):
    (home / "optchat" / "config.json").write_text('{"view_budget_chars": 5}')
    done = optchat("date", "0", "--home", home)
    assert (done.returncode, done.stdout.count("2026-03-02")) == (0, 1)
    assert "view_budget_chars" in one_line(done.stderr)
    (home / "optchat" / "config.json").write_text("{")
    status, _, err = in_process(capsys, "date", "0", "--home", home)
    assert status == 0
    assert "config.json" in one_line(err)


# -- terminals, pipes, interruptions


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16", "utf-8:strict"])
def test_a_terminal_that_cannot_show_every_character_gets_the_rest(home, encoding):
    done = optchat(
        "view",
        "--home",
        home,
        env={"PYTHONIOENCODING": encoding},
        text=False,
        encoding=None,
        errors=None,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode(encoding.partition(":")[0])
    assert "Eleven kayaks" in shown
    assert ("五艘划艇" in shown) == encoding.startswith("utf")


def test_a_reader_that_goes_away_ends_the_command_without_a_word(home):
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = optchat(
            "view", "--home", home, capture_output=False, stdout=write_end, stderr=subprocess.PIPE
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_under_the_output_is_said_in_one_line(home):
    with open("/dev/full", "w") as full:
        done = optchat(
            "view", "--home", home, capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert "No space left" in one_line(done.stderr)


def test_an_interruption_ends_with_status_130(home, capsys, monkeypatch):
    def interrupt(_args):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.ACTIONS, "view", interrupt)
    status, out, err = in_process(capsys, "view", "--home", home)
    assert (status, out) == (130, "")
    one_line(err)


def test_a_fault_of_our_own_is_one_line_too_and_debugging_shows_it_whole(home, capsys, monkeypatch):
    def fail(_args):
        raise RuntimeError("two\nlines")

    monkeypatch.setitem(cli.ACTIONS, "view", fail)
    status, _, err = in_process(capsys, "view", "--home", home)
    assert status == 1
    assert "RuntimeError: two lines" in one_line(err)
    monkeypatch.setenv("OPTCHAT_DEBUG", "1")
    with pytest.raises(RuntimeError):
        cli.main(["view", "--home", str(home)])


@pytest.mark.parametrize("package", ["orjson", "filelock", "pydantic", "rich"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(home, package):
    script = (
        f"import sys; sys.modules[{package!r}] = None; sys.stderr.isatty = lambda: True; from "
        "optchat.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", script, "compact", "--home", str(home)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 1
    assert f"-m pip install {package}" in one_line(done.stderr)


def test_bars_are_shown_on_a_terminal_and_nowhere_else(tmp_path):
    source = tmp_path / "talk.jsonl"
    source.write_text(
        "".join(
            json.dumps({"kind": "user", "text": f"message {number} " + "long " * 200}) + "\n"
            for number in range(200)
        )
    )
    ours, theirs = pty.openpty()
    try:
        done = optchat(
            "import",
            source,
            "--home",
            tmp_path,
            capture_output=False,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={"TERM": "xterm"},
        )
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0
    assert "200 added" in done.stdout
    assert "importing" in shown
    silent = optchat("compact", "--home", tmp_path)
    assert (silent.returncode, silent.stderr) == (0, "")
