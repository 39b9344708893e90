"""Model calls in flight.

Which line the model writes next, how one that fails is tried again, and when everything pauses.

Two kinds of failure are kept apart. A line that the model cannot write is tried a few times and
then gets its local line, or the tree would stop there for good. A model that cannot be had is no
line's fault: everything waits and looks again now and then, or an hour without a connection would
leave an hour of fallbacks. Knows neither prompts nor files; starts threads, reads a clock.
"""

from __future__ import annotations

import logging
import queue
import re
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from ..base.errors import OptchatError
from .model import CallError, ModelDownError, RestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..base.address import Place
    from ..base.record import Node
    from ..log.rows import Ready
    from .job import Job, Outcome
    from .work import StoreWork

TRIES: Final = 5
"""Attempts at one line; each is one conversation of at most five calls."""
GIVE_UP_AFTER_REFUSALS: Final = 20
"""After so many attempts in a row that gave no line, there is one for each line until one does.

A model that cannot do it at all would else spend a day's tokens on two dozen lines.
"""
RETRY_S: Final = 10.0
"""Between two attempts at one line."""
PAUSES_S: Final = (10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
"""Between two looks for a model that was down."""
UNBUILT_MAX: Final = 8
"""A message's line is begun while fewer lines before it are missing.

With more of the recent past unknown, "do it" means nothing.
"""
LOST_S: Final = 3_600.0
"""A line that has not come back by then never will.

Its thread is given up, and with it its place among those in flight. Five answers of a slow model on
a slow machine take half of that.
"""
OUTAGE_AFTER_LINES: Final = 3
"""So many lines failing for the first time, one after the other with no success between them, is no
line's fault.
"""
AGAIN_S: Final = 3_600.0
"""Between two looks for fallbacks that can still be written anew.

The first is as late: a process that is started for a minute, fifty times a day, would ask fifty
times for the same line.
"""
FALLBACK_RETRIES: Final = 3
"""Attempts at one fallback.

One that stands at the log's end for months would else be paid for every hour of them.
"""
TELL_S: Final = 3_600.0
"""Between two warnings of one cause.

An endpoint that now and then refuses for some seconds would else fill the host's log.
"""

logger = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """Nodes whose line a model is to write and that can be built, children before parents and old
    before new.

    ``front``: the first message without a line, whatever it costs. ``cheap``: the first messages
    whose line costs nothing and is missing all the same.
    """

    nodes: list[Ready]
    front: int
    cheap: list[int]


class _Call(NamedTuple):
    job: Job
    began: float


class _Failed(NamedTuple):
    tries: int
    due: float


class ModelCalls:
    """Lines being written by the model, at most ``jobs`` at once.

    All methods are for the compactor's own thread.
    """

    def __init__(
        self,
        work: StoreWork,
        write: Callable[[Job, str], Outcome],
        local: Callable[[Job, str], Node],
        *,
        jobs: int,
        spawn: Callable[[Callable[[], None], str], None],
        wake: Callable[[], None],
        resting: Callable[[], str],
        told: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``write`` blocks until a line is written; ``local(job, by)`` makes one here.

        ``wake`` says that a call is back.

        ``resting``: why no call may be made now, or ""; ``told``: hears why everything pauses, and
        "" when it goes on.
        """
        self._work, self._write, self._local = work, write, local
        self._jobs, self._spawn, self._wake = jobs, spawn, wake
        self._resting, self._told, self._now = resting, told, now
        self._in_flight: dict[Place, _Call] = {}
        self._failed: dict[Place, _Failed] = {}
        self._again: dict[Place, Ready] = {}  # fallbacks to be written anew
        self._retrying: set[Place] = set()  # those of them in flight
        self._failed_retries: dict[
            Place, int
        ] = {}  # attempts at those of them that stay as they are
        self._looked_again = now()
        self._back: queue.SimpleQueue[tuple[_Call, Outcome | BaseException]] = queue.SimpleQueue()
        self._strangers: set[Place] = set()
        self._pauses = 0  # in a row
        self._until = 0.0
        self._paused_at = 0.0
        self._warned: dict[str, float] = {}  # causes of pauses, and when they were told
        self._said_so = False  # whether this pause was
        self.paused = ""
        self.last_error = ""
        self.refused = 0
        self._refused_in_a_row = 0

    @property
    def busy(self) -> bool:
        """Whether lines are being written, or will be tried again without anything else
        happening.
        """
        return bool(self._in_flight or (self._failed and not self.paused))

    def due_in(self) -> float:
        """Seconds until there is something to do though nothing was logged.

        A call is back, or a wait is over. Costs nothing.
        """
        if not self._back.empty():
            return 0.0
        times = [call.began + LOST_S for call in self._in_flight.values()]
        room = self._room()
        if room > 0 and self.paused:
            times.append(self._until)
        elif room > 0:
            times += [failed.due for failed in self._failed.values()]
            times.append(self._looked_again + AGAIN_S)
        return max(0.0, min(times) - self._now())

    def collect(self) -> list[Node]:
        """The lines that are ready to be kept."""
        return [node for call, came in self._landed() if (node := self._settle(call, came))]

    def start(self) -> None:
        """Begin as many calls as may be."""
        now = self._now()
        reason = self._resting()
        if reason and (reason != self.paused or now >= self._until):
            self._pause(reason, now)
        if self.paused and now < self._until:
            return
        room = self._room()
        if room <= 0:
            return
        if now - self._looked_again >= AGAIN_S:
            self._looked_again = now
            found = self._work.fallbacks()
            self._failed_retries = {
                ready.place: self._failed_retries[ready.place]
                for ready in found
                if ready.place in self._failed_retries
            }
            self._again = {
                ready.place: ready
                for ready in found
                if self._failed_retries.get(ready.place, 0) < FALLBACK_RETRIES
            }
        chosen, front = self._choose(room, now)
        if self.paused and not chosen:
            # Nothing to ask it: whether it is back shows with the next line.
            self._until = now + (RETRY_S if self._failed else PAUSES_S[-1])
        try:
            for job in self._work.jobs(chosen):
                self._start(job, self._work.context(job, min(front, job.place.first)))
        # the host's own masking fails: nothing may be sent, and lines made here must go on being
        # built
        except CallError as error:
            self._pause(str(error), now)

    # -- inside

    def _room(self) -> int:
        """How many more calls may be begun.

        In a pause one that looks, beside those that were out before it.
        """
        free = self._jobs - len(self._in_flight)
        return (
            min(free, 1 - sum(map(self._is_probe, self._in_flight.values())))
            if self.paused
            else free
        )

    def _is_probe(self, call: _Call) -> bool:
        """Whether a call was begun in this pause.

        What was out before it says nothing of how things are now.
        """
        return call.began > self._paused_at

    def _choose(self, room: int, now: float) -> tuple[list[Ready], int]:
        """The next nodes that may be begun, and the first message without a line."""
        waiting = self._work.waiting(len(self._in_flight) + len(self._failed) + UNBUILT_MAX + room)
        there = {ready.place for ready in waiting.nodes}
        for place in [
            place
            for place, failed in self._failed.items()
            if failed.due <= now and place not in there
        ]:
            del self._failed[place]  # another process has built it
        chosen = self._free(waiting, now)[:room]
        return [*chosen, *self._to_write_anew(room - len(chosen))], waiting.front

    def _free(self, waiting: Waiting, now: float) -> list[Ready]:
        """What of this may be begun.

        Not being written, not waiting after a failure, and not too far ahead; in its order.
        """
        free: list[Ready] = []
        leaves = 0
        for ready in waiting.nodes:
            place = ready.place
            held = place in self._in_flight or (
                place in self._failed and self._failed[place].due > now
            )
            too_far = (
                not place.level and leaves + bisect_left(waiting.cheap, place.first) >= UNBUILT_MAX
            )
            if not held and not too_far:
                free.append(ready)
            leaves += not place.level
        # to ask again what failed would tell nothing of the model: it may be the line's own fault
        if self.paused:
            free.sort(key=lambda ready: self._tries(ready.place))
        return free

    def _to_write_anew(self, room: int) -> list[Ready]:
        """Fallbacks that are tried once more, where calls are left for them."""
        self._retrying = {place for place in self._retrying if place in self._in_flight}
        chosen: list[Ready] = []
        while self._again and len(chosen) < room:
            place, ready = self._again.popitem()
            self._retrying.add(place)
            chosen.append(ready)
        return chosen

    def _tries(self, place: Place) -> int:
        return self._failed.get(place, _Failed(0, 0.0)).tries

    def _start(self, job: Job, context: str) -> None:
        call = _Call(job, self._now())

        def run() -> None:
            try:
                came: Outcome | BaseException = self._write(job, context)
            except (
                BaseException
            ) as error:  # whatever ends the thread, the lane must hear of it or is lost for good
                came = error
            self._back.put((call, came))
            self._wake()

        self._in_flight[job.place] = call
        try:
            self._spawn(run, "optchat-line")
        except BaseException:
            del self._in_flight[job.place]
            raise

    def _landed(self) -> list[tuple[_Call, Outcome | BaseException]]:
        landed: list[tuple[_Call, Outcome | BaseException]] = []
        while not self._back.empty():
            call, came = self._back.get()
            if self._in_flight.get(call.job.place) is call:  # else it was given up long ago
                del self._in_flight[call.job.place]
                landed.append((call, came))
        now = self._now()
        for call in [call for call in self._in_flight.values() if now - call.began > LOST_S]:
            del self._in_flight[call.job.place]
            landed.append((call, CallError(f"the model has not answered for {LOST_S:.0f} s")))
        return landed

    def _settle(self, call: _Call, came: Outcome | BaseException) -> Node | None:
        """What one attempt came to: a line to keep, or another attempt later."""
        job, now = call.job, self._now()
        old = bool(self.paused) and not self._is_probe(call)
        if isinstance(came, RestError):
            return None
        if isinstance(came, ModelDownError):
            # or four calls that were out when it went down would put the first look off like four
            # looks in vain
            if not old:
                self._pause(str(came), now)
            return None
        if isinstance(came, BaseException):
            return self._failure(job, came, now, old=old)
        if came.spare:  # perhaps without a call: it tells nothing of the model
            self._failed.pop(job.place, None)
            return self._local(job._replace(spare=True), "local")
        if not old:
            self._resume()
        if came.text:
            self._failed.pop(job.place, None)
            self.last_error, self._refused_in_a_row = "", 0
            return job.node(came.text, "model")
        self.refused += 1
        self._refused_in_a_row += 1
        self.last_error = (
            f"line {job.place.address}: "
            f"{'; '.join(came.reasons) or 'the model wrote nothing that could be kept'}"
        )
        return self._retry_or_fall_back(job, now, final=came.final)

    def _failure(self, job: Job, error: BaseException, now: float, *, old: bool) -> Node | None:
        if not isinstance(error, OptchatError):
            logger.error("optchat: writing line %s failed", job.place.address, exc_info=error)
        self.last_error = f"line {job.place.address}: {str(error) or type(error).__name__}"
        if (
            job.place not in self._failed
        ):  # one that failed while others did not says nothing of the model
            self._strangers.add(job.place)
        if not old and (len(self._strangers) >= OUTAGE_AFTER_LINES or self.paused):
            self._pause(
                (
                    "the model answers no call any more; the last: "
                    f"{str(error) or type(error).__name__}"
                ),
                now,
            )
        return self._retry_or_fall_back(job, now, final=False)

    def _retry_or_fall_back(self, job: Job, now: float, *, final: bool) -> Node | None:
        if job.place in self._retrying:  # it keeps its fallback
            self._failed_retries[job.place] = (
                FALLBACK_RETRIES if final else self._failed_retries.get(job.place, 0) + 1
            )
            return None
        tries = self._tries(job.place) + 1
        if tries < (TRIES if self._refused_in_a_row < GIVE_UP_AFTER_REFUSALS else 1) and not final:
            self._failed[job.place] = _Failed(tries, now + RETRY_S)
            return None
        self._failed.pop(job.place, None)
        logger.info(
            "optchat: line %s was made here after %d attempts by the model: %s",
            job.place.address,
            tries,
            self.last_error,
        )
        return self._local(job, "fallback")

    def _pause(self, reason: str, now: float) -> None:
        if not self.paused:
            # What an endpoint says of it may be different each time.
            cause = re.split("[(;]", reason, maxsplit=1)[0]
            if now - self._warned.get(cause, -TELL_S) >= TELL_S:
                self._warned[cause] = now
                logger.warning("optchat: lines wait for the model: %s", reason)
                self._said_so = True
        self.paused, self._paused_at = reason, now
        self._until = now + PAUSES_S[min(self._pauses, len(PAUSES_S) - 1)]
        self._pauses += 1
        self._told(reason)

    def _resume(self) -> None:
        self._strangers.clear()
        self._pauses = 0
        if self.paused:
            logger.log(
                logging.WARNING if self._said_so else logging.DEBUG,
                "optchat: the model answers again; lines go on being written",
            )
            self.paused, self._said_so = "", False
            self._told("")
