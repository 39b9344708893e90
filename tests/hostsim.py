"""Two hosts as they are: what happens to a conversation between the words that are said and the lists a provider is shown.

Host A gives its messages no ids, host B does. Both pass the provider their live list, and do to it what was seen in recordings of
the real ones: join unanswered messages, close broken turns with words of their own, compress, reload from a database that holds
less than the list did, forget to call back. A ``World`` also knows what was really said, and which of it any hook has shown.

Nothing here is made easy for the code under test: a reading that passes only because the simulator is kind would fail on a host.
"""

from __future__ import annotations

import copy
import hashlib
import re
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any

from optchat.capture.capture import UNDO_NOTE, Capture

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG_URL = f"data:image/png;base64,{PNG}"
PNG_MARK = f"[image/png: {len(b64decode(PNG))} bytes, sha256 {hashlib.sha256(b64decode(PNG)).hexdigest()}]"

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below.\n## What happened\nThings."
SUMMARY_END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
PRIOR = "[PRIOR CONTEXT — for reference only; not a new message]"
PRIOR_END = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
STEER_A = "[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered mid-turn; not tool output]"
STEER_B = (
    "[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered once at this position; not tool output "
    "and not a new delivery when replayed from conversation history]"
)
STEER_END = "[/OUT-OF-BAND USER MESSAGE]"
FAILED = "Your request was not processed. Send it again if you still want me to carry it out."
FAILED_PART = "This turn did not complete. Some actions may already have run; verify their effects before resending."
NOTE = "[System note: The following is recalled memory context, NOT new user input. Treat as authoritative reference data.]"
CLEARED = "[Old tool output cleared to save context space]"

Message = dict[str, Any]


@dataclass
class Said:
    """Something that really happened. ``seen``: a hook has shown it; the user's words are told to one before anything else.

    ``untold``: words of the user's that were announced by nothing but the fact (a picture). ``loose``: its place cannot be kept. A
    database that does not hold it was shown first; or a later message of the user's had to be written down when its session was left,
    and of another branch, before any hook showed this.
    """

    kind: str
    text: str
    family: int
    seen: bool = False
    loose: bool = False
    untold: bool = False


@dataclass
class Step:
    """A tool call inside a turn: ``steer`` reaches the agent after it, ``compress`` happens after it."""

    tool: str = "terminal"
    steer: str = ""
    compress: bool = False
    talk: str = ""


@dataclass
class Turn:
    """One turn: what the user says (a list: with a picture), what the agent does, and how it ends.

    ``end``: ok | interrupt | partial | error | empty | die_unsaved | die | die_answered. ``preflight``: the host compresses before it
    announces the turn. ``late``: the hook after the turn comes only when the next one has begun. ``before``: a message sent into the
    turn before the model's first answer.
    """

    text: str | list[dict[str, Any]]
    steps: list[Step] = field(default_factory=list)
    end: str = "ok"
    answer: str = "done"
    preflight: bool = False
    late: bool = False
    before: str = ""


class World:
    """One memory, one database of the host, and everything that was said."""

    def __init__(self, flavour: str, store: Any, *, keep: int = 4, rotate: bool = False, calls: str = "unique") -> None:
        """``keep``: messages a compression leaves at the end. ``rotate``: it opens a new session. ``calls``: their ids are unique; or
        ``counted``, in each turn call_0, call_1 and so on; or ``equal`` for equal calls, which all are, and so are their results."""
        self.flavour = flavour
        self.store = store
        self.keep = keep
        self.rotate = rotate
        self.calls = calls
        self.truth: list[Said] = []
        self.rows: dict[str, list[Message]] = {}
        self.families: dict[str, int] = {}
        self.branches: dict[str, bool] = {}
        self.count = 0
        self.sessions = 0
        self.masks = 0

    @property
    def named(self) -> bool:
        return self.flavour == "B"

    def number(self) -> int:
        self.count += 1
        return self.count

    def new_session(self, family: int | None = None) -> str:
        self.sessions += 1
        name = f"s{self.sessions}"
        self.rows[name] = []
        self.families[name] = self.sessions if family is None else family
        return name

    def say(self, kind: str, text: str, session: str, *, seen: bool = False) -> Said:
        said = Said(kind, text, self.families[session], seen)
        self.truth.append(said)
        return said

    def start(self, session: str | None = None, *, joined: bool = False) -> Agent:
        """A new process, or a rebuilt agent: a session and its history from the database."""
        name = session or self.new_session()
        return Agent(self, name, self.load(name, joined=joined))

    def load(self, session: str, *, joined: bool = False) -> list[Message]:
        """The history as the database gives it back: stripped, flattened, without what was appended after a row was saved."""
        found = []
        for row in self.rows[session]:
            if not row["active"]:
                continue
            message = {k: v for k, v in row.items() if k not in ("active", "said", "_compressed_summary")}
            message["saved"] = True
            message["_db_persisted"] = True
            if message["role"] in ("user", "assistant"):
                message["content"] = message["content"].strip()
            message["said"] = row["said"]
            found.append(message)
        return self.repair(found, loading=True) if joined else found

    def repair(self, messages: list[Message], *, loading: bool = False) -> list[Message]:
        """Join what two neighbours of one role say; the first one's dict survives, changed in place."""
        done: list[Message] = []
        for message in messages:
            last = done[-1] if done else None
            texts = last is not None and isinstance(last["content"], str) and isinstance(message["content"], str)
            if last is not None and texts and last["role"] == message["role"] == "user" and self._may_join(last):
                old, new = last["content"], message["content"]
                last["content"] = f"{old}\n\n{new}" if old and new else old or new
                last.pop("api_content", None)
                last["said"] = [*last["said"], *message["said"]]
                if self.named and message.get("message_uid"):
                    last["_absorbed_message_uids"] = [*last.get("_absorbed_message_uids", []), message["message_uid"]]
            elif last is not None and texts and loading and last["role"] == message["role"] == "assistant":
                parts = [part for part in (last["content"].strip(), message["content"].strip()) if part]
                last["content"] = "\n".join(parts)
                last["tool_calls"] = [*last.get("tool_calls", []), *message.get("tool_calls", [])]
                last["said"] = [*last["said"], *message["said"]]
                if self.named:
                    last["_absorbed_message_uids"] = [*last.get("_absorbed_message_uids", []), message["message_uid"]]
            else:
                done.append(message)
        return done

    def _may_join(self, last: Message) -> bool:
        return not (self.named and (last.get("display_kind") == "steer" or SUMMARY[:20] in last["content"]))

    def shown(self, messages: list[Message]) -> list[Message]:
        """What a hook is passed: on A the live messages, on B copies where a secret is masked, each time perhaps in another way."""
        for message in messages:
            before = bool(message["said"]) and message["said"][0].seen
            for said in message["said"]:
                if not said.seen:
                    said.loose = (before and said.text in message.get("hung", ())) or self._overtaken(said)
                said.seen = True
        if not self.named:
            return messages
        return [self._masked(message) for message in messages]

    def _overtaken(self, said: Said) -> bool:
        """Whether what came later is in the log without having been shown: the user's own words are not, they are told at once."""
        if said.kind == "note" or (said.kind == "user" and not said.untold):
            return False
        given_up = {m.text for m in self.store.log if m.unshown or m.kind == "note" or self.branches.get(m.session)}
        later = self.truth[next(k for k, other in enumerate(self.truth) if other is said) :]
        return any(other.text in given_up for other in later if other.family == said.family)

    def mask(self, text: str) -> str:
        self.masks += 1
        return re.sub(r"sk-\w+", "sk-abc...xyz" if self.masks % 3 else "[redacted]", text)

    def _masked(self, message: Message) -> Message:
        text = message["content"]
        calls = message.get("tool_calls")
        if isinstance(text, str) and "sk-" in text:
            message = {**message, "content": self.mask(text)}
        if calls and any("sk-" in call["function"]["arguments"] for call in calls):
            calls = copy.deepcopy(calls)
            for call in calls:  # a mask eats up to the end of a word: what is left is no JSON
                call["function"]["arguments"] = re.sub(r'sk-\w+"?\}?', "***", call["function"]["arguments"])
            message = {**message, "tool_calls": calls}
        return message


class Agent:
    """One agent of the host, with its provider: the live list, and the hooks as the host calls them."""

    def __init__(self, world: World, session: str, history: list[Message]) -> None:
        self.world = world
        self.session = session
        self.live = history
        self.waiting: list[tuple[list[Message], str]] = []
        self.capture = Capture(world.store, session=session)
        self.capture.initialized()
        self.dead = False

    # -- the host's own work

    def turn(self, turn: Turn) -> None:
        world = self.world
        flat = _flat(turn.text)
        user: Message = {"role": "user", "content": copy.deepcopy(turn.text)}
        truth = world.say("user", _as_logged(turn.text), self.session)
        user["said"] = [truth]
        if world.named:
            user["timestamp"] = world.store.now().timestamp()
        self.live = [*self.live, user]
        if turn.preflight:
            self.compress()
        # Host A announces a message with a picture without a word of it.
        told = flat if world.named or isinstance(turn.text, str) else ""
        truth.seen = truth.seen or bool(told)
        truth.untold = not told
        self.capture.turn_started(world.mask(told) if world.named else told)
        if turn.end == "die_unsaved":
            self.crash()
            return
        if world.named and not isinstance(turn.text, str):
            user["content"].append({"type": "text", "text": f"<memory-context>\n{NOTE}\n\nVIEW\n</memory-context>"})
        elif isinstance(turn.text, str):
            user["api_content"] = f"{turn.text}\n\n<memory-context>\n{NOTE}\n\nVIEW\n</memory-context>"
        self.save()
        self.live = world.repair(self.live)
        self.flush()
        if turn.before:
            self.steer(turn.before)
        self.calls = 0
        for step in turn.steps:
            self.step(step)
        self.finish(turn, flat)

    def step(self, step: Step) -> None:
        world, number = self.world, self.world.number()
        call = {"unique": f"call_{number}", "counted": f"call_{self.calls}", "equal": f"call_{step.tool}"}[world.calls]
        number = 0 if world.calls == "equal" else number
        self.calls += 1
        arguments = f'{{"n": {number}, "key": "sk-key{number}"}}'
        message: Message = {
            "role": "assistant",
            "content": step.talk,
            "reasoning": "thinking",
            "tool_calls": [{"id": call, "type": "function", "function": {"name": step.tool, "arguments": arguments}}],
            "said": [],
        }
        if step.talk:
            message["said"].append(world.say("talk", step.talk, self.session))
        message["said"].append(world.say("tool", f"{step.tool} {arguments}", self.session))
        output = f'{{"output": "result {number}"}}'
        logged = f"({step.tool}: shown from memory)" if step.tool.startswith("optchat_") else output
        result: Message = {"role": "tool", "name": step.tool, "tool_name": step.tool, "content": output, "tool_call_id": call}
        result["said"] = [world.say("echo", logged, self.session)]
        self.live += [message, result]
        self.save()
        if step.steer:
            self.steer(step.steer)
        if step.compress:
            self.compress()

    def steer(self, text: str) -> None:
        """A message into the running turn: A hangs it on the last tool's result of the list, and never saves it."""
        world = self.world
        last = next((message for message in reversed(self.live) if message["role"] == "tool"), None)
        if last is None:
            return
        if world.named:
            if self.live[-1]["role"] != "tool":
                return
            row: Message = {"role": "user", "content": f"{STEER_B}\n{text}\n{STEER_END}", "display_kind": "steer"}
            row["said"] = [world.say("steer", text, self.session)]
            self.live.append(row)
            self.save()
        elif self.live[-1] is last or all(said.seen for said in last["said"]):
            # On the result of an unfinished turn no hook has shown, nothing would tell which of the two turns it went into.
            last["content"] = f"{last['content']}\n\n{STEER_A}\n{text}\n{STEER_END}"
            last["said"] = [*last["said"], world.say("steer", text, self.session)]
            if self.live[-1] is last:
                last["hung"] = [*last.get("hung", ()), text]

    def finish(self, turn: Turn, flat: str) -> None:
        world = self.world
        if turn.end == "die":
            self.crash()
            return
        if turn.end in ("interrupt", "error"):
            if self.live[-1]["role"] == "tool" or (world.named and self.live[-1].get("display_kind") == "steer"):
                text = "Operation interrupted." if turn.end == "interrupt" else "Operation interrupted: handling API error (HTTP 400)."
                kind = {"display_kind": "hidden"} if world.named else {}
                self.live.append({"role": "assistant", "content": "" if world.named else text, "said": [], **kind})
            elif world.named:
                text = FAILED_PART if turn.steps else FAILED
                self.live.append({"role": "assistant", "content": text, "display_kind": "failed_turn", "said": []})
            self.save()
            return
        if turn.end == "empty":
            self.live.append({"role": "assistant", "content": "(empty)", "said": []})
        else:
            said = [world.say("talk", turn.answer, self.session)]
            self.live.append({"role": "assistant", "content": turn.answer, "finish_reason": "stop", "said": said})
        self.save()
        if turn.end == "partial":
            return
        if turn.end == "die_answered":
            self.crash()
            return
        content = f"{flat}\n<memory-context>\n{NOTE}\n\nVIEW\n</memory-context>" if world.named and isinstance(turn.text, list) else flat
        self.waiting.append((self.live, content))
        if not turn.late:
            self.flush()

    def save(self) -> None:
        """Append what the database does not have; on B every message gets its id with its first row."""
        rows = self.world.rows[self.session]
        for message in self.live:
            if message.get("saved"):
                continue
            message["_db_persisted"] = message["saved"] = True
            number = self.world.number()
            if self.world.named:
                message.setdefault("message_uid", f"{number:032x}")
                message.setdefault("timestamp", self.world.store.now().timestamp())
            row = {k: copy.deepcopy(v) for k, v in message.items() if k not in ("said", "saved", "hung", "_db_persisted", "api_content")}
            row["content"] = _saved(message["content"])
            rows.append(row | {"said": list(message["said"]), "active": True, "timestamp": message.get("timestamp", self.world.store.now().timestamp())})

    def compress(self) -> None:
        """Hooks, then head, summary and tail: new dicts all, and the database's rows replaced."""
        world, keep = self.world, self.world.keep
        self.capture.list_seen(world.shown(self.live))
        last_user = max((k for k, m in enumerate(self.live) if m["role"] == "user"), default=0)
        start = min(len(self.live) - keep, last_user)
        while start > 0 and self.live[start]["role"] == "tool":
            start -= 1
        if start <= 3 + 1:
            return
        self.capture.ended(world.shown(self.live))
        self._replace(start)
        old = self.session
        if world.rotate:
            self.session = world.new_session(world.families[old])
        else:
            for row in world.rows[old]:
                row["active"] = False
        self.save()
        self.capture.switched(self.session, parent=old, reset=False, reason="compression")

    def _replace(self, start: int) -> None:
        fresh = [{k: copy.deepcopy(v) if k != "said" else v for k, v in m.items() if k not in ("_db_persisted", "saved")} for m in self.live]
        head, tail = fresh[:3], fresh[start:]
        for message in (*head, *tail[:-2]):
            if message["role"] == "tool":
                message["content"] = CLEARED
        roles = (head[-1]["role"], tail[0]["role"])
        summary = {"role": "", "content": f"{SUMMARY}\n\n{SUMMARY_END}", "_compressed_summary": True, "said": []}
        summary["role"] = "user" if roles[0] in ("assistant", "tool") else "assistant"
        if summary["role"] == roles[1]:
            flipped = "assistant" if summary["role"] == "user" else "user"
            if flipped != roles[0]:
                summary["role"] = flipped
            else:
                text = _text(tail[0]["content"])
                tail[0]["content"] = f"{PRIOR}\n{text}\n\n{PRIOR_END}\n\n{SUMMARY}\n\n{SUMMARY_END}"
                tail[0]["_compressed_summary"] = True
                tail[0].pop("api_content", None)
                self.live = [*head, *tail]
                return
        self.live = [*head, summary, *tail]

    # -- the hooks around it

    def flush(self) -> None:
        """The hooks that waited in the host's worker."""
        waiting, self.waiting = self.waiting, []
        for messages, content in waiting:
            world = self.world
            self.capture.turn_ended(world.shown(messages), world.mask(content) if world.named else content)

    def undo(self, turns: int = 1) -> None:
        self.flush()
        users = [k for k, message in enumerate(self.live) if message["role"] == "user"]
        if not users:
            return
        self.live = self.live[: users[-min(turns, len(users))]]
        rows = self.world.rows[self.session]
        saved = [k for k, row in enumerate(rows) if row["active"] and row["role"] == "user"]
        for row in rows[saved[-min(turns, len(saved))] :] if saved else []:
            row["active"] = False
        self.world.say("note", UNDO_NOTE, self.session, seen=True)
        self.capture.switched(self.session, rewound=True)

    def new(self) -> None:
        self.flush()
        old = self.session
        self.capture.ended(self.world.shown(self.live))
        self.session, self.live = self.world.new_session(), []
        self.capture.switched(self.session, parent=old, reset=True, reason="new_session")

    def branch(self) -> str:
        """The conversation goes on in a copy; the old session is left as it is."""
        self.flush()
        world, old = self.world, self.session
        self.session = world.new_session(world.families[old])
        world.branches[self.session] = world.branches[old] = True
        world.rows[self.session] = [dict(row) for row in world.rows[old] if row["active"]]
        self.live = [dict(message) for message in self.live]
        self.capture.switched(self.session, parent=old, reset=False, reason="branch")
        return old

    def resume(self, session: str, *, joined: bool = False) -> None:
        """The same agent opens another session."""
        self.flush()
        old = self.session
        self.capture.ended(self.world.shown(self.live))
        self.session, self.live = session, self.world.load(session, joined=joined)
        self.capture.switched(session, parent=old, reset=False, reason="resume")

    def exit(self) -> None:
        self.flush()
        self.capture.ended(self.world.shown(self.live))
        self.capture.shutdown()

    def exit_unordered(self) -> None:
        """A one-shot process: nothing orders the end of the session after the hook of its last turn."""
        self.capture.ended(self.world.shown(self.live))
        self.flush()
        self.capture.shutdown()

    def crash(self) -> None:
        """The process is gone, and with it all that waited."""
        self.waiting.clear()
        self.dead = True


def _flat(text: str | list[dict[str, Any]]) -> str:
    return text if isinstance(text, str) else "\n".join(part["text"] for part in text if part["type"] == "text")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else _flat(content)


def _saved(content: Any) -> Any:
    """A database of text: pictures leave a word behind, and the host's memory block is not kept."""
    if isinstance(content, str):
        return content
    parts = [part["text"] if part["type"] == "text" else "[screenshot]" for part in content]
    return "\n".join(part for part in parts if "memory-context" not in part)


def _as_logged(text: str | list[dict[str, Any]]) -> str:
    return text if isinstance(text, str) else "\n".join(part["text"] if part["type"] == "text" else PNG_MARK for part in text)


def picture(text: str) -> list[dict[str, Any]]:
    """A message with a text and a picture."""
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
