"""What was really said in the lives of a home's programs, and whether the log says just that.

The truth is what was typed, what the model answered to it, and what its tools returned: from the
keyboard and from the requests, not from anything the memory or the host has noted. Two things are
asked of the host's database: in which session of its own it has put a turn, and what came of a tool
whose result no model was ever sent.
"""

import json
import os
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock
from model_server import plain
from terminal import CTRL_C, CTRL_D, CTRL_Q, Terminal, kept_results, rows

RECORDINGS = os.environ.get("OPTCHAT_RECORDINGS")
"""A directory for what the hosts call of us in each life, and what came of it (see
recording/sitecustomize.py); read before the tests' own environment is cleared of such names."""

STUBS = ("[Result unavailable", "[Orphan recovery")
"""How the results begin that a host makes up for calls that have none: A 0.19 and B 0.22,
agent/agent_runtime_helpers.py and agent/replay_cleanup.py."""


@dataclass
class Said:
    """One thing that was really said. `session` None: wherever the host has put it.

    `cut`: an answer that was interrupted, or a call without a result. A host may take it back
    before anybody is shown it.
    """

    kind: str
    words: str
    session: str | None = None
    call: str = ""
    results: list[str] = field(default_factory=list)
    cut: bool = False

    def line(self):
        words = " ".join([self.call, *self.words.split()]).strip()
        return f"{(self.session or '?')[-6:]:6} {self.kind:4} {words[:90]}"


class Life:
    """The truth about one home, in the order of saying."""

    def __init__(self, home):
        self.home, self.server = home, home.server
        self.said = []
        self.goals = []
        self._gates = []

    def start(self, *arguments):
        return Chat(self, *arguments)

    def add(self, kind, words, session=None, call=""):
        self.said.append(Said(kind, words, session, call))

    def play(self, scenario):
        """Live a scenario (see driver.py) that leaves (text, session) of what was said in `out`."""
        played = Played(self, self.home.play(scenario, **recorded())["said"])
        self.take(played)
        assert not played.coming, f"never asked the model: {played.coming}"

    def gate(self, name):
        self._gates.append(Gate(self.home.path.parent / name))
        return self._gates[-1]

    def end(self):
        """Let go of the commands that outlive the programs which began them."""
        for gate in self._gates:
            gate.open()

    def frozen(self):
        """While this holds, nothing gets into the log: another program has the memory's lock."""
        return FileLock(self.home.memory / "write.lock")

    def take(self, chat, ended=True):
        """Put down what has been asked and answered since the last time.

        `ended`: no answer is under way any more.
        """
        with self.server.changed:
            exchanges = [exchange for exchange in self.server.exchanges if not exchange.taken]
        for exchange in exchanges:
            if not exchange.body.get("tools") or self._goal(exchange.body):
                self._reported(exchange)
            else:
                self._talked(exchange, chat, ended)

    def _reported(self, exchange):
        exchange.taken = exchange.sent
        goal = self._goal(exchange.body)
        if goal and exchange.sent and not exchange.message.get("tool_calls"):
            self.add("work", f"{goal}\n{exchange.message['content']}")

    def _talked(self, exchange, chat, ended):
        if not exchange.heard:
            exchange.heard = True
            chat.asked(lines(exchange.body))
        if exchange.sent:
            exchange.taken = True
            self._answered(exchange.message, chat)
        elif exchange.streamed and ended:
            exchange.taken = True
            self.said.append(Said("talk", exchange.streamed, chat.session, cut=True))

    def _answered(self, message, chat):
        for call in message.get("tool_calls", ()):
            self._call(call, chat)
        if message["content"]:
            self.add("talk", message["content"], chat.session)

    def _call(self, call, chat):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name == "delegate_task":
            given = json.loads(arguments)
            self.goals += [task["goal"] for task in given.get("tasks", [given])]
        self.add("tool", f"{name} {arguments}", chat.session, call["id"])
        self.add("echo", "", chat.session, call["id"])

    def _goal(self, body):
        """What a subagent was told to do whose request this is."""
        users = (message for message in body["messages"] if message["role"] == "user")
        first = plain(next(users)["content"])
        return next((goal for goal in self.goals if first.startswith(goal)), None)

    def results(self, call):
        """What a tool returned, as the host has kept it and as the model was sent it."""
        messages = (message for body in self.server.chats() for message in body["messages"])
        sent = [plain(one["content"]) for one in messages if one.get("tool_call_id") == call]
        texts = [*kept_results(self.home, call), *sent]
        return [text for text in texts if not text.startswith(STUBS)]

    def truth(self):
        said = []
        for one in self.said:
            if one.kind == "echo":
                one.results = self.results(one.call)
                said[-1].cut = not one.results
                one.words = next(iter(one.results), None)
            if one.words is not None:
                said.append(one)
        return said

    def logged(self):
        """What the log holds. Notes are nobody's words."""
        messages = (message for message in self.home.messages() if message["kind"] != "note")
        return [
            Said(one["kind"], one["text"], one["session"], one.get("call", "")) for one in messages
        ]

    def check(self, apart=False):
        """Whether the log holds what was said: kind, words and session of each message, in order.

        Each as often as it was said. `apart`: sessions were lived side by side, and each is in
        order for itself.
        """
        truth, logged = self.truth(), self.logged()
        shown = [[one.line() for one in side] for side in (truth, logged)]
        report = "\n".join(["really said:", *shown[0], "", "in the log:", *shown[1]])
        if apart:
            truth.sort(key=lambda one: one.session or "")
            logged.sort(key=lambda one: one.session or "")
        alike = _alike(truth, logged)
        self._keep(f"{report}\n\nVERDICT {'alike' if alike else 'not alike'}")
        assert alike, report

    def _keep(self, report):
        if RECORDINGS:
            with recording().open("a") as file:
                file.write(report + "\n")


def recording():
    """The file for the test that runs now."""
    test = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split(" ")[0]
    return Path(RECORDINGS) / re.sub(r"\W+", "-", test)


def recorded():
    """What makes a program write down what it calls of us."""
    if not RECORDINGS:
        return {}
    recorder = Path(__file__).with_name("recording")
    return {"OPTCHAT_RECORDING": str(recording()), "PYTHONPATH": str(recorder)}


def lines(body):
    """The lines of what stands in the user's last message, without the memory put behind it.

    Hosts join messages that were not answered, and add notes of their own.
    """
    last = [message for message in body["messages"] if message["role"] == "user"][-1]
    text = plain(last["content"]).partition("<memory-context>")[0]
    return [line.strip() for line in text.splitlines()]


def _alike(truth, logged):
    """Whether both say the same; of the truth, what was cut may be missing."""
    rest = iter(truth)
    for kept in logged:
        for said in rest:
            if _same(said, kept):
                break
            if not said.cut:
                return False
        else:
            return False
    return all(said.cut for said in rest)


def _same(said, logged):
    if said.kind != logged.kind or said.session not in (None, logged.session):
        return False
    if said.call and said.call != logged.call:
        return False
    if said.kind == "tool":
        name, _, arguments = said.words.partition(" ")
        given = [json.dumps(value)[1:-1] for value in json.loads(arguments).values()]
        return all(part in logged.words for part in [name, *given])
    if said.kind == "work":
        return all(part in logged.words for part in said.words.split("\n"))
    if said.kind == "echo":
        return logged.words.strip() in [text.strip() for text in said.results]
    return said.words.strip() == logged.words.strip()


class Chat(Terminal):
    """A chat program whose words are put down as the truth."""

    def __init__(self, life, *arguments):
        self.life = life
        self._coming = []
        self._session = None
        self._interrupted = False
        super().__init__(life.home, *arguments, **recorded())

    @property
    def session(self):
        return self._session

    def asked(self, asked):
        """A request with these lines has come in: what was typed of them is said."""
        for number, typed in enumerate(self._coming):
            if typed in asked:
                for text in self._coming[: number + 1]:
                    self._user(text)
                del self._coming[: number + 1]
                return

    def _user(self, text):
        self._session = self._session or self._find(text)
        self.life.add("user", text, self._session)

    def _find(self, text):
        self.until(
            lambda: rows(self.home, text) or self.process.poll() is not None,
            f"{text!r} in state.db",
        )
        found = rows(self.home, text)
        return found[-1][0] if found else None

    def idle(self):
        super().idle()
        self.life.take(self)

    # A turn, whole or in steps

    def begin(self, text):
        """Type a message; the turn it begins is under way."""
        self.life.take(self, ended=False)
        self._coming.append(text)
        before = self._asked(text)
        self.type(text)
        self.until(lambda: self._asked(text) > before, f"asking the model {text!r}")

    def _asked(self, text):
        """How often the model was asked this."""
        return sum(text in lines(body) for body in self.server.chats())

    def say(self, text):
        self.begin(text)
        self.idle()

    def interrupt(self):
        # A second Ctrl-C within two seconds ends both hosts; Ctrl-Q does the same as the first.
        self.interrupt_by(CTRL_Q if self._interrupted else CTRL_C)
        self._interrupted = True
        self.idle()

    def interrupt_with(self, text):
        """Type a message while the agent is at work."""
        self.begin(text)
        self.idle()

    def until_asked(self, words):
        """Until the model is asked something in which this stands."""
        self.until(
            lambda: any(words in "\n".join(lines(body)) for body in self.server.chats()),
            f"asking the model {words!r}",
        )

    def steer(self, text):
        self.life.take(self, ended=False)
        self.type(f"/steer {text}")
        self._user(text)

    def queue(self, text):
        self._coming.append(text)
        self.type(f"/queue {text}")

    def retry(self, text):
        """`/retry`, which says this text again."""
        self._coming.append(text)
        before = self._asked(text)
        self.type("/retry")
        self.until(lambda: self._asked(text) > before, "asking the model again")
        self.idle()

    # Sessions

    def command(self, line):
        self.type(line)
        self.idle()

    def new(self):
        self.command("/new")
        self._session = None

    def clear(self):
        self.command("/clear")
        self._session = None

    def branch(self):
        self.command("/branch")
        self._session = None

    def resume(self, session):
        self.command(f"/resume {session}")
        self._session = session

    def compress(self, topic=""):
        ended = "Approx request size"
        before = self.screen.text().count(ended)
        self.type(f"/compress {topic}".strip())
        self.until(lambda: self.screen.text().count(ended) > before, "the end of /compress")
        self.idle()

    # Ends

    def exit(self):
        self._settle()
        return super().exit()

    def close(self):
        """Ctrl-D behind an empty prompt."""
        self._settle()
        self.press(CTRL_D)
        return self.until_ended()

    def hang_up(self):
        """The window is closed."""
        self.process.send_signal(signal.SIGHUP)
        self.until_ended()
        self._settle()

    def kill(self):
        super().kill()
        self._settle()

    def _settle(self):
        self.life.take(self)
        for text in self._coming:
            self._user(text)
        self._coming.clear()


class Played:
    """What was said in a scenario."""

    def __init__(self, life, said):
        self.life, self.coming, self.session = life, list(said), None

    def asked(self, asked):
        if self.coming and self.coming[0][0] in asked:
            text, self.session = self.coming.pop(0)
            self.life.add("user", text, self.session)


class Gate:
    """A tool call that lasts until the gate is opened, or until it is interrupted."""

    def __init__(self, path):
        self.reached, self._opened = path.with_suffix(".reached"), path.with_suffix(".opened")
        # Not `until cat`: it fails for ever in a command that has outlived its reader.
        wait = f"until [ -e {self._opened} ]; do sleep 0.05; done"
        command = f"touch {self.reached}; {wait}; cat {self._opened}"
        self.order = f"@@call terminal {json.dumps({'command': command})}@@"

    def open(self, text="opened"):
        self._opened.write_text(text, encoding="utf-8")
