"""The errors optchat raises.

One base class, and few subclasses chosen by what a caller does about them.

Every message is act + thing + cause; ``hint`` is what the reader can do. Damage on disk is no error
here: it is stepped over and reported by ``Memory.check``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike


class OptchatError(Exception):
    """Anything optchat says went wrong."""

    def __init__(
        self, message: str, *, path: str | PathLike[str] | None = None, hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint

    def __str__(self) -> str:
        """One line: what, where, what to do."""
        where = (
            f" ({self.path})"
            if self.path is not None and str(self.path) not in self.message
            else ""
        )
        return f"{self.message}{where}" + (f". {self.hint}" if self.hint else "")


class StoreError(OptchatError, OSError):
    """A file could not be read or written.

    Nothing was acknowledged: the same call may be made again.
    """

    def __init__(
        self, message: str, *, path: str | PathLike[str] | None = None, hint: str = ""
    ) -> None:
        OptchatError.__init__(self, message, path=path, hint=hint)

    def __str__(self) -> str:
        """As the base class: OSError would print its own arguments instead."""
        return OptchatError.__str__(self)


class LockTimeoutError(StoreError, TimeoutError):
    """Another process held the lock for longer than we may wait."""


class AddressError(OptchatError, ValueError):
    """An ``id+n`` that names no line or message; the hint says which one to use instead."""


class SettingsError(OptchatError, ValueError):
    """A setting that cannot be used; names the key and the allowed values."""


class SourceError(OptchatError, ValueError):
    """A file given to ``import`` is not in a form that can be read."""
