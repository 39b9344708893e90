"""Joins what it takes to have lines written by a model: its context and its calls.

Imported only where there is a model, because most processes never need it. Called by
``builder.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..compaction.context import Context
from ..compaction.local import local_node
from ..compaction.model_calls import ModelCalls
from ..compaction.outbound import ready_to_send
from ..compaction.turn_filter import Retain
from ..compaction.write_line import Author
from ..tree.render import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..base.settings import Settings
    from ..compaction.model import Model
    from ..compaction.usage import Usage
    from ..compaction.work import StoreWork
    from ..log.hidden import Hidden
    from ..log.store import Store


def context_of(store: Store, root: Path, model: Model, hidden: Callable[[], Hidden]) -> Context:
    """The view of the past that the model is told."""

    def ready(text: str) -> str:
        return one_line(ready_to_send(text, model.redact))

    return Context(store, root / "context.json", ready, hidden)


def model_calls_of(
    store: Store,
    settings: Settings,
    work: StoreWork,
    model: Model,
    usage: Usage,
    *,
    wake: Callable[[], None],
    stopping: Callable[[], bool],
) -> ModelCalls:
    """The calls in which the model writes its lines of one memory."""
    author = Author(
        model,
        usage,
        node_bytes=settings.node_bytes,
        tokens_per_day=settings.compact_tokens_per_day,
        retain=Retain(
            settings.retain_pre_filter, store.turn_of, count=usage.count, redact=model.redact
        ),
        spare_halves=work.spare_halves,
        stopping=stopping,
    )
    return ModelCalls(
        work,
        author.write,
        lambda job, by: local_node(job, settings.node_bytes, by),
        jobs=settings.compact_jobs,
        spawn=model.spawn,
        wake=wake,
        resting=author.resting,
        told=usage.pause,
    )
