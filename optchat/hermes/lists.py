"""The host's message list as a turn begins, which is the list of the request that follows but for
the block still to come.

No hook of a memory provider is shown it before ``prefetch``; a general plugin's ``pre_llm_call``
is, right before it and after a compression (host 0.19: agent/turn_context.py, build_turn_context;
host 0.22: agent/turn_context.py, _collect_pre_llm_call_context). It only listens and changes
nothing.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from . import dependencies

if TYPE_CHECKING:
    from ..recall.shown import Standing

HOOK: Final = "pre_llm_call"
_KEPT: Final = 64
"""Turns that may have begun without having asked for their block yet, over all agents of a process.
"""


class FirstList(NamedTuple):
    """The list a turn begins with.

    What stands in it, how many messages it has, the last of them.
    """

    standing: Standing
    length: int
    last: Any


logger = logging.getLogger(__name__)
_begun: dict[str, FirstList] = {}
_lock = threading.Lock()


def follow(ctx: Any) -> None:
    """Listen to turns that begin.

    Called for every agent the host builds, also before setup has installed what we need.
    """
    if dependencies.missing():
        return
    if hasattr(ctx, "register_auxiliary_task"):
        ctx.register_hook(HOOK, turn_begins)
        return
    try:
        # Host 0.19 hands memory providers a context whose register_hook does nothing
        # (plugins/memory/__init__.py, _ProviderCollector).
        from hermes_cli.plugins import PluginContext, PluginManifest, get_plugin_manager

        manager = get_plugin_manager()
        # Asked for every agent: one ear is enough.
        if turn_begins not in manager._hooks.get(HOOK, ()):  # noqa: SLF001
            PluginContext(PluginManifest(name="optchat"), manager).register_hook(HOOK, turn_begins)
    except Exception as error:  # a host of another shape: the lists after each turn have to do
        logger.warning("optchat: cannot see the message list as a turn begins: %s", error)


def turn_begins(session_id: str = "", conversation_history: Any = None, **_: Any) -> None:
    """A turn of a session begins with this list."""
    if not isinstance(session_id, str) or not isinstance(conversation_history, (list, tuple)):
        return
    from ..base.json_line import clean
    from ..recall.shown import standing_in

    session = clean(session_id)
    last = conversation_history[-1] if conversation_history else None
    begun = FirstList(standing_in(conversation_history), len(conversation_history), last)
    with _lock:
        _begun.pop(session, None)
        _begun[session] = begun
        while len(_begun) > _KEPT:
            del _begun[next(iter(_begun))]


def begun(session: str, *, take: bool = False) -> FirstList | None:
    """The list with which the session's turn has just begun; None where it was not shown.

    ``take``: by who is the last to ask.
    """
    with _lock:
        return _begun.pop(session, None) if take else _begun.get(session)
