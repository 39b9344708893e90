"""A host, and a profile of it wired to a model on loopback, with the runs of programs and scenarios
in it.
"""

import json
import os
import shutil
import signal
import subprocess
import textwrap
from itertools import count
from pathlib import Path

import make_hosts

PACKAGE = make_hosts.CHECKOUT / "optchat"

PLAIN = {"environment_probe": False}
"""An agent without the line on what Python and pip are installed: both hosts start six programs to
find out, as long as all the rest of a short test takes."""


class Host:
    """One of the two hosts: its environment, or a copy of it without what optchat needs."""

    def __init__(self, name, python, packages=None):
        self.name = name
        self.python = python
        self.packages = packages

    def __repr__(self):
        return f"host {self.name}"


class Home:
    """A profile directory of a host, and the programs run in it."""

    def __init__(self, host, directory, server):
        self.host = host
        self.path = directory
        self.server = server
        self._scenarios = count()
        self.path.mkdir(parents=True)
        self.configure()

    @property
    def memory(self):
        return self.path / "optchat"

    def configure(self, provider="optchat", auxiliary=True, model=(), **more):
        """Write config.yaml; JSON is YAML.

        ``auxiliary``: whether a model is named for our task, or what is to be said of it.
        """
        model = {
            "default": "main-model",
            "provider": "custom",
            "base_url": self.server.url,
            "api_key": "key",
            **dict(model),
        }
        config = {"model": model, "memory": {"provider": provider}, "agent": PLAIN, **more}
        if auxiliary:
            named = {
                "provider": "custom",
                "model": "aux-model",
                "base_url": self.server.url,
                "api_key": "key",
            }
            config["auxiliary"] = {"optchat_compact": named if auxiliary is True else auxiliary}
        (self.path / "config.yaml").write_text(json.dumps(config, indent=1))

    def install(self, link=True):
        """Put the plugin where a user would: a link into the checkout, or a copy."""
        plugins = self.path / "plugins"
        plugins.mkdir(exist_ok=True)
        if link:
            (plugins / "optchat").symlink_to(PACKAGE)
        else:
            shutil.copytree(
                PACKAGE, plugins / "optchat", ignore=shutil.ignore_patterns("__pycache__")
            )
        return self

    def settings(self, **values):
        self.memory.mkdir(exist_ok=True)
        (self.memory / "config.json").write_text(json.dumps(values))
        return self

    def seed(self, *said):
        """Log these (kind, text) pairs as an earlier session's, and build their lines."""
        from optchat import Entry, Memory

        with Memory.open(self.memory, compact=False) as memory:
            memory.record([Entry(kind=kind, text=text, session="before") for kind, text in said])
            memory.settle(20)
        return self

    def environment(self, **extra):
        kept = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "TZ")
            if name in os.environ
        }
        return {
            **kept,
            "HOME": str(self.path.parent),
            "HERMES_HOME": str(self.path),
            "NO_PROXY": "127.0.0.1",
            "TERM": "dumb",
            **extra,
        }

    def hermes(self, *arguments, stdin="", timeout=90, **extra):
        """Run the host's own program."""
        return self.run(
            [str(self.host.python), "-m", "hermes_cli.main", *arguments],
            stdin=stdin,
            timeout=timeout,
            **extra,
        )

    def run(self, command, stdin="", timeout=90, **extra):
        """Run a program in the host's Python.

        A native library of the newer host has threads that crash, about once in some hundred runs,
        as the process ends: when all is said and done, and without a frame of Python in them. That
        is no failure of what is tested here, unless we were still at work. Where what tells of the
        crash crashes as well, the code is that of a bus error; where the interpreter has ended
        before, nothing tells of it.
        """
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.path,
            env=self.environment(**{"PYTHONFAULTHANDLER": "1"} | extra),
            check=False,
        )
        told = done.stderr.partition("Fatal Python error: Segmentation fault")[2]
        if done.returncode in (-signal.SIGSEGV, -signal.SIGBUS) and "optchat" not in told:
            done.returncode = 0
        return done

    def play(self, scenario, timeout=110, **extra):
        """Run a scenario in the host's Python (see driver.py) and return what it left in `out`."""
        number = next(self._scenarios)
        script, result = (
            self.path.with_name(f"{self.path.name}-{number}{end}") for end in (".py", ".json")
        )
        script.write_text(textwrap.dedent(scenario), encoding="utf-8")
        driver = str(Path(__file__).with_name("driver.py"))
        done = self.run(
            [str(self.host.python), driver, str(script), str(result)], timeout=timeout, **extra
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return json.loads(result.read_text(encoding="utf-8"))

    def messages(self):
        """The lines of the log, oldest first, as they are on disk."""
        files = sorted((self.memory / "main").glob("*.jsonl"))
        return [
            json.loads(line)
            for file in files
            for line in file.read_text(encoding="utf-8").splitlines()
        ]

    def said(self):
        """Kind and text of each message in the log."""
        return [(message["kind"], message["text"]) for message in self.messages()]
