"""The settings as the host's setup and dashboard see them: texts in, ``config.json`` out.

Holds the questions, the change of an answer into JSON, and the merge into the file a user may have
edited by hand. Does not ask anything, ``setup.py`` does, and has no rules about values of its own,
``base/settings.py`` has. Called by the provider and setup.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ..base.errors import SettingsError
from ..config_schema import FIELDS, Field

DIRECTORY: Final = "optchat"
_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def memory_root(hermes_home: str | Path) -> Path:
    """The memory directory of a profile."""
    return Path(hermes_home) / DIRECTORY


def config_file(hermes_home: str | Path) -> Path:
    """Where the settings of a profile are."""
    return memory_root(hermes_home) / "config.json"


def schema() -> list[dict[str, Any]]:
    """The fields the host may ask for, in its own form."""
    return [_host_field(field) for field in FIELDS if field.asked]


def read_config(hermes_home: str | Path) -> dict[str, Any]:
    """What the user has set, unknown keys included; empty where there is no file.

    Raises: SettingsError: the file cannot be read, or is no JSON object. It must not be replaced
    then: it holds somebody's work.
    """
    path = config_file(hermes_home)
    if path.is_symlink():
        raise SettingsError(
            f"cannot use {path}: it is a symbolic link",
            path=path,
            hint="Put the real file in its place",
        )
    try:
        # utf-8-sig: some editors put a byte order mark in front, which json would refuse.
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"cannot read {path}: {error}", path=path, hint="Correct the file, or move it away"
        ) from error
    if not isinstance(raw, dict):
        raise SettingsError(
            f"cannot use {path}: it is not a JSON object",
            path=path,
            hint="Correct the file, or move it away",
        )
    return raw


def native(field: Field, answer: Any) -> Any:
    """The JSON value an answer given as text stands for.

    An answer nobody can read stays as it is, and the check names it.
    """
    if not isinstance(answer, str):
        return answer
    text = answer.strip()
    if field.kind == "number":
        plain = text.replace("_", "").replace(",", "")
        return int(plain) if plain.lstrip("-").isdecimal() else text
    if field.kind == "bool":
        return _WORDS.get(text.lower(), text)
    if field.kind == "json":
        return _list_or_object(text)
    return text


def check(field: Field, value: Any) -> None:
    """See that a value is one ``base/settings.py`` will use.

    Raises:
        SettingsError: it is not; names the key and what is allowed.

    """
    from ..base.settings import read_settings

    _, warnings = read_settings({field.key: value})
    if warnings:
        raise SettingsError(f"cannot set {warnings[0].partition('; the default')[0]}")


def save_config(values: dict[str, Any], hermes_home: str | Path) -> Path:
    """Merge answers into ``config.json`` and return its path.

    Nothing is written where nothing changes.

    Keys we do not know are kept, in the file, and left out of what is merged. A value equal to the
    default is written only over another one: later defaults shall reach those who never chose.

    Raises:
        SettingsError: a value cannot be used, or the file cannot be read; then nothing is written.
        StoreError: the file cannot be written.
    """
    from ..log import files

    known = {field.key: field for field in FIELDS}
    stored = read_config(hermes_home)
    merged = dict(stored)
    for key, answer in values.items():
        if key not in known:
            continue
        value = native(known[key], answer)
        check(known[key], value)
        if key in stored or value != default(known[key]):
            merged[key] = value
    path = config_file(hermes_home)
    if merged != stored:
        files.make_dir(path.parent)
        files.replace_file(path, json.dumps(merged, indent=2, ensure_ascii=False).encode() + b"\n")
    return path


def default(field: Field) -> Any:
    """The value in force when nothing is set."""
    return native(field, field.default)


def as_text(value: Any) -> str:
    """A value as it is shown in a question and may be typed back."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _host_field(field: Field) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "key": field.key,
        "label": field.label,
        "description": field.description,
        "required": False,
    }
    shown["default"] = as_text(default(field))
    if field.choices:
        shown["choices"] = [value for value, _ in field.choices]
    return shown


def _list_or_object(text: str) -> Any:
    """JSON, or for those who do not write JSON, words between commas."""
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return [word for word in (part.strip() for part in text.split(",")) if word]
