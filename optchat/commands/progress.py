"""Progress bars on stderr, when that is a terminal; silence otherwise.

Holds one class. Called by the command line, and by the memory through it while an index is rebuilt.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bars:
    """Call it with what is being done, how much is done, and how much there is.

    One bar appears for each "what".
    """

    def __init__(self) -> None:
        self._on = sys.stderr is not None and sys.stderr.isatty()
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bars away, so that what is printed next stands on a clean line."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` is done; a total of 0 means it is not known."""
        if not self._on:
            return
        if self._progress is None:
            self._progress = _start()
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total or None)
        self._progress.update(self._tasks[what], completed=done, total=total or None)


def _start() -> Progress:
    # Imported here: rich costs a tenth of a second, and most commands never show a bar.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.start()
    return progress
