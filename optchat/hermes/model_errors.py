"""What an exception of the host's model call means to us.

That the model cannot be had at all, or that one call failed.

Holds the rules and the wording, with secrets taken out of it. The hosts raise what the libraries of
many providers raise; these are told by their status and their names, since importing those
libraries costs a second. Called by ``model_client.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ..compaction.model import CallError, ModelDownError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..base.errors import OptchatError

CAUSE_CHARS: Final = 300
"""How much of a cause is told.

It is one line of a status, and some endpoints answer with a web page.
"""

_DOWN: Final = {
    401: "its key was refused",
    402: "its account has no credit left",
    403: "it may not be used with this key",
    404: "there is no such model or no such address",
    429: "it is asked too often, or its quota is used up",
}
_NO_MODEL: Final = re.compile(
    r"model.{0,80}(not exist|not found|not supported)|(unknown|no such|invalid|not a valid) model",
    re.IGNORECASE | re.DOTALL,
)
"""Some endpoints answer 400 where they mean 404.

Were it taken for the fault of one text, every text would get a makeshift line.
"""

_UNREACHABLE: Final = frozenset(
    {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "gaierror", "ProxyError"}
)
"""Nothing was sent.

A connection that breaks later is one call's failure: the text may have been what broke it.
"""

_MISSING: Final = frozenset({"ImportError", "ModuleNotFoundError"})
_UNCONFIGURED: Final = frozenset({"AuxiliaryClientUnavailable", "AuthError", "UnscopedSecretError"})
_UNCONFIGURED_TEXT: Final = re.compile(
    r"no LLM provider configured|no API key was found|without credentials", re.IGNORECASE
)


def fault_of(error: Exception, model: str, mask: Callable[[str], str]) -> OptchatError:
    """Our error for one of the host's.

    ``model``: for people. ``mask``: takes secrets out of a text.
    """
    why = _why_down(error)
    cause = _shortened(mask(str(error)) or type(error).__name__)
    if why:
        return ModelDownError(f"cannot use {model}: {why} ({cause})")
    return CallError(f"a call of {model} failed: {cause}")


def masked(text: str, secrets: Iterable[str]) -> str:
    """A text without these secrets in it."""
    for secret in secrets:
        if len(secret) >= 6:  # a placeholder such as "key" stands in half of all error texts
            text = text.replace(secret, "***")
    return text


def _why_down(error: Exception) -> str:
    """Why the model cannot be had; empty where only this call failed."""
    if status := _status(error):
        nameless = status == 400 and _NO_MODEL.search(str(error))
        return _DOWN.get(404 if nameless else status, "")
    names = {type(link).__name__ for link in _chain(error)}
    if names & _UNREACHABLE:
        return "it cannot be reached"
    if "RateLimitError" in names:  # also raised without a status
        return _DOWN[429]
    if names & _MISSING:
        return "a package that Hermes needs for its provider is not installed"
    if names & _UNCONFIGURED or _UNCONFIGURED_TEXT.search(str(error)):
        return "Hermes has no provider or no key for it"
    return ""


def _status(error: Exception) -> int:
    """The HTTP status of an answer that was a refusal; 0 where there was none."""
    for place in (error, getattr(error, "response", None)):
        status: Any = getattr(place, "status_code", None)
        if isinstance(status, int):
            return status
    return 0


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those it was raised from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _shortened(text: str) -> str:
    """A text on one line, cut where it is longer than ``CAUSE_CHARS``."""
    plain = " ".join(text.split())
    return plain if len(plain) <= CAUSE_CHARS else plain[: CAUSE_CHARS - 1] + "…"
