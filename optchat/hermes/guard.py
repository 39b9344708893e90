"""What keeps a fault of ours from becoming a fault of the host's.

Holds the decorator every hook wears and the record of which troubles are going on. Tells the user
of a trouble once when it begins and once when it is over, the log likewise. Called by the provider.
"""

from __future__ import annotations

import contextvars
import functools
import logging
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..base.errors import OptchatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

logger = logging.getLogger(__name__)

_Method = TypeVar("_Method", bound="Callable[..., Any]")


class ErrorReporter:
    """The troubles of one provider, by kind of error, and the hooks that have each."""

    def __init__(self) -> None:
        self._tell: Callable[[str], object] | None = None
        self._going_on: dict[str, set[str]] = {}
        self._mentioned: set[str] = set()
        self._lock = threading.Lock()

    def tell_through(self, callback: object) -> None:
        """Show messages to the user by this function of the host's.

        Without one they only go to the log.
        """
        self._tell = callback if callable(callback) else None

    def failed(self, hook: str, error: Exception) -> None:
        """Note that a hook failed."""
        with self._lock:
            hooks = self._going_on.setdefault(type(error).__name__, set())
            first_ever, first_here = not hooks, hook not in hooks
            hooks.add(hook)
        if first_here:
            # Our own errors say all there is; of any other the traceback is what a report needs.
            logger.warning(
                "optchat: %s failed: %s",
                hook,
                error,
                exc_info=None if isinstance(error, OptchatError) else error,
            )
        if first_ever:
            self._say(f"Memory: {error}. The chat goes on without it.")

    def worked(self, hook: str) -> None:
        """Note that a hook worked, which ends the troubles it had."""
        if not self._going_on:
            return
        with self._lock:
            had = [kind for kind, hooks in self._going_on.items() if hook in hooks]
            for kind in had:
                self._going_on[kind].discard(hook)
            over = [kind for kind in had if not self._going_on[kind]]
            for kind in over:
                del self._going_on[kind]
        if over:
            logger.warning("optchat: %s works again", hook)
            self._say("Memory works again.")

    def ended_late(self, hook: str, error: Exception | None) -> None:
        """Note how a hook came out that nobody waited for any more."""
        if error is None:
            self.worked(hook)
        else:
            self.failed(hook, error)

    def mention(self, warnings: Iterable[str]) -> None:
        """Tell the user of each of these once."""
        for warning in warnings:
            with self._lock:
                if warning in self._mentioned:
                    continue
                self._mentioned.add(warning)
            logger.warning("optchat: %s", warning)
            self._say(f"Memory: {warning}")

    def _say(self, message: str) -> None:
        if self._tell is None:
            return
        try:
            self._tell(message)
        except Exception:  # the host's own function; where it fails, the log has the message
            logger.debug("optchat: the host could not show a warning", exc_info=True)


def guarded(nothing: Callable[[], Any], within_s: float = 0.0) -> Callable[[_Method], _Method]:
    """A method the host calls.

    Whatever is raised in it stays with us, and the host gets what ``nothing()`` returns.

    ``within_s``: it gets that as well after so many seconds, and the method goes on by itself: a
    disk that hangs for a minute must not hold up the user for a minute. 0: however long it takes.
    The method's object has its ``ErrorReporter`` in an attribute ``troubles``.
    """

    def decorate(method: _Method) -> _Method:
        # wraps also carries the signature over: hosts read it to see which keywords they may pass.
        @functools.wraps(method)
        def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                call = functools.partial(method, self, *args, **kwargs)
                result = (
                    _within(
                        within_s, call, functools.partial(self.troubles.ended_late, method.__name__)
                    )
                    if within_s
                    else call()
                )
            except Exception as error:  # the user's turn goes on without memory
                self.troubles.failed(method.__name__, error)
                return nothing()
            self.troubles.worked(method.__name__)
            return result

        return cast("_Method", guarded)

    return decorate


def _within(
    seconds: float, call: Callable[[], Any], ended_late: Callable[[Exception | None], None]
) -> Any:
    """What a call returns or raises.

    After so many seconds our own error, and the call goes on in its thread.

    ``ended_late``: told, once such a call is over, what was raised in it.
    """
    came: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
    mutex, given_up = threading.Lock(), False

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except Exception as error:  # handed to who waits, or reported below
            failure = error
        with mutex:
            came.put((result, failure))
            late = given_up
        if late:
            ended_late(failure)

    # A copy of the context: hosts keep in it which profile they are at work for.
    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(run,), name="optchat-hook", daemon=True
    )
    try:
        thread.start()
    # the interpreter is ending, or has no thread left to give: then here, for as long as it takes
    except RuntimeError:
        return call()
    try:
        result, failure = came.get(timeout=seconds)
    except queue.Empty:
        with mutex:
            given_up = came.empty()
        if given_up:
            raise OptchatError(
                f"the memory has not answered for {seconds:g} s",
                hint="The disk may be slow or hang; what was said is logged as soon as it answers",
            ) from None
        result, failure = came.get()
    if failure is not None:
        raise failure
    return result


def silence() -> None:
    """The nothing of a hook that returns nothing."""


def empty() -> str:
    """The nothing of a hook that returns text."""
    return ""
