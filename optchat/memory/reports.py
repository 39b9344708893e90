"""What a memory tells of itself: the shapes of its status, its check and what was done to it.

All of it can be written as JSON, which the command line does with ``--json``. Made by ``memory/``,
read by ``commands/output.py`` and ``hermes/status.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from ..compaction.usage import ModelReport


class BuilderReport(TypedDict):
    """How lines come to be.

    ``summarizer``: who writes them, ``local`` or ``model NAME``. ``compactor``: where they are
    built: ``this process``, ``another process`` or why nowhere. ``last_error``: of building or of a
    model, "" for none. ``model``: what the model has cost and has still to do.
    """

    summarizer: str
    compactor: str
    last_error: str
    model: ModelReport


class Status(BuilderReport):
    """What a user wants to know about a memory.

    ``root``: its directory. ``messages``, ``sessions``: how many. ``first_date``, ``last_append``:
    dates of the first and the last message, "" for none. ``kept_aside``: messages that wait for the
    lock and are not in the log yet. ``lines_built``: lines there are; ``lines_ready``: lines that
    could be built now. ``full_text_behind``: messages that cannot be searched yet. ``view_lines``,
    ``view_chars``, ``view_budget_chars``: lines and characters of the view, and characters it may
    have. ``bytes_on_disk``: by part. ``warnings``: what is wrong, each with what to do.
    """

    root: str
    messages: int
    sessions: int
    first_date: str
    last_append: str
    kept_aside: int
    lines_built: int
    lines_ready: int
    full_text_behind: int
    view_lines: int
    view_chars: int
    view_budget_chars: int
    bytes_on_disk: dict[str, int]
    warnings: list[str]


class CopyReport(TypedDict):
    """Messages ``first`` to ``last`` of ``session`` repeat ``of`` to ``of_last`` of ``of_session``.

    ``in_sight``: how many of them a line still says.
    """

    first: int
    last: int
    of: int
    of_last: int
    session: str
    of_session: str
    in_sight: int


class CheckReport(TypedDict):
    """What a check found in so many ``messages`` and ``nodes``, the lines of the tree.

    ``damage`` to what was said; ``disagreements`` of what is derived from it; ``notes`` on what is
    odd and harmless, each a sentence. ``copies``: what was logged twice.
    """

    messages: int
    nodes: int
    damage: list[str]
    disagreements: list[str]
    notes: list[str]
    copies: list[CopyReport]


class RedactReport(TypedDict):
    """What redacting message ``id`` did.

    ``already``: it was redacted before. ``lines``: lines of the tree that went with it.
    ``same_words``: other messages that say the same. ``left_in``: derived files that could not be
    rid of the words, by name.
    """

    id: int
    already: bool
    lines: int
    same_words: list[int]
    left_in: list[str]


class HideReport(TypedDict):
    """``hidden``: messages now out of sight; ``already``: those that were; ``lines``: lines that
    are built anew for it.
    """

    hidden: int
    already: int
    lines: int


class ShowReport(TypedDict):
    """``shown``: messages in sight again; ``lines``: lines that are built anew for it."""

    shown: int
    lines: int
