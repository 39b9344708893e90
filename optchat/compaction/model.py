"""What a model is asked and what it answers, as plain data.

The border between the compactor and whoever has a model.

Holds no wording and calls nothing. ``hermes/`` makes a ``Model`` of the host's auxiliary model,
tests make one of a function.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from ..base.errors import OptchatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROLES: Final = ("system", "user", "assistant")


class Said(NamedTuple):
    """One message of a request; ``role`` is one of ``ROLES``."""

    role: str
    content: str


class Reply(NamedTuple):
    """What came back.

    Token counts are None where the endpoint does not tell; ``cached`` of ``tokens_in`` came from
    its cache.
    """

    text: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int | None = None


class ModelDownError(OptchatError):
    """The model cannot be had at all (no connection, no credit, too many calls, none configured).

    No fault of what it was asked.
    """


class CallError(OptchatError):
    """One call failed in a way that may be the fault of what was asked, or of nobody.

    A timeout, an error of the endpoint.
    """


class RestError(OptchatError):
    """No call was made: the day's tokens are spent, or the compactor is being stopped."""


def as_it_is(text: str) -> str:
    """The text itself: the ``redact`` of whoever knows of no secret but those we mask."""
    return text


def spawn_daemon(run: Callable[[], None], name: str) -> None:
    """Run something in a thread that no exit of the process waits for."""
    threading.Thread(target=run, name=name, daemon=True).start()


class Model(NamedTuple):
    """A model that writes lines.

    ``ask``: a request and the name of another model to use instead ("" for none) to its reply; it
    blocks, runs in several threads at once, and raises ``ModelDownError`` or ``CallError``.
    ``redact``: masks what the host knows to be secret, over and above what we mask. ``spawn``:
    starts a daemon thread in which ``ask`` finds its profile. ``name``: for people.
    """

    name: str
    ask: Callable[[Sequence[Said], str], Reply]
    redact: Callable[[str], str] = as_it_is
    spawn: Callable[[Callable[[], None], str], None] = spawn_daemon
