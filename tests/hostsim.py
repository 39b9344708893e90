"""Two hosts as they are.

What happens to a conversation between the words that are said and the lists a provider is shown.

Host A gives its messages no ids, host B does. Both pass the provider their live list, and do to it
what was seen in recordings of the real ones: join unanswered messages, close broken turns with
words of their own, compress, reload from a database that holds less than the list did, copy a
conversation without a word, hand an old list at the end, forget to call back. A ``World`` also
knows what was really said, and which of it any hook has shown.

Nothing here is made easy for the code under test: a reading that passes only because the simulator
is kind would fail on a host.
"""

from __future__ import annotations

import copy
import inspect
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hostrows import (
    CLEARED,
    CONTINUE,
    DELEGATED,
    FAILED,
    FAILED_PART,
    NOTE,
    PNG,
    PNG_MARK,
    PNG_URL,
    PRIOR,
    PRIOR_END,
    RECOVERY,
    STEER_A,
    STEER_B,
    STEER_END,
    SUMMARY,
    SUMMARY_END,
    Message,
    Row,
    Said,
    as_logged,
    batch,
    copied,
    flat,
    normal,
    picture,
    replayed,
    restored,
    stored,
)

from optchat.capture.capture import UNDO_NOTE, Capture

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "FAILED",
    "FAILED_PART",
    "NOTE",
    "PNG",
    "PNG_MARK",
    "PNG_URL",
    "PRIOR",
    "PRIOR_END",
    "RECOVERY",
    "STEER_A",
    "STEER_B",
    "STEER_END",
    "SUMMARY",
    "SUMMARY_END",
    "Agent",
    "Said",
    "Step",
    "Turn",
    "World",
    "picture",
]

_TELLS_PARENTS = "parent_of" in inspect.signature(Capture.__init__).parameters


@dataclass
class Step:
    """A tool call inside a turn.

    ``steer`` reaches the agent after it, ``compress`` happens after it.

    ``reports``: the call delegates, and so many subagents report before it is over.
    """

    tool: str = "terminal"
    steer: str = ""
    compress: bool = False
    talk: str = ""
    reports: int = 0


@dataclass
class Turn:
    """One turn: what the user says (a list: with a picture), what the agent does, and how it ends.

    ``end``: ok | interrupt | partial | error | empty | die_unsaved | die | die_answered.
    ``preflight``: the host compresses before it announces the turn. ``late``: the hook after the
    turn comes only when the next one has begun. ``before``: a message sent into the turn before the
    model's first answer. ``odd``: contents of rows in the user's role that nobody said, in front of
    the answer. ``made``: the turn is the host's own, and so are its words: ``recovery`` of a turn
    that broke off (``text``: its words), or ``batch``, what subagents have reported. ``wrapped``:
    the host puts a note of its own before the user's words.
    """

    text: str | list[dict[str, Any]]
    steps: list[Step] = field(default_factory=list)
    end: str = "ok"
    answer: str = "done"
    preflight: bool = False
    late: bool = False
    before: str = ""
    odd: list[Any] = field(default_factory=list)
    made: str = ""
    wrapped: bool = False


class World:
    """One memory, one database of the host, and everything that was said."""

    def __init__(
        self,
        flavour: str,
        store: Any,
        *,
        keep: int = 4,
        rotate: bool = False,
        calls: str = "unique",
        lag: Callable[[], float] | None = None,
        witness: bool = False,
        listed: bool = True,
    ) -> None:
        """``keep``: messages a compression leaves at the end.

        ``rotate``: it opens a new session. ``calls``: their ids are unique; or ``counted``, in each
        turn call_0, call_1 and so on; or ``equal`` for equal calls, which all are, and so are their
        results. ``lag``: seconds from the announcement of a message to its row. ``witness``: the
        host's database says which session a session was made from. ``listed``: a plugin is shown
        the list as a turn begins.
        """
        self.flavour = flavour
        self.store = store
        self.keep = keep
        self.rotate = rotate
        self.calls = calls
        self.lag = lag or (lambda: 0.005)
        self.witness = witness
        self.listed = listed
        self.truth: list[Said] = []
        self.rows: dict[str, list[Row]] = {}
        self.families: dict[str, int] = {}
        self.parents: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        self.branches: dict[str, bool] = {}
        self.untold: set[str] = set()
        self.count = 0
        self.sessions = 0
        self.masks = 0

    @property
    def named(self) -> bool:
        return self.flavour == "B"

    def number(self) -> int:
        self.count += 1
        return self.count

    def clock(self) -> float:
        """What time it is, in seconds; to ask takes none."""
        time = getattr(self.store, "time", None)
        return (time or self.store.now()).timestamp()

    def passes(self, seconds: float) -> None:
        if hasattr(self.store, "time"):
            self.store.time += timedelta(seconds=seconds)

    def new_session(self, parent: str = "") -> str:
        self.sessions += 1
        name = f"s{self.sessions}"
        self.rows[name] = []
        self.families[name] = self.families[parent] if parent else self.sessions
        if parent:
            self.parents[name] = parent
        return name

    def renaming(self, session: str) -> str:
        name = self.new_session(session)
        self.renamed[name] = session
        return name

    def first_name(self, session: str) -> str:
        """Of a session whose id a compression has changed, the first.

        A turn may begin under one and end under the other.
        """
        while session in self.renamed:
            session = self.renamed[session]
        return session

    def say(self, kind: str, text: str, session: str, *, seen: bool = False) -> Said:
        said = Said(kind, text, self.families[session], seen, session=session)
        self.truth.append(said)
        return said

    def start(
        self, session: str | None = None, *, joined: bool = False, gateway: bool = False
    ) -> Agent:
        """A new process, or a rebuilt agent: a session and its history from the database."""
        name = session or self.new_session()
        return Agent(self, name, self.load(name, joined=joined, gateway=gateway))

    def load(self, session: str, *, joined: bool = False, gateway: bool = False) -> list[Message]:
        """The history as the database gives it back.

        Stripped, flattened, without what was appended after a row was saved.
        """
        found = [restored(row, named=self.named) for row in self.rows[session] if row.active]
        if gateway:
            found = replayed(found, named=self.named)
        return self.repair(found, loading=True) if joined else found

    def copy(self, session: str, messages: list[Message] | None = None, *, uids: bool) -> str:
        """A new session with the rows of another: what a branch does to the database."""
        child = self.new_session(session)
        self.branches[child] = self.branches[session] = True
        for message in self.load(session) if messages is None else messages:
            made = copied(message, named=self.named, uids=uids)
            if self.named:
                made.setdefault("message_uid", f"{self.number():032x}")
            self.rows[child].append(stored(made, self.clock()))
        return child

    def leave_untold(self, session: str) -> bool:
        """A session is left for a copy that no hook tells; whether the copy shows a word of it.

        Nothing links one to a session of which it shows but white space: what came first is not
        known.
        """
        rows = (row.message for row in self.rows[session] if row.active)
        shows = any(
            flat(message["content"]).strip() or message.get("tool_calls") for message in rows
        )
        if shows:
            self.untold.add(session)
        else:
            self.lose_trace(session)
        return shows

    def lose_trace(self, session: str) -> None:
        """No list has shown what is not logged of a session, or of a copy of it, and now none may
        do so in time.
        """
        logged = {
            (m.session, normal("steer" if m.tool == "steer" else m.kind, m.text))
            for m in self.store.log
        }
        for said in self.truth:
            if said.session == session and (session, normal(said.kind, said.text)) not in logged:
                said.loose = True

    def compress(self, session: str, *, rotate: bool) -> str:
        """A compressor without memory makes a head, a summary and a tail of what the database
        holds; no hook tells.

        Both hosts: a gateway's hygiene and its ``/compress`` (A 0.19.0, gateway/run.py and
        gateway/slash_commands.py: ``skip_memory=True``); ``compression.in_place: false`` rotates
        the id.
        """
        messages = self.load(session, joined=True)
        start = tail_start(messages, self.keep)
        if start is None:
            return session
        into = self.renaming(session) if rotate else session
        for row in self.rows[into]:
            row.active = False
        for message in compressed(messages, start):
            if self.named:
                message.setdefault("message_uid", f"{self.number():032x}")
            self.rows[into].append(stored(message, self.clock()))
        return into

    def repair(self, messages: list[Message], *, loading: bool = False) -> list[Message]:
        """Join what two neighbours of one role say.

        The first one's dict survives, changed in place.
        """
        done: list[Message] = []
        for message in messages:
            last = done[-1] if done else None
            texts = (
                last is not None
                and isinstance(last["content"], str)
                and isinstance(message["content"], str)
            )
            if (
                last is not None
                and texts
                and last["role"] == message["role"] == "user"
                and self._may_join(last)
            ):
                old, new = last["content"], message["content"]
                last["content"] = f"{old}\n\n{new}" if old and new else old or new
                last.pop("api_content", None)
                last.said = [*last.said, *message.said]
                self._absorb(last, message)
            elif (
                last is not None
                and texts
                and loading
                and last["role"] == message["role"] == "assistant"
            ):
                parts = [
                    part for part in (last["content"].strip(), message["content"].strip()) if part
                ]
                last["content"] = "\n".join(parts)
                calls = [*last.get("tool_calls", []), *message.get("tool_calls", [])]
                if calls:
                    last["tool_calls"] = calls
                last.said = [*last.said, *message.said]
                self._absorb(last, message)
            else:
                done.append(message)
        return done

    def _absorb(self, last: Message, message: Message) -> None:
        if self.named and message.get("message_uid"):
            last["_absorbed_message_uids"] = [
                *last.get("_absorbed_message_uids", []),
                message["message_uid"],
            ]

    def _may_join(self, last: Message) -> bool:
        return not (
            self.named and (last.get("display_kind") == "steer" or SUMMARY[:20] in last["content"])
        )

    def shown(self, messages: list[Message]) -> list[Message]:
        """What a hook is passed.

        On A the live messages, on B copies where a secret is masked, each time perhaps in another
        way.
        """
        for message in messages:
            before = bool(message.said) and message.said[0].seen
            for said in message.said:
                if not said.seen:
                    said.loose = (before and said.text in message.hung) or self._overtaken(said)
                said.seen = True
        if not self.named:
            return messages
        return [self._masked(message) for message in messages]

    def _overtaken(self, said: Said) -> bool:
        """Whether what came later is in the log.

        The user's own words are not, they are told at once.

        A list that did not hold it was shown first, as after a request that broke off and was sent
        again.
        """
        if said.kind == "note" or (said.kind == "user" and not said.untold):
            return False
        sessions = {name for name, family in self.families.items() if family == said.family}
        log = (m for m in self.store.log if m.session in sessions)
        logged = {normal("steer" if m.tool == "steer" else m.kind, m.text) for m in log}
        at = next(k for k, other in enumerate(self.truth) if other is said)
        later = (other for other in self.truth[at + 1 :] if other.family == said.family)
        return any(normal(other.kind, other.text) in logged for other in later)

    def mask(self, text: str) -> str:
        self.masks += 1
        return re.sub(r"sk-\w+", "sk-abc...xyz" if self.masks % 3 else "[redacted]", text)

    def _masked(self, message: Message) -> Message:
        text = message["content"]
        calls = message.get("tool_calls")
        if isinstance(text, str) and "sk-" in text:
            message = Message({**message, "content": self.mask(text)}, message.said)
        if calls and any("sk-" in call["function"]["arguments"] for call in calls):
            calls = copy.deepcopy(calls)
            for call in calls:  # a mask eats up to the end of a word: what is left is no JSON
                call["function"]["arguments"] = re.sub(
                    r'sk-\w+"?\}?', "***", call["function"]["arguments"]
                )
            message = Message({**message, "tool_calls": calls}, message.said)
        return message


class Agent:
    """One agent of the host, with its provider.

    The live list, and the hooks as the host calls them.

    ``live``: the conversation as the user's window has it; ``last``: the agent's own
    ``_session_messages``, empty in a new one, and else the list of its last turn (A 0.19.0,
    run_agent.py, ``_persist_session``).
    """

    def __init__(self, world: World, session: str, history: list[Message]) -> None:
        self.world = world
        self.session = session
        self.live = history
        self.last: list[Message] = []
        self.waiting: list[tuple[list[Message], str]] = []
        more = (
            {"parent_of": lambda name: world.parents.get(name, "")}
            if _TELLS_PARENTS and world.witness
            else {}
        )
        self.capture = Capture(world.store, session=session, **more)
        self.capture.initialized()
        self.dead = False
        self.calls = 0

    # -- the host's own work

    def turn(self, turn: Turn) -> None:
        world = self.world
        told = flat(turn.text)
        user = Message({"role": "user", "content": copy.deepcopy(turn.text)})
        if world.named:
            user["timestamp"] = world.clock()
        if turn.made:
            told = self._made(user, turn)
        else:
            user.said = [world.say("user", as_logged(turn.text), self.session)]
        if turn.wrapped and isinstance(turn.text, str):
            user["content"], user.kept = f"{RECOVERY}\n\n{turn.text}", turn.text
        self.live = [*self.live, user]
        if turn.preflight:
            self.compress()
        # Host A announces a message with a picture without a word of it.
        announced = told if world.named or isinstance(turn.text, str) else ""
        for truth in user.said:
            truth.seen = truth.seen or bool(announced) or world.listed
            truth.untold = not announced and not world.listed
        # Both hosts call a plugin's pre_llm_call before they announce the turn to the memory, with
        # the list as it is, and nothing masked (A 0.19.0, agent/turn_context.py,
        # build_turn_context; B 0.22.2, the same, _collect_pre_llm_call_context).
        began_with = (len(self.live), user) if world.listed else (0, None)
        self.capture.turn_started(
            world.mask(announced) if world.named else announced, "", *began_with
        )
        if turn.end == "die_unsaved":
            self.crash()
            return
        if world.named and not isinstance(turn.text, str):
            user["content"].append(
                {"type": "text", "text": f"<memory-context>\n{NOTE}\n\nVIEW\n</memory-context>"}
            )
        elif isinstance(user["content"], str):
            user["api_content"] = (
                f"{turn.text}\n\n<memory-context>\n{NOTE}\n\nVIEW\n</memory-context>"
            )
        world.passes(world.lag())
        self.save()
        self.live = world.repair(self.live)
        self.flush()
        if turn.before:
            self.steer(turn.before)
        self.calls = 0
        for step in turn.steps:
            self.step(step)
        for content in turn.odd:
            self.live.append(Message({"role": "user", "content": content}))
        self.finish(turn, told)

    def _made(self, user: Message, turn: Turn) -> str:
        """A message of the host's own in the user's role; what of it is announced."""
        if turn.made == "batch":
            if self.world.named:
                user["display_kind"] = DELEGATED
            return flat(turn.text)
        if not self.world.named:
            user["content"], user.kept = RECOVERY, ""
            return ""
        said = (
            said
            for said in reversed(self.world.truth)
            if said.kind == "user" and said.session == self.session
        )
        asked = next((said.text for said in said), turn.text)  # the request that broke off
        user["content"], user["display_kind"] = f"{CONTINUE}\n\n{asked}", "auto_continue"
        return user["content"]

    def delegate(
        self, reports: list[tuple[str, str]], *, early: bool, words: str = "send them out"
    ) -> None:
        """Subagents in the background.

        Told from a thread when all are done, ``early``: before the hook of the turn that sent them.

        Both hosts: tools/delegate_tool.py, ``on_delegation`` for each child; then what they report
        is the host's next turn.
        """
        delegated = getattr(self.capture, "delegated", None)
        if delegated is None:
            return
        self.turn(Turn(words, [Step("delegate_task")], answer="sent", late=early))
        asked = next(said for said in reversed(self.world.truth) if said.kind == "tool")
        for task, result in reports:
            said = self.world.say("work", f"{task}\n\n{result}", self.session, seen=True)
            said.after = asked
            delegated(task, result)
        self.flush()
        self.turn(Turn(batch(self.world.number(), reports), answer="all are back", made="batch"))

    def step(self, step: Step) -> None:
        world, number = self.world, self.world.number()
        world.passes(1)
        call = {
            "unique": f"call_{number}",
            "counted": f"call_{self.calls}",
            "equal": f"call_{step.tool}",
        }[world.calls]
        number = 0 if world.calls == "equal" else number
        self.calls += 1
        arguments = f'{{"n": {number}, "key": "sk-key{number}"}}'
        message = Message(
            {
                "role": "assistant",
                "content": step.talk,
                "reasoning": "thinking",
                "tool_calls": [
                    {
                        "id": call,
                        "type": "function",
                        "function": {"name": step.tool, "arguments": arguments},
                    }
                ],
            }
        )
        if step.talk:
            message.said.append(world.say("talk", step.talk, self.session))
        asked = world.say("tool", f"{step.tool} {arguments}", self.session)
        message.said.append(asked)
        self.reports(step.reports, number, asked)
        output = f'{{"output": "result {number}"}}'
        logged = f"({step.tool}: shown from memory)" if step.tool.startswith("optchat_") else output
        result = Message(
            {
                "role": "tool",
                "name": step.tool,
                "tool_name": step.tool,
                "content": output,
                "tool_call_id": call,
            },
            [world.say("echo", logged, self.session)],
        )
        self.live = [*self.live, message, result]
        self.save()
        if step.steer:
            self.steer(step.steer)
        if step.compress:
            self.compress()

    def reports(self, count: int, number: int, asked: Said) -> None:
        """What subagents report, told from another thread while the turn runs, and before any list
        shows who asked for it.

        Host A 0.19.0, tools/delegate_tool.py: ``on_delegation`` once for each child when all are
        done.
        """
        delegated = getattr(self.capture, "delegated", None)
        for child in range(count if delegated is not None else 0):
            task, result = f"task {number}.{child}", f"report {number}.{child}"
            said = self.world.say("work", f"{task}\n\n{result}", self.session, seen=True)
            said.after = asked
            delegated(task, result)

    def steer(self, text: str) -> None:
        """A message into the running turn.

        A hangs it on the last tool's result of the list, and never saves it.
        """
        world = self.world
        last = next((message for message in reversed(self.live) if message["role"] == "tool"), None)
        if last is None:
            return
        if world.named:
            if self.live[-1]["role"] != "tool":
                return
            row = Message(
                {
                    "role": "user",
                    "content": f"{STEER_B}\n{text}\n{STEER_END}",
                    "display_kind": "steer",
                }
            )
            row.said = [world.say("steer", text, self.session)]
            self.live = [*self.live, row]
            self.save()
        elif self.live[-1] is last or all(said.seen for said in last.said):
            # On the result of an unfinished turn no hook has shown, nothing would tell which of the
            # two turns it went into.
            last["content"] = f"{last['content']}\n\n{STEER_A}\n{text}\n{STEER_END}"
            last.said = [*last.said, world.say("steer", text, self.session)]
            if self.live[-1] is last:
                last.hung = (*last.hung, text)

    def finish(self, turn: Turn, told: str) -> None:
        world = self.world
        world.passes(1)
        if turn.end == "die":
            self.crash()
            return
        if turn.end in ("interrupt", "error"):
            if self.live[-1]["role"] == "tool" or (
                world.named and self.live[-1].get("display_kind") == "steer"
            ):
                text = (
                    "Operation interrupted."
                    if turn.end == "interrupt"
                    else "Operation interrupted: handling API error (HTTP 400)."
                )
                kind = {"display_kind": "hidden"} if world.named else {}
                self._add({"role": "assistant", "content": "" if world.named else text, **kind})
            elif world.named:
                text = FAILED_PART if turn.steps else FAILED
                self._add({"role": "assistant", "content": text, "display_kind": "failed_turn"})
            self.save()
            return
        if turn.end == "empty":
            self._add({"role": "assistant", "content": "(empty)"})
        else:
            said = world.say("talk", turn.answer, self.session)
            self._add({"role": "assistant", "content": turn.answer, "finish_reason": "stop"}, said)
        self.save()
        if turn.end == "partial":
            return
        if turn.end == "die_answered":
            self.crash()
            return
        block = f"{told}\n<memory-context>\n{NOTE}\n\nVIEW\n</memory-context>"
        self.waiting.append(
            (self.live, block if world.named and isinstance(turn.text, list) else told)
        )
        if not turn.late:
            self.flush()

    def _add(self, keys: dict[str, Any], *said: Said) -> None:
        self.live = [*self.live, Message(keys, said)]

    def save(self) -> None:
        """Append what the database does not have.

        On B every message gets its id with its first row.

        The marks of what is saved are set here, also on what came out of the database
        (A 0.19.0, run_agent.py, ``_flush_messages_to_session_db_unlocked``).
        """
        self.last = self.live
        rows = self.world.rows[self.session]
        for message in self.live:
            message["_db_persisted"] = True
            if message.saved:
                continue
            message.saved = True
            if self.world.named:
                message.setdefault("message_uid", f"{self.world.number():032x}")
                message.setdefault("timestamp", self.world.clock())
            rows.append(stored(message, self.world.clock()))

    def compress(self) -> None:
        """Hooks, then head, summary and tail: new dicts all, and the database's rows replaced."""
        world = self.world
        self.capture.list_seen(world.shown(self.live))
        start = tail_start(self.live, world.keep)
        if start is None:
            return
        self.capture.ended(world.shown(self.live))
        self.live = compressed(self.live, start)
        old, last = self.session, self.last
        if world.rotate:
            self.session = world.renaming(old)
        else:
            for row in world.rows[old]:
                row.active = False
        self.save()
        # Between turns host A keeps the list of the last turn as the agent's own (0.19.0, cli.py,
        # _manual_compress).
        self.last = last
        self.capture.switched(self.session, parent=old, reset=False, reason="compression")

    # -- the hooks around it

    def flush(self) -> None:
        """The hooks that waited in the host's worker."""
        waiting, self.waiting = self.waiting, []
        for messages, content in waiting:
            world = self.world
            self.capture.turn_ended(
                world.shown(messages), world.mask(content) if world.named else content
            )

    def undo(self, turns: int = 1, *, late: bool = False) -> None:
        """Turns are taken back.

        ``late``: the hook of the last one is still waiting, as this one's does not.
        """
        if not late:
            self.flush()
        if not self._cut(turns):
            return
        rows = self.world.rows[self.session]
        saved = [k for k, row in enumerate(rows) if row.active and self._counts(row.message)]
        for row in rows[saved[-min(turns, len(saved))] :] if saved else []:
            row.active = False
        self.world.say("note", UNDO_NOTE, self.session, seen=True)
        self.capture.switched(self.session, rewound=True)

    def retry(self, turn: Turn | None = None) -> None:
        """The last message is sent again, or another in its place (``turn``).

        No hook tells that it was taken back.

        Host A cuts its list and leaves the database as it is (0.19.0, cli.py, ``retry_last``); host
        B rewinds that as well (0.22.2, hermes_cli/cli_session_mixin.py, ``retry_last``).
        """
        self.flush()
        users = [message for message in self.live if self._counts(message)]
        if (
            not users
            or not isinstance(users[-1]["content"], str)
            or SUMMARY[:20] in users[-1]["content"]
        ):
            return
        text = users[-1]["content"]
        if text.startswith(STEER_B) or RECOVERY in text:
            # reloaded by a gateway a steer counts as a turn; both would be sent again with the
            # host's words
            return
        if (
            not users[-1].said
            or users[-1].kept is not None
            or (self.world.named and not text.strip())
        ):
            # what the host wrote is not the user's to send again; host B sends no blank message
            # again
            return
        self._cut(1)
        if self.world.named:
            rows = self.world.rows[self.session]
            saved = [k for k, row in enumerate(rows) if row.active and self._counts(row.message)]
            for row in rows[saved[-1] :] if saved else []:
                row.active = False
            text = text.strip()
        self.turn(turn or Turn(text, answer="again"))

    def _cut(self, turns: int) -> bool:
        users = [k for k, message in enumerate(self.live) if self._counts(message)]
        if not users:
            return False
        self.live = self.live[: users[-min(turns, len(users))]]
        if (parent := self.world.parents.get(self.session)) in self.world.untold:
            self.world.lose_trace(parent)
        if self.world.named:
            # B 0.22.2, hermes_cli/cli_session_mixin.py, _publish_truncated_history; A does not.
            self.last = self.live
        return True

    def _counts(self, message: Message) -> bool:
        """Whether a row is a turn of the user's.

        On A every row of that role, on B none the host made.
        """
        return message["role"] == "user" and not (self.world.named and message.get("display_kind"))

    def new(self) -> None:
        """``/new``, ``/clear``.

        Another list; the agent's own stays the old one's until a turn (A 0.19.0, cli.py,
        ``new_session``).
        """
        self.flush()
        old = self.session
        if self.live:
            self.capture.ended(self.world.shown(list(self.live)))
        self.session, self.live = self.world.new_session(), []
        self.capture.switched(self.session, parent=old, reset=True, reason="new_session")

    def branch(self) -> str:
        """The conversation goes on in a copy; the old session is left as it is."""
        self.flush()
        old = self.session
        self._keep()
        self.session = self.world.copy(old, self.live, uids=True)
        self.capture.switched(self.session, parent=old, reset=False, reason="branch")
        return old

    def resume(self, session: str, *, joined: bool = False) -> None:
        """The same agent opens another session.

        No list is shown (A 0.19.0, hermes_cli/cli_commands_mixin.py, _handle_resume_command).
        """
        if session == self.session:
            return
        self.flush()
        old = self.session
        self._keep()
        if (parent := self.world.parents.get(old)) in self.world.untold:
            self.world.lose_trace(parent)
        self.session, self.live = session, self.world.load(session, joined=joined)
        self.capture.switched(session, parent=old, reset=False, reason="resume")

    def _keep(self) -> None:
        """Save what is not saved, and leave the agent's own list as it is."""
        last = self.last
        self.save()
        self.last = last

    def exit(self, *, own: bool = False) -> None:
        """The end.

        ``own``: the agent's own list is handed, which may be another session's or empty (A 0.19.0,
        cli.py, ``_run_cleanup``).
        """
        self.flush()
        self.capture.ended(self.world.shown(self.last if own else self.live))
        self.capture.shutdown()

    def exit_unordered(self, *, own: bool = False) -> None:
        """A one-shot process.

        Nothing orders the end of the session after the hook of its last turn.
        """
        self.capture.ended(self.world.shown(self.last if own else self.live))
        self.flush()
        self.capture.shutdown()

    def crash(self) -> None:
        """The process is gone, and with it all that waited."""
        self.waiting.clear()
        self.dead = True

    def vanish(self) -> None:
        """Thrown away without a word, as a gateway does at a branch (A 0.19.0, gateway/run.py,
        ``_evict_cached_agent``).
        """
        self.flush()
        self.dead = True


def tail_start(messages: list[Message], keep: int) -> int | None:
    """Where a compression begins to keep; None where there is nothing to compress."""
    last_user = max((k for k, m in enumerate(messages) if m["role"] == "user"), default=0)
    start = min(len(messages) - keep, last_user)
    while start > 0 and messages[start]["role"] == "tool":
        start -= 1
    return None if start <= 3 + 1 else start


def compressed(messages: list[Message], start: int) -> list[Message]:
    """Head, summary and tail.

    The summary joins the tail's first message where it would stand beside its like.
    """
    fresh = [message.copied(without=("_db_persisted",)) for message in messages]
    head, tail = fresh[:3], fresh[start:]
    for message in (*head, *tail[:-2]):
        if message["role"] == "tool":
            message["content"] = CLEARED
            message.said = [
                said for said in message.said if said.seen
            ]  # what no hook has shown is gone
    roles = (head[-1]["role"], tail[0]["role"])
    summary = Message(
        {"role": "", "content": f"{SUMMARY}\n\n{SUMMARY_END}", "_compressed_summary": True}
    )
    summary["role"] = "user" if roles[0] in ("assistant", "tool") else "assistant"
    if summary["role"] == roles[1]:
        flipped = "assistant" if summary["role"] == "user" else "user"
        if flipped != roles[0]:
            summary["role"] = flipped
        else:
            text = flat(tail[0]["content"])
            tail[0]["content"] = f"{PRIOR}\n{text}\n\n{PRIOR_END}\n\n{SUMMARY}\n\n{SUMMARY_END}"
            tail[0]["_compressed_summary"] = True
            tail[0].pop("api_content", None)
            return [*head, *tail]
    return [*head, summary, *tail]
