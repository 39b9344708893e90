"""The memory provider: every hook of the host, each a few lines onto the memory.

Holds one agent's session and its troubles, and keeps no conversation: what must survive is on disk.
The host builds one provider for every agent, calls its hooks from several threads at once, and may
drop it without a word.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from agent.memory_provider import MemoryProvider

from . import config_json, dependencies, lists, tools
from .guard import ErrorReporter, empty, guarded, silence
from .session import Session

if TYPE_CHECKING:
    from ..memory import Memory

logger = logging.getLogger(__name__)

PRE_COMPRESS_CHARS: Final = 6_000
"""The host cuts what it takes into its summary prompt at this length."""

PRE_COMPRESS_HEAD: Final = """\
The memory keeps every message of this conversation word for word. Each line `id+n|text` stands \
for n messages from number id on, and
optchat_zoom(id, n) opens it again: where the summary leaves details out, let it name the address.
"""

TURN_WAIT_S: Final = 2.0
"""Longest a hook in the middle of a turn may take.

All of them take milliseconds, unless the disk hangs.
"""
END_WAIT_S: Final = 5.0
"""Longest a hook between turns or at the end of a program may take.

The host gives up on a ``prefetch`` after 8.
"""

OPEN_WAIT_S: Final = 10.0
"""Longest the beginning of a session may take; an index that has to be made anew is made meanwhile.
"""

_LINE: Final = re.compile(r"^ {0,2}\d+\+\d+\|", re.MULTILINE)
_said_unavailable = False


# The host's types are unknown where this is checked.
class OptchatProvider(MemoryProvider):  # type: ignore[misc]
    """Endless memory for one agent."""

    def __init__(self) -> None:
        self.troubles = ErrorReporter()
        self._session: Session | None = None
        self._recalled_lines = 0

    @property
    def name(self) -> str:
        """What the host's configuration calls us."""
        return config_json.DIRECTORY

    # -- before a session: asked of instances that never see one

    def is_available(self) -> bool:
        """Whether everything we need can be imported.

        Listings ask as well: nothing is imported, no disk is touched.
        """
        # Once for a process, not for every agent it builds.
        global _said_unavailable  # noqa: PLW0603
        lacking = dependencies.missing()
        if lacking and not _said_unavailable:
            # Older hosts go on without memory and without a word: this line is then all there is.
            _said_unavailable = True
            logger.warning("optchat: %s", dependencies.advice(lacking))
        return not lacking

    def unavailable_reason(self) -> str:
        """What is missing and how to get it; newer hosts show it."""
        return dependencies.advice(dependencies.missing())

    def get_config_schema(self) -> list[dict[str, Any]]:
        """The questions of setup."""
        return config_json.schema()

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Merge answers into the settings of a profile.

        What is raised is shown by the host: a value that cannot be used.
        """
        config_json.save_config(values, hermes_home)

    def post_setup(self, hermes_home: str, config: dict[str, Any]) -> None:
        """The whole of ``hermes memory setup optchat``; the host does nothing after it."""
        from . import setup

        setup.run(hermes_home, config)

    def get_status_config(self, _provider_config: dict[str, Any]) -> dict[str, str]:
        """The rows of ``hermes memory status``, which tells no provider of which profile it speaks.

        The one in force.
        """
        from hermes_constants import get_hermes_home

        from . import status

        return status.rows(self._session.root.parent if self._session else get_hermes_home())

    def backup_paths(self) -> list[str]:
        """Nothing: all of it lies in the profile's own directory."""
        return []

    def identity_signature(self) -> dict[str, Any]:
        """Nothing that would have to rebuild a cached agent; a gateway asks at every message."""
        return {}

    # -- a session begins

    @guarded(silence, OPEN_WAIT_S)
    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Begin a session, or begin it again.

        A second call puts a new session in place of the first.
        """
        self.troubles.tell_through(kwargs.get("warning_callback"))
        session = Session(session_id, kwargs)
        before, self._session = self._session, session
        try:
            if not session.off:
                self.troubles.mention(session.memory().warnings)
            if session.writes:
                session.capture().initialized()
        finally:
            # Last, so that a memory both use stays open.
            if before is not None:
                before.close()

    @guarded(empty)
    def system_prompt_block(self) -> str:
        """How to read the memory: the same bytes for every session of a mode."""
        from .system_prompt import BLOCKS

        session = self._session
        return "" if session is None or session.off else BLOCKS[session.settings.memory_mode]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools.

        All of them before a session: the host then notes which names are ours, and asks again for
        what to offer.
        """
        session = self._session
        if session is None:
            return tools.schemas(search=True)
        return tools.schemas(search=session.settings.search_tool) if session.has_tools else []

    # -- on the path of a turn: these wait for nobody

    @guarded(silence, TURN_WAIT_S)
    # The host's signature.
    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:  # noqa: ARG002
        """Keep what the user said, before anything can go wrong with the turn."""
        if session := self._writing():
            author = str(kwargs.get("author_name") or kwargs.get("author_id") or session.author)
            begun = lists.begun(session.id)
            length, last = (begun.length, begun.last) if begun is not None else (0, None)
            capture = session.capture()
            capture.turn_started(_words(message), author=author, length=length, last=last)

    @guarded(empty, END_WAIT_S)
    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """What the model is shown before it answers. Older hosts give no session id."""
        session = self._session
        self._recalled_lines = 0
        if session is None:
            return ""
        named = session.named(session_id)
        if not session.shows_view:
            return ""
        begun = lists.begun(named, take=True)
        text = session.memory().recall(_words(query), named, begun and begun.standing)
        self._recalled_lines = len(_LINE.findall(text))
        # What it could not do is done by now; it is not called again to say so.
        self.troubles.worked("initialize")
        return text

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """Nothing: ``prefetch`` is quick enough to begin when it is asked."""

    def recall_status(self) -> Any:
        """How many lines the last ``prefetch`` brought, where the host has a word for that."""
        try:
            from agent.memory_provider import RecallStatus
        except ImportError:
            return None
        return (
            RecallStatus(provider_label=self.name, count=self._recalled_lines)
            if self._recalled_lines
            else None
        )

    # The host's signature.
    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:  # noqa: ARG002
        """The answer of one of our tools, as a JSON string, also where there is none."""
        session = self._session
        if session is None or not session.has_tools:
            return tools.answer(
                error="the memory is switched off here", instead="answer without it"
            )
        try:
            return tools.call(session.memory(), tool_name, args if isinstance(args, dict) else {})
        except Exception as error:  # the model is told, and the turn goes on
            self.troubles.failed("handle_tool_call", error)
            return tools.answer(
                error=f"the memory could not be read: {error}",
                instead="answer without it, and say so",
            )

    # -- after a turn

    @guarded(silence)
    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,
        turn_author: dict[str, Any] | None = None,
    ) -> None:
        """Log what the turn brought; durable when this returns, or spooled."""
        if session := self._writing():
            if messages is None:
                messages = [
                    {"role": "user", "content": user_content},
                    {"role": "assistant", "content": assistant_content},
                ]
            author = (
                (turn_author or {}).get("name") or (turn_author or {}).get("id") or session.author
            )
            try:
                # First: the next turn may begin before the log is written. It must not cost the
                # turn its log.
                session.memory().list_shown(session.named(session_id), messages)
            finally:
                session.capture().turn_ended(
                    messages,
                    user_content if isinstance(user_content, str) else None,
                    author=str(author),
                )
            self.troubles.worked("initialize")
            self.troubles.mention(session.memory().warnings)

    @guarded(silence, TURN_WAIT_S)
    def on_delegation(
        self,
        task: str,
        result: str,
        *,
        child_session_id: str = "",  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Log what a subagent was asked and what it reported."""
        if session := self._writing():
            session.capture().delegated(_words(task), _words(result))

    @guarded(silence, TURN_WAIT_S)
    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None
    ) -> None:
        """Log what the host's own memory tool put down, replaced or struck."""
        if session := self._writing():
            old = metadata or {}
            session.capture().noted(_memory_note(action, target, content, old), _words(content))

    # -- the list changes, or the session

    @guarded(empty, END_WAIT_S)
    def on_pre_compress(self, messages: list[dict[str, Any]]) -> str:
        """Log what is still missing, and hand the host the lines of what is about to go, so that
        its summary can point to them.
        """
        session = self._writing()
        if session is None:
            return ""
        session.capture().list_seen(messages)
        lines = session.lines(PRE_COMPRESS_CHARS - len(PRE_COMPRESS_HEAD))
        return PRE_COMPRESS_HEAD + lines if lines else ""

    @guarded(silence, END_WAIT_S)
    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        reason: str = "",
        **_: Any,
    ) -> None:
        """Follow the agent to another session, or to an earlier point of this one."""
        session = self._session
        if session is None or session.off:
            return
        old, session.id = session.id, session.named(new_session_id)
        parent = session.named(parent_session_id) if parent_session_id else ""
        if reason == "compression":
            session.compressed()
        if session.writes:
            _follow_list(session.memory(), parent or old, session.id, reason=reason)
            session.capture().switched(
                session.id, parent=parent, reset=reset, rewound=rewound, reason=reason
            )

    @guarded(silence, END_WAIT_S)
    def on_session_end(self, messages: list[dict[str, Any]]) -> None:
        """Log what is still missing.

        The session may go on: the host also calls this at a compression.
        """
        if session := self._writing():
            session.capture().ended(messages)

    @guarded(silence, END_WAIT_S)
    def shutdown(self) -> None:
        """Log what no list has shown, and give the memory back."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            if session.writes:
                session.capture().shutdown()
        finally:
            session.close()

    def _writing(self) -> Session | None:
        """The session, if it is one that leaves something behind."""
        session = self._session
        return session if session is not None and session.writes else None


def _follow_list(memory: Memory, old: str, new: str, *, reason: str) -> None:
    """What a switch means for what stands in front of the model."""
    if reason == "compression":
        memory.compressed(old, new)
    elif reason == "branch":
        memory.shown.branched(old, new)


def _words(content: object) -> str:
    """A text a host gives, which may be of the shape of a message's content.

    Parts, or nothing at all.
    """
    if isinstance(content, str):
        return content
    from ..capture.host_messages import text_of

    return text_of(content)


def _memory_note(action: str, target: str, content: str, metadata: dict[str, Any]) -> str:
    """One write of the host's memory tool as a message."""
    where = "about the user" if target == "user" else "to memory"
    old = str(metadata.get("previous_content") or metadata.get("old_text") or "")
    if action == "remove":
        return f"struck from the notes {where}: {old or content}"
    if action == "replace" and old:
        return f"changed in the notes {where}: {content}\n(before: {old})"
    return f"added to the notes {where}: {content}"
