"""A line made on this machine, by this process: free where the source is short enough, local otherwise. Never fails.

Called by the compactor, and for what a model could not write.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .local import leaf_line, merge_lines

if TYPE_CHECKING:
    from ..core.records import Node
    from .job import Job

logger = logging.getLogger(__name__)


def line_here(job: Job, limit: int, by: str = "local") -> Node:
    """The node of a job with a line of at most ``limit`` bytes; ``by``: what it counts as where it is not free."""
    source = job.source
    if len(source) <= limit and len(source.encode()) <= limit:
        return job.node(source, "free")
    try:
        if job.place.level == 0:
            return job.node(leaf_line(job.kind, job.sources[0], limit), by)
        return job.node(merge_lines(job.sources[0], job.sources[1], limit), by)
    except Exception:  # our own bug, met by one text: without this, nothing after that text would ever be built
        logger.exception("optchat: line %s was cut instead of summed up", job.place.address)
        return job.node(source[:limit].encode()[:limit].decode(errors="ignore"), "fallback")
