"""Fixtures of the host tests.

A host, a copy of one to install things into, a profile, and a model on loopback.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import make_hosts
from homes import Home, Host
from life import Life
from model_server import ModelServer
from terminal import QUIET


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "hosts: runs a real Hermes in an environment of its own (tests/hosts/make_hosts.py)",
    )


@pytest.fixture(params=["a", "b"], scope="module")
def host(request):
    """A host with everything optchat needs installed."""
    if not make_hosts.is_made(request.param):
        reason = (
            f"host {request.param} is not installed: python tests/hosts/make_hosts.py "
            f"{request.param}"
        )
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return Host(request.param, make_hosts.python_of(make_hosts.environment(request.param)))


@pytest.fixture
def bare_host(host, tmp_path):
    """The same host as it comes: without orjson and filelock."""
    yield from _copy(host, tmp_path / "bare", without=make_hosts.BARE)


@pytest.fixture
def own_host(host, tmp_path):
    """The same host, whole, for a test that installs something into it."""
    yield from _copy(host, tmp_path / "own")


def _copy(host, directory, without=()):
    """A new environment with all packages of the host's but these.

    What is installed into it stays in it.

    The files are hard links: the host looks for the real place of its own files, and by a symbolic
    link would find the first environment.
    """
    subprocess.run([str(host.python), "-m", "venv", "--without-pip", str(directory)], check=True)
    packages = next(make_hosts.environment(host.name).glob("lib/python*/site-packages"))
    target = next(directory.glob("lib/python*/site-packages"))
    lacking = shutil.ignore_patterns(*(f"{name}*" for name in without))
    shutil.copytree(packages, target, copy_function=_link, ignore=lacking, dirs_exist_ok=True)
    yield Host(host.name, make_hosts.python_of(directory), target)
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
def life(home):
    """What is said in the chat programs of a profile that asks nothing before it obeys."""
    home.configure(**QUIET)
    life = Life(home)
    yield life
    life.end()


@pytest.fixture
def bare_home(bare_host, tmp_path, server):
    """A fresh profile of a fresh host.

    Optchat's directory is there, and nothing else has happened.
    """
    home = Home(bare_host, tmp_path / "home", server).install(link=False)
    home.configure(provider="", auxiliary=False)
    return home
