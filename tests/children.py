"""Real child processes for tests.

They run a few lines of Python, answer line by line, and never outlive the test.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
NOBODY = 65534
PRELUDE = """
import os, sys, time, threading
from pathlib import Path
from optchat.base.errors import OptchatError, StoreError, LockTimeoutError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.memory import Memory
from optchat.log.store import Store

os.fsync = lambda _file: None  # as in the tests themselves: nobody pulls the plug

def say(*words):
    print(*words, flush=True)

def wait_for(word):
    line = sys.stdin.readline().strip()
    assert line == word, line
"""


class Child:
    """One process. What it prints is heard line by line; its errors are shown when it fails."""

    def __init__(self, code, *args, **options):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the child
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            cwd="/",
            env=kept | {"PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"},
            **options,
        )
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def hear(self, timeout_s=30):
        """The next line it says."""
        line = self._lines.get(timeout=timeout_s)
        if line is None:
            raise AssertionError(f"the child ended (status {self.process.wait()}): {self.errors()}")
        return line

    def tell(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def kill(self):
        """As `kill -9`: no handler, no cleaning up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def rest(self, timeout_s=60):
        """Wait until it ends well; the lines it still had to say."""
        status = self.process.wait(timeout_s)
        assert status == 0, f"status {status}: {self.errors()}"
        self._reader.join()
        return list(iter(self._lines.get_nowait, None))

    def errors(self):
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-4000:]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdin.close()
        self.process.stdout.close()
        self._errors.close()


@contextlib.contextmanager
def children():
    """A function that starts children; all of them are ended afterwards."""
    started = []

    def start(code, *args, **options):
        started.append(Child(code, *args, **options))
        return started[-1]

    try:
        yield start
    finally:
        for child in started:
            with contextlib.suppress(OSError):
                child.close()


DROP_RIGHTS = f"""
import datetime, resource, signal, traceback
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
"""


@contextlib.contextmanager
def unprivileged():
    """A function that starts children whom file modes bind, and a directory of theirs.

    Root may read and write everything.

    They give up their rights after all imports: the Python that runs the tests may lie where nobody
    else may look.
    """
    with children() as start, tempfile.TemporaryDirectory(prefix="optchat-test-") as directory:
        drop = ""
        if os.geteuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
            drop = DROP_RIGHTS
        yield (lambda code, *args: start(drop + textwrap.dedent(code), *args)), Path(directory)
