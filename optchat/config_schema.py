"""The settings as fields of the Hermes dashboard, and as questions of its setup.

Holds names, labels and defaults as plain data: the dashboard runs this file by its path, without
our package and without what it depends on. Does not check values, ``base/settings.py`` does. Called
by the host, and by ``hermes/config_json.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Field(NamedTuple):
    """One setting.

    ``default`` is text, JSON for lists and objects; ``asked`` puts it among the questions of setup.
    """

    key: str
    label: str
    kind: str
    default: str
    description: str
    choices: tuple[tuple[str, str], ...] = ()
    group: str = "Memory"
    asked: bool = False


FIELDS: tuple[Field, ...] = (
    Field(
        "view_budget_chars",
        "Size of the view",
        "number",
        "16000",
        "characters of one full view of the memory, 2000 to 200000",
        asked=True,
    ),
    Field(
        "memory_mode",
        "Mode",
        "select",
        "hybrid",
        "what the model gets",
        choices=(
            ("hybrid", "the view, and tools to look closer"),
            ("context", "the view only"),
            ("tools", "the tools only"),
        ),
        asked=True,
    ),
    Field(
        "summarizer",
        "Lines written by",
        "select",
        "auto",
        "who writes the lines of the view",
        choices=(
            (
                "auto",
                (
                    "the model named in Hermes' auxiliary.optchat_compact; without one, this "
                    "machine, free of cost"
                ),
            ),
            ("model", "always a model; without one named, your main model, at its price"),
            ("local", "always this machine"),
        ),
        group="Summaries",
        asked=True,
    ),
    Field(
        "compact_tokens_per_day",
        "Model tokens a day",
        "number",
        "5000000",
        (
            "model tokens a day for writing lines; past it they wait for the next day, 0 means "
            "no limit"
        ),
        group="Summaries",
        asked=True,
    ),
    Field(
        "platforms_off",
        "Platforms without memory",
        "json",
        "[]",
        "platforms where nothing is written or shown, such as telegram, cron",
        asked=True,
    ),
    Field(
        "recall",
        "Show the view",
        "select",
        "session",
        "how often the whole view is shown",
        choices=(
            ("session", "once in a session, and again after a compression"),
            ("turn", "at every turn"),
        ),
        group="View",
    ),
    Field(
        "focus_chars",
        "Lines for a question",
        "number",
        "4000",
        "most characters a later turn adds for its own question; 0 turns that off",
        group="View",
    ),
    Field(
        "node_bytes",
        "Length of a line",
        "number",
        "512",
        "bytes one line aims at, 128 to 4096",
        group="View",
    ),
    Field(
        "search_tool",
        "Search tool",
        "bool",
        "false",
        "offer optchat_search beside optchat_zoom and optchat_date",
        group="View",
    ),
    Field(
        "compact_enabled",
        "Write lines",
        "bool",
        "true",
        "write lines in the background; off, only short messages get one",
        group="Summaries",
    ),
    Field(
        "model_kinds",
        "Kinds for the model",
        "json",
        '["user", "talk", "work", "note"]',
        "kinds of message whose lines a model writes: user, talk, tool, echo, work, note",
        group="Summaries",
    ),
    Field(
        "compact_jobs",
        "Calls at once",
        "number",
        "4",
        "model calls at the same time, 1 to 8",
        group="Summaries",
    ),
    Field(
        "retain_pre_filter",
        "Filter before the model",
        "json",
        '{"enabled": false, "model": "", "prompt": "", "min_user_chars": 20}',
        "ask a cheap model, turn by turn, whether the turn is worth model-written lines",
        group="Summaries",
    ),
)


def _schema() -> Any:
    from plugins.memory.config_schema import (
        ProviderConfigSchema,
        ProviderField,
        ProviderFieldOption,
    )

    return ProviderConfigSchema(
        name="optchat",
        label="optchat",
        fields=tuple(
            ProviderField(
                key=field.key,
                label=field.label,
                kind=field.kind,
                default=field.default,
                description=field.description,
                options=tuple(
                    ProviderFieldOption(value=value, label=value, description=text)
                    for value, text in field.choices
                ),
                inline=field.asked,
                group=field.group,
            )
            for field in FIELDS
        ),
    )


def __getattr__(name: str) -> Any:
    # Built when asked for: the plugin loader runs this file as well, also where the host's own
    # schema module cannot be imported.
    if name != "CONFIG_SCHEMA":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _schema()
