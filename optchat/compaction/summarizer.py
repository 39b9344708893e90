"""One line by a model.

One conversation of at most five answers, until a line comes that may be kept.

Knows neither the tree nor the calls' cost; what it is given to ask with counts and may refuse.
Called by ``write_line.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..tree.render import one_line
from .local import tag_of
from .model import Said
from .outbound import disarm, ready_to_send
from .plain import clip
from .prompts import AGAIN, NO_LINE, SYSTEM, request
from .reply import line_in
from .validate import MOST_OVER, SourceText, fault, tagged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .job import Job
    from .model import Reply
    from .validate import Fault

MOST_TRIES: Final = 5
"""Answers in one conversation. Models that did not keep to the length by then never did."""

_RAW_CHARS: Final = 65_536
"""Of a source as it is in the log, what facts are looked up in: both ends.

A model has seen no more, and in 50 MB every number stands.
"""


class Written(NamedTuple):
    """What came of one conversation.

    ``text``: the line, or "" where none came that may be kept. ``tries``: answers asked for.
    ``refused``: why each that was refused was. ``final``: the model was told what it had invented
    and invented again; asking once more would be in vain.
    """

    text: str
    tries: int
    refused: tuple[str, ...] = ()
    final: bool = False


def write_line(
    job: Job,
    context: str,
    ask: Callable[[Sequence[Said]], Reply],
    limit: int,
    redact: Callable[[str], str],
) -> Written:
    """The line of one node, of about ``limit`` bytes and never more than twice as many.

    ``context``: what is told of the past, ready to send, one line a row. ``redact``: masks what the
    host knows to be secret.

    Raises:
        ModelDownError, RestError: as ``ask`` does.
        CallError: as ``ask`` does, or ``redact`` failed.
    """
    kind = disarm(tag_of(job.kind)) if job.place.level == 0 else ""
    sent = tuple(ready_to_send(source, redact) for source in job.sources)
    ground = SourceText(kind, sent, tuple(map(_seen, job.sources)), context, limit)
    said = [Said("system", SYSTEM), Said("user", request(context, kind, sent, limit))]
    best = ""
    refused: list[str] = []
    told_of_inventions = False
    for tries in range(1, MOST_TRIES + 1):
        line = _line(ask(tuple(said)), kind, redact)
        found = fault(line, ground)
        if found is None:
            return Written(line, tries, tuple(refused))
        refused.append(_reason(found, line))
        if found.usable and (not best or len(line.encode()) < len(best.encode())):
            best = line
        if found.why == "unknown":
            if told_of_inventions:
                return Written(best, tries, tuple(refused), final=not best)
            told_of_inventions = True
        said += _again(found, line, limit)
    return Written(best, MOST_TRIES, tuple(refused))


def _line(reply: Reply, kind: str, redact: Callable[[str], str]) -> str:
    """The line of an answer, as it would be kept.

    Masked once more, because a secret may reach a model by ways we do not see.
    """
    answer: str | None = reply.text  # an endpoint may give none, whatever its type says
    line = one_line(ready_to_send(line_in(answer or ""), redact))
    return tagged(" ".join(line.split()), kind) if kind else " ".join(line.split())


def _again(found: Fault, line: str, limit: int) -> tuple[Said, Said]:
    """The refused line and what is wrong with it.

    Not the whole answer: 50 KB of it would be sent four times more.
    """
    size, cut = len(line.encode()), clip(line, limit)
    wish = AGAIN[found.why].format(detail=found.detail, size=size, limit=limit, cut=cut)
    return Said("assistant", clip(line, MOST_OVER * limit) or NO_LINE), Said("user", wish)


def _reason(found: Fault, line: str) -> str:
    """For people: short, and with no more of the line than what it invented."""
    return (
        f"{found.why}: {len(line.encode())} bytes"
        if found.why == "long"
        else f"{found.why}: {found.detail}".removesuffix(": ")
    )


def _seen(source: str) -> str:
    return (
        source
        if len(source) <= 2 * _RAW_CHARS
        else f"{source[:_RAW_CHARS]}\n{source[-_RAW_CHARS:]}"
    )
