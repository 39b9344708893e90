"""A gateway in a host's Python, as its own code runs it.

For scenarios (see driver.py). No platform is connected: what a person writes, commands included,
goes in where an adapter hands it over, at the host's own `GatewayRunner._handle_message`, so that
/branch, /compress, /new and all others are done by the host.
"""

import asyncio
import os
import threading

os.environ.setdefault("GATEWAY_ALLOW_ALL_USERS", "true")

from gateway.config import Platform
from gateway.platforms.base import MessageEvent
from gateway.run import GatewayRunner
from gateway.session import SessionSource


class Messenger:
    """`said` has (text, session) of each message that is no command, in order."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.said = []
        self.runner = self._do(_runner())

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(100)

    def say(self, text, chat="c1"):
        """One message of a person's direct chat; the reply as the platform would get it."""
        source = SessionSource(
            platform=Platform.TELEGRAM, chat_id=chat, chat_type="dm", user_id="1", user_name="Ann"
        )
        reply = self._do(self.runner._handle_message(MessageEvent(text=text, source=source)))
        if not text.startswith("/"):
            self.said.append((text, self.session(source)))
        return reply

    def session(self, source):
        return self.runner.session_store.get_or_create_session(source).session_id

    def end(self):
        self._do(self.runner.stop())


async def _runner():
    return GatewayRunner()
