"""What a check has found so far: lists that stay short whatever is wrong.

Used by ``check.py`` and those it sends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_SHOWN: Final = 50
"""Findings of one kind that are listed one by one; the rest are counted."""


class Findings:
    """A list that stays short."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.more = 0

    def add(self, line: str) -> None:
        """Note one finding."""
        if len(self.lines) < _SHOWN:
            self.lines.append(line)
        else:
            self.more += 1

    def listed(self) -> list[str]:
        """All findings, the uncounted ones summed up."""
        return [*self.lines, f"and {self.more} more"] if self.more else self.lines


@dataclass(frozen=True, slots=True)
class Report:
    """``damage`` to the truth.

    ``disagreements`` of derived files with it; ``notes`` on what is odd but harmless.
    """

    damage: Findings = field(default_factory=Findings)
    disagreements: Findings = field(default_factory=Findings)
    notes: Findings = field(default_factory=Findings)
