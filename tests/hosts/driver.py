"""Runs one scenario inside a host's Python.

`python driver.py SCENARIO.py RESULT.json`, with HERMES_HOME set.

The scenario is Python that uses the names defined here: it holds `Talk`s with the host's real
agent, and leaves what the test wants to know in the dictionary `out`. Everything the host offers as
a command of its chat program is done as that program does it.
"""

import gc
import json
import os
import sys
import threading
import time
from pathlib import Path

from hermes_cli.config import load_config

MODEL = load_config().get("model")
out = {}


class Talk:
    """One agent with its conversation. A known session is taken up where it was left."""

    def __init__(self, session, platform="cli", resume=False, **options):
        # Half of a short scenario's time: for those that hold a talk.
        from hermes_state import SessionDB
        from run_agent import AIAgent

        self.db = SessionDB()
        self.messages = self.db.get_messages_as_conversation(session) if resume else []
        self.agent = AIAgent(
            base_url=MODEL["base_url"],
            api_key=MODEL["api_key"],
            provider="custom",
            api_mode="chat_completions",
            model=MODEL["default"],
            quiet_mode=True,
            platform=platform,
            session_id=session,
            session_db=self.db,
            **options,
        )

    @property
    def manager(self):
        return self.agent._memory_manager

    @property
    def provider(self):
        return self.manager.get_provider("optchat")

    def say(self, text, interrupt_after=None, wait=True):
        """One turn; the answer as the host returns it. The messages of the conversation move on."""
        timer = threading.Timer(interrupt_after, self.agent.interrupt) if interrupt_after else None
        if timer:
            timer.start()
        try:
            result = self.agent.run_conversation(text, conversation_history=self.messages)
        finally:
            if timer:
                timer.cancel()
                timer.join()
        self.messages = result["messages"]
        if wait and self.manager:
            self.manager.flush_pending(10)
        return result.get("final_response")

    def compress(self):
        self.messages, *_ = self.agent._compress_context(self.messages, "", force=True)
        self.settle()

    def new(self, session):
        """`/new`"""
        old, self.agent.session_id = self.agent.session_id, session
        before, self.messages = self.messages, []
        self._fresh()
        self.db.create_session(session_id=session, source="cli", model=MODEL["default"])
        self.agent._session_db_created = True
        self.manager.commit_session_boundary_async(
            before, new_session_id=session, parent_session_id=old, reason="new_session"
        )
        self.settle()

    def branch(self, session):
        """`/branch`"""
        old, self.agent.session_id = self.agent.session_id, session
        self.db.create_session(
            session_id=session, source="cli", model=MODEL["default"], parent_session_id=old
        )
        for message in self.messages:
            names = ("role", "content", "tool_calls", "tool_call_id", "api_content")
            known = {name: message[name] for name in names if message.get(name) is not None}
            self.db.append_message(
                session_id=session,
                tool_name=message.get("tool_name") or message.get("name"),
                **known,
            )
        self._fresh()
        self.manager.on_session_switch(session, parent_session_id=old, reset=False, reason="branch")

    def undo(self):
        """`/undo`: the last question and all that followed it are taken back."""
        cut = max(i for i, message in enumerate(self.messages) if message["role"] == "user")
        self.messages = self.messages[:cut]
        last = self.db.list_recent_user_messages(self.agent.session_id, limit=10)[0]
        self.db.rewind_to_message(self.agent.session_id, last["id"])
        self._fresh()
        self.manager.on_session_switch(
            self.agent.session_id, parent_session_id="", reset=False, rewound=True
        )

    def _fresh(self):
        self.agent.reset_session_state()
        self.agent._invalidate_system_prompt()
        if hasattr(self.agent, "_last_flushed_db_idx"):
            self.agent._last_flushed_db_idx = len(self.messages)

    def settle(self):
        if self.manager:
            self.manager.flush_pending(10)

    def end(self):
        """The end of the program: what every front end of the host calls."""
        self.settle()
        self.agent.shutdown_memory_provider(self.messages)


def handles():
    """Open file handles of this process that lead into the memory directory."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return sorted(path for path in found if "/optchat/" in path)


def threads():
    return sorted(thread.name for thread in threading.enumerate())


def main():
    scenario, result = map(Path, sys.argv[1:3])
    names = {
        "Talk": Talk,
        "load_config": load_config,
        "out": out,
        "handles": handles,
        "threads": threads,
        "time": time,
        "gc": gc,
        "home": Path(os.environ["HERMES_HOME"]),
    }
    try:
        exec(compile(scenario.read_text(encoding="utf-8"), str(scenario), "exec"), names)
    finally:
        result.write_text(json.dumps(out, default=repr), encoding="utf-8")


if __name__ == "__main__":
    main()
