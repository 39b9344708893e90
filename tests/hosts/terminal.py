"""The chat program of a host in a terminal: what a person types into it, and what they wait for.

Nothing here waits for a time. A program that shows no sign of what is waited for is stuck, and
fails with its screen.
"""

import contextlib
import fcntl
import os
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import termios
import threading
import time
from itertools import count

from screen import COLUMNS, ROWS, Screen

STUCK_SECONDS = 60
RHYTHM_SECONDS = 0.06
"""Between the last letter and Enter: host B 0.22 (hermes_cli/cli_tui_mixin.py, _tui_handle_enter)
takes an Enter within 50 ms of a letter for a line break of pasted text. No person types so fast."""

_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
QUIET = {
    "approvals": {"destructive_slash_confirm": False},
    "telemetry": {"shared_metrics": {"enabled": False, "send": False, "offer_version": 2}},
    "security": {"allow_lazy_installs": False, "tirith_enabled": False},
    "updates": {"check": False},
}
"""Settings of a host that does what it is told without asking, and fetches nothing by itself."""
CLEAR_LINE = "\x05\x15"  # to its end, and back to its beginning
CTRL_C, CTRL_D, CTRL_Q = "\x03", "\x04", "\x11"


_INTERRUPTING = re.compile(r"Interrupting agent|cli\.tui\.interrupting")
"""What is printed once a key interrupts.

A 0.19 cli.py, run; B 0.22 hermes_cli/cli_tui_mixin.py names it where it has no text.
"""
_UNDONE = re.compile("remaining in history|cli.session.undo_remaining")
"""In the last line about an undo.

A 0.19 cli.py, undo_last; B 0.22 hermes_cli/cli_session_mixin.py names it where it has no text.
"""
_HELP = "(?:Type /help|cli.command.type_help)"
"""Begins the last line about an unknown command.

A 0.19 cli.py, process_command; B 0.22 names it where it has no text.
"""
_SPINNER = re.compile("[\u2800-\u28ff]")


class StuckError(AssertionError):
    pass


class Terminal:
    """A chat program in a terminal, from its start to the end of `with`."""

    def __init__(self, home, *arguments, **more):
        self.home, self.server = home, home.server
        self._marks = count(1)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.screen = Screen(answer=self._send)
        python = str(home.host.python)
        host = [python, "-m", "hermes_cli.main", "chat", *arguments]
        terminal = {
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            "LINES": str(ROWS),
            "COLORFGBG": "15;0",
            **more,
        }
        self.process = subprocess.Popen(
            [python, "-c", _TAKE_TERMINAL, *host],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=home.path,
            env=home.environment(**terminal),
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, name="terminal")
        self._reader.start()

    def __enter__(self):
        self.until(lambda: self.composer() is not None, "a prompt")
        return self

    def __exit__(self, *exc):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        os.close(self._master)

    def _read(self):
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the last program that had the terminal is gone
                data = b""
            with self.server.changed:
                self.screen.feed(data)
                self.server.changed.notify_all()
            if not data:
                return

    def _send(self, text):
        with contextlib.suppress(OSError):
            os.write(self._master, text.encode())

    # Events

    def until(self, happened, what):
        """Wait until `happened()`; `what` it is, for the message when it does not."""
        end = time.monotonic() + STUCK_SECONDS
        with self.server.changed:
            while not happened():
                if time.monotonic() > end or (
                    self.process.poll() is not None and not self._reader.is_alive()
                ):
                    if happened():
                        return
                    raise StuckError(
                        f"{self.home.host} never came to {what}\n{self.screen.text()[-6000:]}"
                    )
                # What is on disk rings no bell.
                self.server.changed.wait(0.05)

    def until_held(self, name):
        """Until the model waits before its answer, or in its midst, at the order of this name."""
        self.until(lambda: name in self.server.reached, f"the model waiting at {name!r}")

    def until_file(self, path):
        self.until(path.exists, f"the file {path.name}")

    def until_logged(self, text, times=1):
        self.until(
            lambda: sum(text in said for _, said in self.home.said()) >= times,
            f"{text!r} in the log",
        )

    def until_noted(self, text):
        """Until the memory has been told of this, and keeps it for its place in the log."""
        capture = self.home.path / "optchat" / "capture"
        self.until(
            lambda: any(text in path.read_text("utf-8") for path in capture.glob("*.jsonl")),
            f"{text!r} among the notes",
        )

    def until_row(self, text, times=1):
        """Until the host's own database holds a message that begins so, so many times."""
        self.until(lambda: len(rows(self.home, text)) >= times, f"{text!r} in state.db")

    def until_ended(self):
        self.until(lambda: self.process.poll() is not None, "its end")
        return self.process.returncode

    def idle(self):
        """Until all that was typed before is done with.

        A command is queued behind a running turn by both hosts (A 0.19 cli.py, handle_enter and
        process_loop; B 0.22 hermes_cli/cli_tui_mixin.py, _tui_handle_enter) and named on the
        screen when its time has come. This one does nothing. What a host prints it prints with the
        terminal out of its raw mode, where a Ctrl-D would be lost: so its last line is waited for.
        """
        mark = f"/xyzzy{next(self._marks)}"
        self.type(mark)
        self.until(
            lambda: re.search(rf"⚙\s+{mark}\b.*?{_HELP}", self.screen.text(), re.DOTALL),
            f"the end of what was typed before {mark}",
        )

    # What a person does

    def composer(self):
        """What stands behind the prompt, without white space; None without a prompt."""
        lines = self.screen.lines()
        for number in range(len(lines) - 1, -1, -1):
            head, prompt, typed = lines[number].partition("❯")
            if prompt and len(head) < 12:
                if _SPINNER.search(head):  # a command is at work, and keys are thrown away
                    return None
                below = iter(lines[number + 1 :])
                for line in below:
                    if set(line) <= set("─━ "):
                        break
                    typed += line
                return re.sub(r"\s", "", typed)
        return None

    def type(self, line):
        """Type a line and press Enter."""
        self._enter(line)
        shown = re.sub(r"\s", "", line)
        self.until(
            lambda: (
                self.process.poll() is not None or not (self.composer() or "").startswith(shown)
            ),
            f"taking {line!r}",
        )

    def _enter(self, line):
        shown = re.sub(r"\s", "", line)
        self._at_the_prompt()
        self._send(line)
        self.until(lambda: (self.composer() or "").startswith(shown), f"showing {line!r}")
        time.sleep(RHYTHM_SECONDS)
        self._send("\r")

    def press(self, key):
        self._at_the_prompt()
        self._send(key)

    def interrupt_by(self, key):
        """Press a key until the host says that it interrupts: one pressed as it prints is echoed
        by the line discipline, and lost.
        """
        told = len(_INTERRUPTING.findall(self.screen.text()))

        def is_told():
            return len(_INTERRUPTING.findall(self.screen.text())) > told

        while not is_told():
            echoed = self.screen.text().count("^C")
            self.press(key)
            self.until(
                lambda before=echoed: is_told() or self.screen.text().count("^C") > before,
                "interrupting",
            )

    def _at_the_prompt(self):
        """Wait until keys reach the program: while a host prints, the line discipline has them."""
        self.until(lambda: self._is_raw() and self.composer() is not None, "its prompt")

    def _is_raw(self):
        return not termios.tcgetattr(self._master)[3] & termios.ICANON

    def undo(self, words, turns=""):
        """`/undo`. The words taken back, which it puts behind the prompt, are wiped away.

        The host may print its last line after it has put them there: a key would be lost before.
        """
        told = len(_UNDONE.findall(self.screen.text()))
        self.type(f"/undo {turns}".strip())
        self.until(
            lambda: (
                len(_UNDONE.findall(self.screen.text())) > told
                and (self.composer() or "").startswith(re.sub(r"\s", "", words))
            ),
            f"{words!r} behind the prompt",
        )
        self.press(CLEAR_LINE)
        self.idle()

    def exit(self):
        self._enter("/exit")
        return self.until_ended()

    def kill(self):
        """What a power cut does to the program."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()


def rows(home, text):
    """Session and role of each message in the host's database that begins so, oldest first."""
    return _ask(
        home,
        "SELECT session_id, role FROM messages WHERE substr(content, 1, ?) = ? ORDER BY id",
        len(text),
        text,
    )


def kept_results(home, call):
    """What the host's database holds as the result of this tool call."""
    return [
        text
        for (text,) in _ask(
            home, "SELECT content FROM messages WHERE tool_call_id = ? AND role = 'tool'", call
        )
    ]


def _ask(home, query, *values):
    file = home.path / "state.db"
    if not file.exists():
        return []
    with contextlib.closing(
        sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)
    ) as database:
        try:
            return database.execute(query, values).fetchall()
        except sqlite3.OperationalError:  # the table is not made yet
            return []
