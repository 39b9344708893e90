"""The rows of a simulated host.

Their texts, what was said in them, and how a database gives them back.

What a provider is shown stands in a message's keys; what only the simulation knows, in its
attributes.
"""

from __future__ import annotations

import copy
import hashlib
import re
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optchat.base.canon import canon

if TYPE_CHECKING:
    from collections.abc import Iterable

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG_URL = f"data:image/png;base64,{PNG}"
PNG_MARK = (
    f"[image/png: {len(b64decode(PNG))} bytes, sha256 {hashlib.sha256(b64decode(PNG)).hexdigest()}]"
)

SUMMARY = (
    "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary "
    "below.\n## What happened\nThings."
)
SUMMARY_END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
PRIOR = "[PRIOR CONTEXT — for reference only; not a new message]"
PRIOR_END = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
STEER_A = (
    "[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered mid-turn; not tool "
    "output]"
)
STEER_B = (
    "[OUT-OF-BAND USER MESSAGE — a direct message from the user, delivered once at this "
    "position; not tool output "
    "and not a new delivery when replayed from conversation history]"
)
STEER_END = "[/OUT-OF-BAND USER MESSAGE]"
FAILED = "Your request was not processed. Send it again if you still want me to carry it out."
FAILED_PART = (
    "This turn did not complete. Some actions may already have run; verify their effects before "
    "resending."
)
NOTE = (
    "[System note: The following is recalled memory context, NOT new user input. Treat as "
    "authoritative reference data.]"
)
CLEARED = "[Old tool output cleared to save context space]"

RECOVERY = (
    "[System note: The previous turn was interrupted by a gateway restart; the gateway is now back "
    "online. Any restart/shutdown command in the history has already run — do NOT re-execute "
    "or verify "
    "it. Address the user's NEW message below FIRST. Do NOT re-run tool calls whose results "
    "already "
    "appear in the history.]"
)
"""Alone, or before the user's words: A 0.19.0, gateway/run.py, ``build_resume_recovery_note``.

It stands in the live list only; announced and stored are the words, or nothing
(``persist_user_message``).
"""
CONTINUE = (
    "[System note: Your previous turn was interrupted mid-run — the app or its backend "
    "process stopped "
    "before the turn could finish. Some of the work may already be complete; check the "
    "current state "
    "before redoing anything, then finish the task. The interrupted request was:]"
)
"""With the words of the broken turn behind it, announced with them, and marked in the list.

B 0.22.2, tui_gateway/session_auto_continue.py, ``_auto_continue_note``.
"""
DELEGATED = "async_delegation_complete"
"""How B marks the row.

0.22.2, tools/process_registry_notifications.py, ``for_delegation``; A does not.
"""

UNDRESSED = ("_compressed_summary", "_db_persisted", "api_content", "name")
"""Keys of a live message that no row of the database gives back.

``api_content`` changes no reading.
"""
COPIED_A = ("role", "content", "tool_name", "tool_calls", "tool_call_id", "reasoning")
"""Columns of a branch.

Host A 0.19.0, hermes_cli/cli_commands_mixin.py, ``_handle_branch_command`` and
gateway/slash_commands.py, the same: no timestamp, so that every copy is dated by the branching.
"""
COPIED_B = (*COPIED_A, "timestamp")
"""Host B 0.22.2, hermes_cli/cli_commands_mixin.py, ``_BRANCH_COPY_KEYS``, where
``message_identity`` adds the message's id; gateway/slash_commands_session.py, ``_branch_row``,
where nothing does. In neither is ``display_kind`` among them: what the host had marked as its own
comes back unmarked.
"""


@dataclass
class Said:
    """Something that really happened.

    ``seen``: a hook has shown it; the user's words are told to one before anything else.
    ``untold``: words of the user's that were announced by nothing but the fact (a picture).
    ``loose``: its place cannot be kept. A database that does not hold it was shown first; or a
    later message of the user's had to be written down when its session was left, and of another
    branch, before any hook showed this. ``after``: it was told from another thread, and stands
    somewhere behind this.
    """

    kind: str
    text: str
    family: int
    seen: bool = False
    loose: bool = False
    untold: bool = False
    session: str = ""
    after: Said | None = None


class Message(dict[str, Any]):
    """A message as the host holds it.

    ``saved``: the database has it; ``hung``: steers put on a result; ``kept``: what the database is
    given for its content, where that is something else.
    """

    def __init__(
        self,
        keys: dict[str, Any],
        said: Iterable[Said] = (),
        *,
        saved: bool = False,
        hung: tuple[str, ...] = (),
    ) -> None:
        super().__init__(keys)
        self.said = list(said)
        self.saved = saved
        self.hung = hung
        self.kept: str | None = None

    def copied(self, *, without: Iterable[str] = (), saved: bool = False) -> Message:
        """Another dict that says the same."""
        keys = {key: copy.deepcopy(value) for key, value in self.items() if key not in without}
        made = Message(keys, self.said, saved=saved, hung=self.hung)
        made.kept = self.kept
        return made


@dataclass
class Row:
    """A message in the database."""

    message: Message
    active: bool = True


def stored(message: Message, stamp: float) -> Row:
    """What the database keeps of a message: text, without what was put on it after it was saved."""
    kept = message.copied(without=UNDRESSED, saved=True)
    kept["content"] = _text_kept(message["content"]) if message.kept is None else message.kept
    kept.kept = None
    kept.setdefault("timestamp", stamp)
    return Row(kept)


def restored(row: Row, *, named: bool) -> Message:
    """A row as the database gives it back.

    Host A gives no mark that it is saved (0.19.0, hermes_state.py, ``_rows_to_conversation``), host
    B one that it is (0.22.2, hermes_state_messages.py, the same): "born durable".
    """
    message = row.message.copied(saved=True)
    message.hung = ()
    if named:
        message["_db_persisted"] = True
    if message["role"] in ("user", "assistant") and isinstance(message["content"], str):
        message["content"] = message["content"].strip()
    return message


def replayed(messages: list[Message], *, named: bool) -> list[Message]:
    """A loaded history as a gateway hands it to a new agent.

    Host A 0.19.0, gateway/run.py, ``_build_gateway_agent_history``; host B 0.22.2 the same, with
    ``_build_replay_entry``: rows without content go, tool rows lose their date, and others keep
    only named keys: a date on the user's, on B the id, and no ``display_kind``.
    """
    found = []
    for message in messages:
        if "tool_calls" in message or message["role"] == "tool":
            found.append(_without(message, "timestamp"))
        elif message["content"]:
            kept = {"role", "content", "reasoning", "finish_reason"}
            kept |= {"timestamp"} if message["role"] == "user" else set()
            kept |= {"message_uid", "_absorbed_message_uids", "_db_persisted"} if named else set()
            found.append(_without(message, *(message.keys() - kept)))
    while found and found[-1].get(
        "tool_calls"
    ):  # agent/replay_cleanup.py, strip_dangling_tool_call_tail
        found.pop()
    return found


def copied(message: Message, *, named: bool, uids: bool) -> Message:
    """A message as a branch writes it into the new session."""
    columns = COPIED_B if named else COPIED_A
    kept = {*columns, *(("message_uid", "_absorbed_message_uids") if uids else ())}
    return message.copied(without=message.keys() - kept)


def flat(content: Any) -> str:
    """The words of a content of any shape."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        part["text"] for part in parts if isinstance(part, dict) and part.get("type") == "text"
    )


def as_logged(text: str | list[dict[str, Any]]) -> str:
    if isinstance(text, str):
        return text
    return "\n".join(part["text"] if part["type"] == "text" else PNG_MARK for part in text)


def picture(text: str) -> list[dict[str, Any]]:
    """A message with a text and a picture."""
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": PNG_URL}}]


def _without(message: Message, *keys: str) -> Message:
    for key in keys:
        message.pop(key, None)
    return message


def _text_kept(content: Any) -> Any:
    """A database of text: pictures leave a word behind, and the host's memory block is not kept."""
    if not isinstance(content, list):
        return content
    parts = [
        part["text"] if part["type"] == "text" else "[screenshot]"
        for part in content
        if isinstance(part, dict) and "type" in part
    ]
    return "\n".join(part for part in parts if "memory-context" not in part)


def batch(number: int, reports: list[tuple[str, str]]) -> str:
    """What a host tells its model when subagents in the background are done.

    It opens a turn of its own.

    A 0.19.0, tools/process_registry.py, ``_format_async_delegation``; B 0.22.2,
    tools/process_registry_notifications.py, ``_format_batch_delegation``.
    """
    told = (
        f"A background fan-out of {len(reports)} subagent(s) you dispatched earlier has "
        "finished. All ran in "
        "parallel and waited on each other; their consolidated results are below. You may "
        "have moved on since "
        "dispatching — act on these or re-dispatch if things have changed."
    )
    head = f"[ASYNC DELEGATION BATCH COMPLETE — deleg_{number}]"
    lines = [head, told, "", "Role: leaf   Model: m   Total duration: 1s"]
    for at, (task, result) in enumerate(reports, 1):
        lines += ["", f"--- ✓ TASK {at}/{len(reports)}: {task}  (status=completed, 1s) ---", result]
    return "\n".join(lines)


def normal(kind: str, text: str) -> tuple[str, str]:
    """A form in which masks and outer space do not count."""
    if kind in ("user", "steer"):
        text = canon(text)
    text = re.sub(r'sk-\w+(\.\.\.\w+)?"?\}?|\*\*\*|\[redacted\]', "§", text)
    return kind, text.strip()
