"""A clock for tests.

In a module of its own: two files are named conftest, and only one of them can be imported by that
name.
"""

from datetime import UTC, datetime, timedelta


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self):
        self.now = datetime(2026, 5, 1, 9, 0, 0, tzinfo=UTC)

    def __call__(self):
        return self.now

    def forward(self, **steps):
        self.now += timedelta(**steps)
