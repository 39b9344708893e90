"""Fixtures of the host tests: a host, a profile wired to a model on loopback, and runs of programs and scenarios in them."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import make_hosts
from model_server import ModelServer

PACKAGE = make_hosts.CHECKOUT / "optchat"


def pytest_configure(config):
    config.addinivalue_line("markers", "hosts: runs a real Hermes in an environment of its own (tests/hosts/make_hosts.py)")


class Host:
    """One of the two hosts: its environment, or a copy of it without what optchat needs."""

    def __init__(self, name, python):
        self.name = name
        self.python = python
        self.package = make_hosts.CHECKOUT

    def __repr__(self):
        return f"host {self.name}"


class Home:
    """A profile directory of a host, and the programs run in it."""

    def __init__(self, host, directory, server):
        self.host = host
        self.path = directory
        self.server = server
        self.path.mkdir(parents=True)
        self.configure()

    @property
    def memory(self):
        return self.path / "optchat"

    def configure(self, provider="optchat", auxiliary=True, **more):
        """Write config.yaml; JSON is YAML."""
        model = {"default": "main-model", "provider": "custom", "base_url": self.server.url, "api_key": "key"}
        config = {"model": model, "memory": {"provider": provider}, **more}
        if auxiliary:
            config["auxiliary"] = {"optchat_compact": {"provider": "custom", "model": "aux-model", "base_url": self.server.url, "api_key": "key"}}
        (self.path / "config.yaml").write_text(json.dumps(config, indent=1))

    def install(self, link=True):
        """Put the plugin where a user would: a link into the checkout, or a copy."""
        plugins = self.path / "plugins"
        plugins.mkdir(exist_ok=True)
        if link:
            (plugins / "optchat").symlink_to(PACKAGE)
        else:
            shutil.copytree(PACKAGE, plugins / "optchat", ignore=shutil.ignore_patterns("__pycache__"))
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
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "TZ") if name in os.environ}
        return {**kept, "HOME": str(self.path.parent), "HERMES_HOME": str(self.path), "NO_PROXY": "127.0.0.1", "TERM": "dumb", **extra}

    def hermes(self, *arguments, stdin="", timeout=90, **extra):
        """Run the host's own program."""
        return self.run([str(self.host.python), "-m", "hermes_cli.main", *arguments], stdin=stdin, timeout=timeout, **extra)

    def run(self, command, stdin="", timeout=90, **extra):
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout, cwd=self.path, env=self.environment(**extra), check=False
        )

    def play(self, scenario, timeout=110, **extra):
        """Run a scenario in the host's Python (see driver.py) and return what it left in `out`."""
        number = len(list(self.path.parent.glob("scenario-*.py")))
        script, result = (self.path.parent / f"scenario-{number}{end}" for end in (".py", ".json"))
        script.write_text(textwrap.dedent(scenario), encoding="utf-8")
        driver = str(Path(__file__).with_name("driver.py"))
        done = self.run([str(self.host.python), driver, str(script), str(result)], timeout=timeout, **extra)
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return json.loads(result.read_text(encoding="utf-8"))

    def messages(self):
        """The lines of the log, oldest first, as they are on disk."""
        files = sorted((self.memory / "main").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]

    def said(self):
        """Kind and text of each message in the log."""
        return [(message["kind"], message["text"]) for message in self.messages()]


@pytest.fixture(params=["a", "b"])
def host(request):
    """A host with everything optchat needs installed."""
    if not make_hosts.is_made(request.param):
        reason = f"host {request.param} is not installed: python tests/hosts/make_hosts.py {request.param}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return Host(request.param, make_hosts.python_of(make_hosts.environment(request.param)))


@pytest.fixture
def bare_host(host, tmp_path):
    """The same host as it comes: without orjson and filelock.

    A new environment with all of the whole one's packages but these. What is installed into it stays in it. The files are hard
    links: the host looks for the real place of its own files, and by a symbolic link would find the whole environment.
    """
    directory = tmp_path / "bare"
    subprocess.run([str(host.python), "-m", "venv", "--without-pip", str(directory)], check=True)
    packages = next(make_hosts.environment(host.name).glob("lib/python*/site-packages"))
    target = next(directory.glob("lib/python*/site-packages"))
    lacking = shutil.ignore_patterns(*(f"{name}*" for name in make_hosts.BARE))
    shutil.copytree(packages, target, copy_function=_link, ignore=lacking, dirs_exist_ok=True)
    yield Host(host.name, make_hosts.python_of(directory))
    shutil.rmtree(directory)


def _link(source, target):
    try:
        os.link(source, target)
    except OSError:  # the temporary directory is on another disk
        shutil.copy2(source, target)


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


@pytest.fixture
def home(host, tmp_path, server):
    """A profile with optchat installed and active, and a small, cheap model named for it."""
    return Home(host, tmp_path / "home", server).install()


@pytest.fixture
def bare_home(bare_host, tmp_path, server):
    """A fresh profile of a fresh host: optchat's directory is there, and nothing else has happened."""
    home = Home(bare_host, tmp_path / "home", server).install(link=False)
    home.configure(provider="", auxiliary=False)
    return home
