"""A fresh host, from the plugin's directory to an active provider, as a user does it."""

import fcntl
import json
import os
import pty
import select
import shutil
import struct
import subprocess
import termios
import time

import make_hosts
import pytest
from homes import PACKAGE

from optchat.base.settings import read_settings

pytestmark = pytest.mark.hosts


def wheels(host):
    """The environment that lets the host's Python install from what make_hosts has put aside."""
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(make_hosts.environment(host.name) / "wheels"),
        "PIP_CONFIG_FILE": "/dev/null",
    }


def test_a_fresh_host_lists_the_provider_and_says_what_it_lacks(bare_home):
    bare_home.configure(provider="optchat")

    status = bare_home.hermes("memory", "status").stdout

    assert "• optchat" in status
    assert "needs orjson, filelock" in status
    assert "hermes memory setup optchat" in status
    assert "not available" in status


def test_setup_installs_asks_and_activates(bare_home):
    done = bare_home.hermes(
        "memory",
        "setup",
        "optchat",
        stdin="24000\n\n\n\ntelegram, cron\n",
        **wheels(bare_home.host),
    )

    assert "Memory provider: optchat" in done.stdout, done.stdout + done.stderr
    assert "No model is named for writing lines" in done.stdout
    assert "hermes config set auxiliary.optchat_compact.model" in done.stdout
    assert json.loads((bare_home.memory / "config.json").read_text()) == {
        "view_budget_chars": 24000,
        "platforms_off": ["telegram", "cron"],
    }
    status = bare_home.hermes("memory", "status").stdout
    assert "available ✓" in status
    assert "optchat  (local) ← active" in status


def test_a_second_setup_with_enter_on_every_question_keeps_answers_and_hand_edits(home):
    home.configure(provider="")
    first = home.hermes("memory", "setup", "optchat", stdin="24000\ntools\nlocal\n1000\nnone\n")
    assert "Lines are written on this machine" in first.stdout
    file = home.memory / "config.json"
    edited = {"of_mine": [1, "ü"], **json.loads(file.read_text()), "node_bytes": 700}
    file.write_text(json.dumps(edited))
    before = file.read_bytes()

    again = home.hermes("memory", "setup", "optchat", stdin="\n" * 9)

    assert "[24000]" in again.stdout
    assert "[tools]" in again.stdout
    assert "[local]" in again.stdout
    assert file.read_bytes() == before


def test_setup_without_a_console_takes_the_defaults_and_writes_no_file(home):
    home.configure(provider="")

    done = home.hermes("memory", "setup", "optchat", stdin="")

    assert "Memory provider: optchat" in done.stdout
    assert "The model aux-model writes the lines" in done.stdout
    assert not (home.memory / "config.json").exists()
    assert "← active" in home.hermes("memory", "status").stdout


def test_the_commands_setup_prints_name_a_model(home):
    home.configure(provider="optchat", auxiliary=False)
    told = home.hermes("memory", "setup", "optchat", stdin="").stdout
    commands = [
        line.partition("#")[0].split()
        for line in told.splitlines()
        if line.strip().startswith("hermes config set")
    ]

    for command in commands:
        home.hermes(*(("small-1" if word == "NAME" else word) for word in command[1:]))

    assert len(commands) == 2
    assert "model named for lines: small-1" in home.hermes("memory", "status").stdout


def test_a_bad_answer_is_asked_again_and_a_broken_file_is_left_alone(home):
    done = home.hermes("memory", "setup", "optchat", stdin="5\n2500\n\n\n\n\n")
    assert "cannot set view_budget_chars" in done.stdout
    assert json.loads((home.memory / "config.json").read_text()) == {"view_budget_chars": 2500}

    (home.memory / "config.json").write_text('{"view_budget_chars": 2500,}')
    done = home.hermes("memory", "setup", "optchat", stdin="3000\n\n\n\n\n")
    assert "Correct the file" in done.stdout
    assert (home.memory / "config.json").read_text() == '{"view_budget_chars": 2500,}'


def test_where_nothing_can_be_installed_setup_says_what_to_run_and_activates_nothing(bare_home):
    nowhere = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(bare_home.path),
        "PIP_CONFIG_FILE": "/dev/null",
    }

    done = bare_home.hermes("memory", "setup", "optchat", **nowhere)

    assert "Not activated. Run this, then the setup again" in done.stdout
    assert "-m pip install 'orjson>=3.9' 'filelock>=3.31'" in done.stdout
    assert "optchat  (local)\n" in bare_home.hermes("memory", "status").stdout


def test_a_process_in_which_setup_ran_can_use_the_memory_at_once(bare_home):
    out = bare_home.play(
        """
        from plugins.memory import load_memory_provider
        provider = load_memory_provider("optchat")
        out["before"] = provider.is_available()
        provider.post_setup(str(home), load_config())
        out["after"] = provider.is_available()
        talk = Talk("s1")
        out["block"] = "optchat" in talk.provider.system_prompt_block()
        out["settings"] = talk.provider._session.settings.view_budget_chars
        talk.end()
        """,
        **wheels(bare_home.host),
    )

    assert out == {"before": False, "after": True, "block": True, "settings": 16_000}


def test_the_picker_with_arrow_keys_leads_to_the_same(bare_home):
    up, enter = "\x1b[A", "\r"
    keys = [
        ("Built-in only", up + enter),
        ("Size of the view", "30000\r"),
        ("Mode:", enter),
        ("Lines written by:", enter),
    ]
    keys += [("Model tokens a day:", enter), ("Platforms without memory:", enter)]

    screen = type_into(bare_home, ["memory", "setup"], keys, **wheels(bare_home.host))

    assert "Memory provider: optchat" in screen
    assert json.loads((bare_home.memory / "config.json").read_text()) == {
        "view_budget_chars": 30000
    }
    assert "optchat  (local) ← active" in bare_home.hermes("memory", "status").stdout


def type_into(home, arguments, keys, timeout=60, **extra):
    """Run the host's program on a terminal, send each text once its cue is on the screen, and
    return all that was shown.
    """
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [str(home.host.python), "-m", "hermes_cli.main", *arguments]
    environment = {**home.environment(**extra), "TERM": "xterm"}
    process = subprocess.Popen(
        command,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=home.path,
        env=environment,
        start_new_session=True,
    )
    os.close(terminal)
    shown, seen, waiting, end = "", 0, list(keys), time.monotonic() + timeout
    try:
        while time.monotonic() < end:
            ready, _, _ = select.select([control], [], [], 0.2)
            if ready:
                try:
                    shown += os.read(control, 65536).decode(errors="replace")
                except OSError:  # the program is gone and has closed its side
                    break
            elif process.poll() is not None:
                break
            while waiting and (at := shown.find(waiting[0][0], seen)) >= 0:
                seen = at + len(waiting[0][0])
                os.write(control, waiting.pop(0)[1].encode())
        return shown
    finally:
        process.kill()
        process.wait()
        os.close(control)


def test_the_plugin_passes_the_newer_hosts_admission(home):
    """The one warning is about imports of the host's inside.

    Where the host itself was installed by pip, it takes every package beside it for its own; of its
    real inside we use what it offers no other way to.
    """
    if home.host.name == "a":
        pytest.skip("host 0.19 has no `plugins validate`")
    plugin = str(home.path / "plugins" / "optchat")

    done = home.hermes("plugins", "validate", plugin, "--json")
    listed = home.run([str(home.host.python), "-c", PRIVATE_IMPORTS, plugin])

    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert report["ok"], report
    assert [
        warning for warning in report["warnings"] if not warning.startswith("private core imports")
    ] == []
    assert report["isolation"]["host_ready"]
    found = {finding.split(" ", 1)[1] for finding in json.loads(listed.stdout)}
    assert {name.split(".")[0] for name in found} <= {
        "plugins",
        "agent",
        "hermes_cli",
        "orjson",
        "filelock",
        "pydantic",
        "rich",
    }
    inside = {
        name.rpartition(".")[0]
        for name in found
        if name.startswith(("plugins", "agent", "hermes_cli"))
    }
    assert inside <= {
        "plugins.memory.config_schema",
        "agent.auxiliary_client",
        "agent.redact",
        "hermes_cli.plugins",
        "hermes_cli.runtime_provider",
    }


PRIVATE_IMPORTS = """
import json, sys
from hermes_cli.plugin_validate_private_imports import private_import_findings
print(json.dumps(private_import_findings(sys.argv[1])))
"""


def test_the_older_host_installs_it_from_a_repository(home, tmp_path):
    if home.host.name == "b":
        pytest.skip(
            "host 0.22 fetches an interpreter from the network for every plugin it installs"
        )
    (home.path / "plugins" / "optchat").unlink()
    repository = tmp_path / "repository"
    shutil.copytree(PACKAGE, repository / "optchat", ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(repository)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *arguments], check=True)

    done = home.hermes("plugins", "install", f"file://{repository}#optchat")

    assert done.returncode == 0, done.stdout + done.stderr
    assert (home.path / "plugins" / "optchat" / "base" / "record.py").exists()
    assert "optchat  (local) ← active" in home.hermes("memory", "status").stdout


def test_the_dashboard_shows_the_fields_and_what_it_saves_are_valid_settings(home):
    home.settings(of_mine="stays", view_budget_chars=5000)

    found = home.play(
        """
        from plugins.memory.config_schema import get_provider_config_schema
        try:
            from hermes_cli.web_routers import memory_providers as dashboard
        except ImportError:
            from hermes_cli import web_server as dashboard
        schema = get_provider_config_schema("optchat")
        shown = {field["key"]: field["value"] for field in dashboard._declared_provider_payload(schema)["fields"]}
        out["inline"] = [field.key for field in schema.inline_fields()]
        out["shown"] = dict(shown)
        dashboard._write_provider_flat(schema, {**shown, "summarizer": "local", "search_tool": "true", "platforms_off": '["cron"]', "focus_chars": ""})
        """
    )

    assert found["shown"]["view_budget_chars"] == "5000"
    assert found["shown"]["summarizer"] == "auto"
    assert "view_budget_chars" in found["inline"]
    saved = json.loads((home.memory / "config.json").read_text())
    assert saved.pop("of_mine") == "stays"
    settings, warnings = read_settings(saved)
    assert warnings == []
    assert (
        settings.view_budget_chars,
        settings.summarizer,
        settings.search_tool,
        settings.platforms_off,
    ) == (5000, "local", True, ("cron",))
    assert settings.focus_chars == 4000
