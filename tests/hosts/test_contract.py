"""Our provider against the host's own idea of one.

Every method of its base class, and every way it is loaded.
"""

import tomllib

import make_hosts
import pytest
from homes import Home
from model_server import memory_blocks

from optchat.base.version import __version__

pytestmark = pytest.mark.hosts


def test_every_method_of_the_hosts_interface_is_ours_and_takes_what_the_host_passes(home):
    found = home.play(
        """
        import inspect
        from agent.memory_provider import MemoryProvider
        from plugins.memory import load_memory_provider

        ours = type(load_memory_provider("optchat"))
        out["methods"], out["missing"], out["differ"] = [], [], []
        for name, theirs in vars(MemoryProvider).items():
            if name.startswith("_") or not callable(theirs):
                continue
            out["methods"].append(name)
            if name not in vars(ours):
                out["missing"].append(name)
                continue
            mine = inspect.signature(vars(ours)[name]).parameters
            takes_more = any(p.kind is p.VAR_KEYWORD for p in mine.values())
            for parameter in inspect.signature(theirs).parameters.values():
                named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
                if named and parameter.name not in mine and not takes_more and name != "get_status_config":
                    out["differ"].append(f"{name}({parameter.name})")
        """
    )

    assert {"prefetch", "sync_turn", "on_session_switch", "handle_tool_call"} <= set(
        found["methods"]
    )
    assert found["missing"] == []
    assert found["differ"] == []


def test_it_loads_under_the_name_a_host_gives_it_and_without_its_newer_names(home):
    found = home.play(
        """
        import sys
        import agent.memory_provider as module
        for name in ("RecallStatus", "spawn_context_thread", "ctx_bound"):
            module.__dict__.pop(name, None)
        from plugins.memory import load_memory_provider
        provider = load_memory_provider("optchat")
        out["module"], out["available"], out["recall"] = type(provider).__module__, provider.is_available(), provider.recall_status()
        out["plain"] = "optchat" in sys.modules
        """
    )

    assert found["module"].startswith("_hermes_user_memory.optchat")
    assert found["available"]
    assert found["recall"] is None
    assert not found["plain"]


def test_a_command_that_fails_ends_with_its_status_and_names_the_hosts_program(home):
    nothing = home.hermes("optchat", "status")
    assert nothing.returncode == 1
    assert "with: hermes optchat import FILE" in nothing.stderr

    home.seed(("user", "hello"))
    assert home.hermes("optchat", "zoom", "99").returncode == 1
    assert home.hermes("optchat", "zoom", "0").returncode == 0


def test_the_command_line_is_there_also_in_a_process_that_never_loads_the_provider(home):
    home.seed(("user", "The fjord boat leaves at 7:40."))

    shown = home.hermes("optchat", "view")

    assert "0+1|user: The fjord boat leaves at 7:40." in shown.stdout, shown.stdout + shown.stderr


def test_status_shows_what_is_in_the_memory(home):
    home.seed(("user", "one"), ("talk", "two"))

    status = home.hermes("memory", "status").stdout

    assert "messages: 2" in status
    assert "lines built: 3" in status
    assert "still to build: 0 lines" in status
    assert "last error: none" in status
    assert "lines written by: model aux-model" in status
    assert "calls: 0 today, 0 in all" in status
    assert "model named for lines: aux-model (auxiliary.optchat_compact)" in status


def test_asking_for_the_status_makes_no_directory(home):
    status = home.hermes("memory", "status").stdout

    assert "nothing has been said yet" in status
    assert not home.memory.exists()


def test_a_pip_installation_is_found_by_its_entry_point(own_host, tmp_path, server):
    if own_host.name == "a":
        pytest.skip("host 0.19 knows no entry point for memory providers")
    project = tomllib.loads((make_hosts.CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    (group,) = project["entry-points"]
    points = "".join(
        f"{name} = {value}\n" for name, value in project["entry-points"][group].items()
    )
    # What an editable installation leaves behind; to run pip here would fetch its build tools.
    (own_host.packages / "optchat.pth").write_text(str(make_hosts.CHECKOUT))
    facts = own_host.packages / f"optchat-{__version__}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: optchat\nVersion: {__version__}\n"
    )
    (facts / "entry_points.txt").write_text(f"[{group}]\n{points}")
    home = Home(own_host, tmp_path / "home", server)
    home.configure(provider="")
    home.seed(("user", "The fjord boat leaves at 7:40."))

    setup = home.hermes("memory", "setup", "optchat")

    assert "Memory provider: optchat" in setup.stdout, setup.stdout + setup.stderr
    assert "messages: 1" in home.hermes("memory", "status").stdout
    assert "7:40" in home.hermes("optchat", "view").stdout
    home.play("""talk = Talk("s1"); talk.say("When does it leave?"); talk.end()""")
    assert "7:40" in memory_blocks(server.chats()[0])[0]


def test_it_runs_in_a_plugin_process_of_its_own(home):
    if home.host.name == "a":
        pytest.skip("host 0.19 runs plugins in its own process only")
    home.configure(plugins={"isolation": "host"})
    home.seed(("user", "The fjord boat leaves at 7:40."))

    home.play(
        """
        talk = Talk("s1")
        talk.say('look @@call optchat_zoom {"id": 0}@@')
        talk.end()
        """
    )

    assert "7:40" in memory_blocks(home.server.chats()[0])[0]
    assert "7:40" in next(
        message["content"]
        for message in home.server.chats()[-1]["messages"]
        if message["role"] == "tool"
    )


def test_a_host_replaced_by_an_upgrade_still_finds_plugin_and_memory(own_host, tmp_path, server):
    """Nothing of ours lies in the host's own tree."""
    before = {
        path.relative_to(own_host.packages)
        for path in own_host.packages.rglob("*")
        if "__pycache__" not in path.parts
    }
    home = Home(own_host, tmp_path / "home", server).install(link=False)

    home.hermes("memory", "setup", "optchat")
    home.play("""talk = Talk("s1"); talk.say("hello there"); talk.end()""")

    after = {
        path.relative_to(own_host.packages)
        for path in own_host.packages.rglob("*")
        if "__pycache__" not in path.parts
    }
    assert {path for path in after - before if "optchat" in str(path)} == set()


def test_a_broken_module_of_ours_costs_no_turn_and_is_said(home, tmp_path):
    (home.path / "plugins" / "optchat").unlink()
    home.install(link=False)
    (home.path / "plugins" / "optchat" / "base" / "address.py").write_text("this is no Python")

    out = home.play("""talk = Talk("s1"); out["answer"] = talk.say("hello there"); talk.end()""")

    assert out["answer"] == "Answer to: hello there"
    assert "SyntaxError" in "".join(path.read_text() for path in (home.path / "logs").glob("*.log"))
    home.seed(("user", "one"))
    assert "invalid syntax" in home.hermes("memory", "status").stdout
