"""One agent's message list, read again after every turn.

What was read before is read anew only where it has changed.

Pure. Remembers, by position, each message and the items it gave; what a message gives is
``host_messages``'s to say. Called by ``capture/capture.py``.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from .host_messages import Item, host_words, read_message

_TAIL: Final = 64
"""Messages from the end among which a host's own row of a turn that has just begun is looked for.
"""
_LISTS = ("content", "tool_calls")
"""What of a message may be a list: some hosts append to the list a message already holds."""


class Reader:
    """Reads one agent's lists.

    An item stays the same object for as long as its message says the same.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Let go of the host's messages."""
        self._seen: list[Any] = []
        self._lists: list[tuple[int, str, tuple[Any, ...]]] = []
        self._parts: list[list[Item]] = []
        self._items: list[Item] = []
        self._given: list[Any] = []

    def read(self, given: object) -> list[Item]:
        """The items of a whole list, in order.

        The result is the reader's own: it is good until the next call, and not to be changed.
        """
        # A copy: a host's own list may grow while it is read.
        messages = list(given) if isinstance(given, (list, tuple)) else []
        self._given = messages
        changed = self._changed(messages)
        if changed == range(len(self._seen), len(messages)) and len(messages) >= len(self._seen):
            self._append(messages)
            return self._items
        for at in changed:
            items = read_message(messages[at])
            if at == len(self._parts):
                self._parts.append(items)
            elif items != self._parts[at]:
                self._parts[at] = items
        del self._parts[len(messages) :]
        self._seen = [_snapshot(message) for message in messages]
        self._lists = [
            found for at, message in enumerate(messages) for found in _lists(at, message)
        ]
        self._items = list(chain.from_iterable(self._parts))
        return self._items

    @property
    def count(self) -> int:
        """Messages of the list that was read last."""
        return len(self._parts)

    def said_at(self, at: int) -> Item | None:
        """What the user said in the message at a place in the list that was read last."""
        parts = self._parts[at] if at < len(self._parts) else ()
        return next((item for item in parts if item.said and not item.steer), None)

    def is_at(self, message: object, at: int) -> bool:
        """Whether the list that was read last holds this very object at a place."""
        return at < len(self._given) and self._given[at] is message

    def place_of(self, message: object, at: int) -> int:
        """Where the list that was read last holds this very object; ``at`` where it does not.

        Once it has joined messages before it, a host holds it further to the front.
        """
        if message is None or self.is_at(message, at):
            return at
        back = range(min(at, len(self._given)) - 1, -1, -1)
        return next((place for place in back if self._given[place] is message), at)

    def first_from(self, at: int) -> Item | None:
        """The first item of the messages from a place on in the list that was read last."""
        return next(chain.from_iterable(self._parts[at:]), None)

    def marked(self) -> set[str]:
        """The words of the host's own rows at the end of the list that was read last, in canonical
        form.
        """
        return {words for message in self._seen[-_TAIL:] if (words := host_words(message))}

    def _append(self, messages: list[Any]) -> None:
        for at in range(len(self._seen), len(messages)):
            message = messages[at]
            self._parts.append(read_message(message))
            self._seen.append(_snapshot(message))
            self._lists.extend(_lists(at, message))
            self._items.extend(self._parts[-1])

    def _changed(self, messages: list[Any]) -> range | list[int]:
        """Positions of messages that are new or do not say what they said.

        A snapshot holds the very values of its message, so that comparing it with an unchanged one,
        or with a copy, costs next to nothing; a list among the values may have been changed in
        place, and is compared part by part.
        """
        size = min(len(messages), len(self._seen))
        grown = range(size, len(messages))
        try:
            altered = {
                at
                for at, name, parts in self._lists
                if at < size and not _holds(messages[at], name, parts)
            }
            if not altered and messages[:size] == self._seen[:size]:
                return grown
            return [
                at for at in range(size) if at in altered or messages[at] != self._seen[at]
            ] + list(grown)
        except (
            Exception
        ):  # values of a host's own making may refuse to be compared: then all is read anew
            return range(len(messages))


def _snapshot(message: Any) -> Any:
    return dict(message) if isinstance(message, dict) else message


def _lists(at: int, message: Any) -> list[tuple[int, str, tuple[Any, ...]]]:
    if not isinstance(message, dict):
        return []
    return [
        (at, name, tuple(message[name])) for name in _LISTS if isinstance(message.get(name), list)
    ]


def _holds(message: Any, name: str, parts: tuple[Any, ...]) -> bool:
    held = message.get(name) if isinstance(message, dict) else None
    return isinstance(held, list) and len(held) == len(parts) and tuple(held) == parts
