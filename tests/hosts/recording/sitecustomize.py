"""Writes down what a host calls of our provider, in short, into the file OPTCHAT_RECORDING names.

For reading a failed life, not for tests. Python imports this module by its name when the directory
is on its path.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import sys
import threading
import time

HOOKS = (
    "initialize",
    "system_prompt_block",
    "prefetch",
    "on_turn_start",
    "sync_turn",
    "on_session_end",
    "on_session_switch",
    "on_pre_compress",
    "on_delegation",
    "on_memory_write",
    "shutdown",
)
START = time.monotonic()
LETTERS = {"user": "u", "assistant": "a", "tool": "t", "system": "s"}


def row(message):
    """`u"words"[marks]`.

    `id` is a message_uid's beginning, `db` _db_persisted, `ts` a timestamp, `api` an api_content.
    """
    if not isinstance(message, dict):
        return repr(message)[:60]
    content = message.get("content")
    text = content if isinstance(content, str) else repr(content)
    marks = []
    for key, value in message.items():
        if not value or key in (
            "role",
            "content",
            "tool_name",
            "name",
            "reasoning",
            "reasoning_content",
            "finish_reason",
        ):
            continue
        if key == "message_uid":
            marks.append(f"id={value[:5]}")
        elif key == "tool_calls":
            marks.append(
                "calls="
                + ",".join(f"{call['function']['name']}#{call['id'][-3:]}" for call in value)
            )
        elif key == "tool_call_id":
            marks.append(f"of=#{value[-3:]}")
        elif key == "timestamp":
            marks.append("ts")
        elif key in ("_db_persisted", "api_content", "_row_id"):
            marks.append(
                {"_db_persisted": "db", "api_content": "api", "_row_id": f"row={value}"}[key]
            )
        elif key == "display_kind":
            marks.append(f"display_kind={value}")
        elif key not in ("_db_row_snapshot", "_tool_call_uids", "_tool_call_uid"):
            marks.append(key)
    return f'{LETTERS.get(message.get("role"), "?")}"{text[:70]}"' + (
        f"[{' '.join(marks)}]" if marks else ""
    )


def shown(value):
    if isinstance(value, list):
        return "".join(f"\n      {row(message)}" for message in value) or "[]"
    return repr(value)[:90]


def record(hook, arguments, named):
    named = {
        key: value
        for key, value in named.items()
        if not key.endswith("callback") and key != "hermes_home"
    }
    lists = [value for value in [*arguments, *named.values()] if isinstance(value, list)]
    plain = [shown(value) for value in arguments if not isinstance(value, list)]
    plain += [
        f"{key}={shown(value)}" for key, value in named.items() if not isinstance(value, list)
    ]
    seconds, thread = time.monotonic() - START, threading.current_thread().name[:14]
    line = f"{os.getpid()} {seconds:6.2f} {thread}: {hook}({', '.join(plain)})"
    with open(os.environ["OPTCHAT_RECORDING"], "a", encoding="utf-8") as file:
        file.write(line + "".join(shown(value) for value in lists) + "\n")


def wrapped(method, hook):
    @functools.wraps(method)
    def call(*arguments, **named):
        record(hook, arguments, named)
        return method(*arguments, **named)

    return call


def watch(manager):
    add = manager.add_provider

    def add_provider(self, provider, *more, **named):
        if getattr(provider, "name", "") == "optchat":
            for hook in HOOKS:
                setattr(provider, hook, wrapped(getattr(provider, hook), hook))
        return add(self, provider, *more, **named)

    manager.add_provider = add_provider


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "agent.memory_manager":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            watch(module.MemoryManager)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("OPTCHAT_RECORDING"):
    sys.meta_path.insert(0, Finder())
