"""What a user can set, as ``config.json`` in the memory directory.

Every default is safe to leave as it is.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .record import KINDS

Kind = Literal["user", "talk", "tool", "echo", "work", "note"]
assert get_args(Kind) == KINDS


class RetainPreFilter(BaseModel):
    """Whether a cheap model is asked, turn by turn, if a turn is worth model-written lines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    model: str = ""
    prompt: str = ""
    min_user_chars: int = Field(default=20, ge=0)


class Settings(BaseModel):
    """All settings with their defaults and ranges. Frozen: a change is a new object."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    view_budget_chars: Annotated[
        int, Field(ge=2_000, le=200_000, description="characters of one full view")
    ] = 16_000
    node_bytes: Annotated[int, Field(ge=128, le=4_096, description="target bytes of one line")] = (
        512
    )
    compact_enabled: Annotated[
        bool, Field(description="run the compactor (off: only free lines are built)")
    ] = True
    summarizer: Annotated[
        Literal["auto", "model", "local"],
        Field(
            description=(
                "auto: the model of auxiliary.optchat_compact if one is named, else local; "
                "model: always a model; local: never"
            )
        ),
    ] = "auto"
    model_kinds: Annotated[
        tuple[Kind, ...], Field(description="kinds whose lines a model writes")
    ] = ("user", "talk", "work", "note")
    compact_jobs: Annotated[int, Field(ge=1, le=8, description="model calls at once")] = 4
    compact_tokens_per_day: Annotated[
        int, Field(ge=0, description="model tokens a day; 0 means no limit")
    ] = 5_000_000
    retain_pre_filter: RetainPreFilter = RetainPreFilter()
    memory_mode: Annotated[
        Literal["hybrid", "context", "tools"],
        Field(description="hybrid: view and tools; context: view only; tools: tools only"),
    ] = "hybrid"
    recall: Annotated[
        Literal["session", "turn"],
        Field(description="show the view once per context, or every turn"),
    ] = "session"
    focus_chars: Annotated[
        int,
        Field(
            ge=0,
            le=200_000,
            description="most that one later turn adds for a question; 0 turns it off",
        ),
    ] = 4_000
    search_tool: Annotated[bool, Field(description="offer optchat_search beside zoom and date")] = (
        False
    )
    platforms_off: Annotated[
        tuple[str, ...], Field(description="platforms where nothing is written or shown")
    ] = ()


_FOUND_CHARS: Final = 80
"""How much of a bad value a warning shows: it is one line of a terminal or a log."""


def read_settings(raw: object) -> tuple[Settings, list[str]]:
    """Settings from decoded JSON, and one warning for each part of it that was not used.

    A bad value falls back to its own default and leaves the others in force: one typing mistake
    must not reset everything.
    """
    if not isinstance(raw, dict):
        return Settings(), ["the settings are not a JSON object; all defaults are in force"]
    values: dict[str, Any] = dict(raw)
    warnings: list[str] = []
    for key in [key for key in values if key not in Settings.model_fields]:
        warnings.append(
            f"{_name(key)}: no such setting, ignored (known: {', '.join(Settings.model_fields)})"
        )
        del values[key]
    try:
        return Settings(**values), warnings
    except ValidationError as error:
        for fault in error.errors():
            key = str(fault["loc"][0])
            if key in values:
                warnings.append(_warning(key, fault["loc"], fault["msg"], fault["input"]))
                del values[key]
    return Settings(**values), warnings


def _warning(key: str, place: tuple[int | str, ...], reason: str, found: object) -> str:
    """What was found where, what may stand there, and what is in force.

    ``reason``, pydantic's own, is only needed inside of a value.
    """
    default = Settings.model_fields[key].get_default()
    # As it would stand in the file: the default of a list is a tuple here.
    shown = json.dumps(default.model_dump() if isinstance(default, BaseModel) else default)
    where, what = _name(".".join(map(str, place))), repr(found)[:_FOUND_CHARS]
    wrong = (
        f"must be {_allowed(key)}, not {what}"
        if len(place) == 1
        else f"{reason} (allowed: {_allowed(key)}; found {what})"
    )
    return f"{where}: {wrong}; the default {shown} is in force"


def _name(key: str) -> str:
    """A key as part of one line, whatever a file holds in its place."""
    return (key if key.isprintable() else repr(key))[:_FOUND_CHARS]


def _allowed(key: str) -> str:
    """What a setting may be, in words."""
    facts = Settings.model_json_schema()["properties"][key]
    if "minimum" in facts:
        return (
            f"{facts['minimum']} to {facts['maximum']}"
            if "maximum" in facts
            else f"{facts['minimum']} or more"
        )
    if "enum" in facts:
        return "one of " + ", ".join(facts["enum"])
    if facts.get("type") == "array":
        return "a list of " + ", ".join(facts["items"].get("enum", ["texts"]))
    return (
        "true or false"
        if facts.get("type") == "boolean"
        else f"an object with {', '.join(RetainPreFilter.model_fields)}"
    )
