"""What the installed hosts write themselves, and whether our table has all of it: a host's next version tells us what it changed."""

import host_sources
import make_hosts
import pytest

from optchat.core import host_phrases
from optchat.core.host_phrases import Mark, Phrase

pytestmark = pytest.mark.hosts


def entries(kind):
    """Every entry of the table, also those in groups."""
    values = [value for name, value in vars(host_phrases).items() if not name.startswith("_")]
    flat = [one for value in values for one in (value if type(value) is tuple else (value,))]
    return [entry for entry in flat if type(entry) is kind]


@pytest.fixture(params=["a", "b"])
def name(request):
    if not make_hosts.is_made(request.param):
        pytest.skip(f"host {request.param} is not installed")
    return request.param


@pytest.mark.parametrize("kind", [Phrase, Mark])
def test_every_entry_is_in_the_source_it_names(name, kind):
    """A phrase that is gone was reworded: the reworded one would be logged as the user's words."""
    gone = []
    for entry in entries(kind):
        where = getattr(entry, name)
        if where and not is_there(name, entry, *where.split(":")):
            gone.append(f"{where} {entry[0]} {entry[-1]}")
    assert gone == []


def is_there(host, entry, file, function):
    words = (entry.words,) if isinstance(entry, Phrase) else (entry.value or entry.key,)
    texts = [
        text.text for text in host_sources.texts(host, file) if function in ("", text.function)
    ]
    return all(any(word in text for text in texts) for word in words if word)


def test_every_entry_names_a_source():
    assert [
        entry for kind in (Phrase, Mark) for entry in entries(kind) if not (entry.a or entry.b)
    ] == []
