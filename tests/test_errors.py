"""Errors.

One line that says what, where and what to do, caught by what a caller already catches.
"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from optchat.base import errors
from optchat.base.errors import (
    AddressError,
    LockTimeoutError,
    OptchatError,
    SettingsError,
    SourceError,
    StoreError,
)

ALL = [OptchatError, StoreError, LockTimeoutError, AddressError, SettingsError, SourceError]


def test_every_error_of_the_module_is_one_of_ours():
    defined = [
        thing
        for thing in vars(errors).values()
        if isinstance(thing, type) and issubclass(thing, BaseException)
    ]
    assert set(defined) == set(ALL)
    assert all(issubclass(thing, OptchatError) for thing in defined)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_says_what_where_and_what_to_do_in_one_line(kind):
    error = kind(
        "cannot write message 7: the disk is full", path="/home/x/main", hint="Free some space"
    )
    assert str(error) == "cannot write message 7: the disk is full (/home/x/main). Free some space"
    assert (error.message, error.path, error.hint) == (
        "cannot write message 7: the disk is full",
        "/home/x/main",
        "Free some space",
    )


@pytest.mark.parametrize("kind", ALL)
def test_what_is_not_known_is_left_out(kind):
    assert str(kind("cannot do it")) == "cannot do it"
    assert str(kind("cannot do it", hint="Try again")) == "cannot do it. Try again"
    assert str(kind("cannot do it", path=Path("/a"))) == "cannot do it (/a)"
    assert str(kind("cannot read /a/b: gone", path=Path("/a/b"))) == "cannot read /a/b: gone", (
        "a path that is named already is not named twice"
    )


@pytest.mark.parametrize("kind", ALL)
def test_an_error_survives_a_process_boundary_and_a_copy(kind):
    error = kind("cannot do it", path="/a", hint="Try again")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind
        assert (str(other), other.message, other.path, other.hint) == (
            str(error),
            error.message,
            error.path,
            error.hint,
        )


@pytest.mark.parametrize(
    ("kind", "known_as"),
    [
        (StoreError, OSError),
        (LockTimeoutError, TimeoutError),
        (LockTimeoutError, StoreError),
        (AddressError, ValueError),
        (SettingsError, ValueError),
        (SourceError, ValueError),
    ],
)
def test_an_error_is_caught_as_what_it_is(kind, known_as):
    with pytest.raises(known_as):
        raise kind("cannot do it")
