"""Settings.

Every default is safe, a bad value costs that value alone, and the warning says what would be good.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from optchat.base.record import KINDS
from optchat.base.settings import RetainPreFilter, Settings, read_settings

PATIENT = settings(deadline=None)
"""Other work shares the machine: how long an example takes is no property of the code."""

DEFAULTS = {
    "view_budget_chars": 16_000,
    "node_bytes": 512,
    "compact_enabled": True,
    "summarizer": "auto",
    "model_kinds": ["user", "talk", "work", "note"],
    "compact_jobs": 4,
    "compact_tokens_per_day": 5_000_000,
    "retain_pre_filter": {"enabled": False, "model": "", "prompt": "", "min_user_chars": 20},
    "memory_mode": "hybrid",
    "recall": "session",
    "focus_chars": 4_000,
    "search_tool": False,
    "platforms_off": [],
}
RANGES = {"view_budget_chars": (2_000, 200_000), "node_bytes": (128, 4_096), "compact_jobs": (1, 8)}
CHOICES = {
    "summarizer": ["auto", "model", "local"],
    "memory_mode": ["hybrid", "context", "tools"],
    "recall": ["session", "turn"],
}
BAD = {
    "view_budget_chars": [1_999, 200_001, "many", None, [], 16_000.5, 10**30, -1],
    "node_bytes": [127, 4_097, "", {}],
    "compact_enabled": ["perhaps", 2, None, []],
    "summarizer": ["Auto", "", 1, None],
    "model_kinds": ["user", ["user", "thought"], [1], None, {"user": 1}],
    "compact_jobs": [0, 9, -3],
    "compact_tokens_per_day": [-1, "lots"],
    "retain_pre_filter": [
        True,
        {"enabled": "perhaps"},
        {"min_user_chars": -1},
        {"colour": "red"},
        [],
    ],
    "memory_mode": ["all", None],
    "recall": ["always", 0],
    "focus_chars": [-1, 200_001, None],
    "search_tool": ["x", 7],
    "platforms_off": ["telegram", [1], None],
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def test_the_defaults_are_those_the_manual_names():
    assert json.loads(Settings().model_dump_json()) == DEFAULTS
    assert read_settings({}) == (Settings(), [])
    assert read_settings(DEFAULTS) == (Settings(), [])


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in BAD.items() for value in values]
)
def test_a_bad_value_is_named_and_falls_back_while_the_others_stay_in_force(key, value):
    other = "node_bytes" if key != "node_bytes" else "compact_jobs"
    good = {other: 200 if other == "node_bytes" else 2, "unheard_of": 1}
    found, warnings = read_settings({key: value, **good})
    assert getattr(found, key) == getattr(Settings(), key)
    assert getattr(found, other) == good[other]
    assert len(warnings) == 2
    assert warnings[0].startswith("unheard_of: no such setting")
    assert warnings[1].split(":")[0].split(".")[0] == key
    assert "the default" in warnings[1]


@pytest.mark.parametrize("key", [*RANGES, *CHOICES])
def test_a_warning_names_the_whole_range(key):
    warning = read_settings({key: "nonsense"})[1][0]
    for bound in RANGES.get(key, CHOICES.get(key)):
        assert str(bound) in warning


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("platforms_off", "telegram"),
        ("view_budget_chars", 5),
        ("memory_mode", "both"),
        ("search_tool", "x"),
    ],
)
def test_a_warning_speaks_of_the_file_and_not_of_the_types_of_this_program(key, value):
    warning = read_settings({key: value})[1][0]
    assert f"not {value!r}; the default {json.dumps(DEFAULTS[key])} is in force" in warning
    assert "Input" not in warning
    assert "tuple" not in warning


@pytest.mark.parametrize(("key", "bounds"), RANGES.items())
def test_the_ends_of_a_range_belong_to_it(key, bounds):
    for value in bounds:
        found, warnings = read_settings({key: value})
        assert (getattr(found, key), warnings) == (value, [])


def test_a_bad_part_of_a_setting_is_named_with_its_own_name():
    warning = read_settings({"retain_pre_filter": {"enabled": True, "min_user_chars": -1}})[1][0]
    assert warning.startswith("retain_pre_filter.min_user_chars: ")
    warning = read_settings({"model_kinds": ["user", "thought"]})[1][0]
    assert warning.startswith("model_kinds.1: ")
    assert all(kind in warning for kind in KINDS)


@pytest.mark.parametrize("raw", [None, 1, "x", [], True, [{}]])
def test_what_is_no_object_leaves_all_defaults_in_force_and_says_so(raw):
    assert read_settings(raw) == (
        Settings(),
        ["the settings are not a JSON object; all defaults are in force"],
    )


@PATIENT
@given(st.dictionaries(st.sampled_from(sorted(DEFAULTS)) | st.text(max_size=8), JSON, max_size=8))
def test_whatever_json_says_settings_come_of_it_and_each_warning_is_one_line(raw):
    before = json.dumps(raw)
    found, warnings = read_settings(raw)
    assert json.dumps(raw) == before, "what was read is not changed: it may be written back"
    assert Settings.model_validate(found.model_dump()) == found
    assert all(warning.isprintable() and len(warning) < 600 for warning in warnings)
    unused = [key for key in raw if key not in DEFAULTS or read_settings({key: raw[key]})[1]]
    assert len(warnings) == len(unused)


def test_a_warning_does_not_repeat_a_long_value_or_a_long_name():
    for warning in read_settings({"summarizer": "x" * 10_000, "y" * 10_000: 1, "two\nlines": 1})[1]:
        assert len(warning) < 600
        assert warning.isprintable()


def test_settings_do_not_change_and_accept_nothing_unknown():
    with pytest.raises(ValidationError):
        Settings().view_budget_chars = 2_000
    with pytest.raises(ValidationError):
        Settings(view_budget=1)
    with pytest.raises(ValidationError):
        RetainPreFilter(on=True)


def test_every_setting_says_what_it_is_for():
    described = [name for name, field in Settings.model_fields.items() if field.description]
    assert set(Settings.model_fields) - set(described) <= {"retain_pre_filter"}
