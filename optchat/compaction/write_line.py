"""One line by a model from beginning to end.

Whether its turn is worth one, what the model writes, and what that has cost.

Runs in the threads of ``model_calls.py``, several at once. Knows neither the order of lines nor
what becomes of one that failed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .job import Outcome
from .model import RestError
from .summarizer import write_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..base.address import Place
    from .job import Job
    from .model import Model, Reply, Said
    from .turn_filter import Retain
    from .usage import Usage


class Author:
    """Has lines written by one model, within a day's budget of tokens."""

    def __init__(
        self,
        model: Model,
        usage: Usage,
        *,
        node_bytes: int,
        tokens_per_day: int,
        retain: Retain,
        spare_halves: Callable[[Job], set[Place]],
        stopping: Callable[[], bool],
    ) -> None:
        """``spare_halves``: those of a merge's halves that hold nothing worth a model's words."""
        self._model, self._usage, self._retain = model, usage, retain
        self._node_bytes, self._tokens_per_day = node_bytes, tokens_per_day
        self._spare_halves, self._stopping = spare_halves, stopping

    def resting(self) -> str:
        """Why no call may be made now, or ""."""
        if self._usage.allows(self._tokens_per_day):
            return ""
        return (
            f"today's {self._tokens_per_day:,} tokens are spent (compact_tokens_per_day); lines "
            "go on being written tomorrow"
        )

    def write(self, job: Job, context: str) -> Outcome:
        """One attempt at one line.

        Raises:
            ModelDownError: the model cannot be had.
            CallError: a call failed.
            RestError: the budget is spent or the compactor stops.

        """
        if job.known is not None or not self._is_worth_it(job):
            return Outcome(spare=True)
        written = write_line(
            job, context, self._asking("line", job.place), self._node_bytes, self._model.redact
        )
        if written.text:
            self._usage.count(lines=1)
        return Outcome(written.text, reasons=written.refused, final=written.final)

    # -- inside

    def _is_worth_it(self, job: Job) -> bool:
        """A leaf as its turn is; a merge unless it only holds what is not."""
        if job.place.level == 0:
            return self._retain.worth(job.place.index, self._asking("retain", job.place))
        if job.place.level > 1:
            return True  # what its halves are, their own lines say
        spare = self._spare_halves(job)
        return not all(
            half in spare or self._retain.known(half.index) is False for half in job.place.children
        )

    def _asking(self, what: str, place: Place) -> Callable[..., Reply]:
        """A way to ask the model that is counted, and stops when the day's tokens are spent."""

        def ask(said: Sequence[Said], model: str = "") -> Reply:
            if self._stopping() or self.resting():
                raise RestError("no call is made now")
            began = time.monotonic()
            reply, failed = None, None
            try:
                reply = self._model.ask(said, model)
            except Exception as error:
                failed = error
                raise
            finally:
                self._usage.note(
                    what,
                    model=model or self._model.name,
                    sent=said,
                    seconds=time.monotonic() - began,
                    reply=reply,
                    place=place,
                    error=failed,
                )
            return reply

        return ask
