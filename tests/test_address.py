"""Law 2: ``id+n`` and (level, index) are one to one.

And every address a model may send finds its line, or a hint that does.
"""

from __future__ import annotations

import re

import model
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optchat.base.address import Place, cover, parse_address, place_at
from optchat.base.errors import AddressError

PATIENT = settings(deadline=None)
"""Other work shares the machine: how long an example takes is no property of the code."""

HUGE = 2**48


@st.composite
def places(draw, end=HUGE):
    level = draw(st.integers(0, end.bit_length() - 1))
    return Place(level, draw(st.integers(0, (end >> level) - 1)))


# -- law 2


def test_names_and_nodes_are_one_to_one_for_every_small_log():
    for total in range(70):
        nodes = model.complete(total)
        named = {model.name(node): node for node in nodes}
        assert len(named) == len(nodes), "no two nodes share a name"
        for first in range(total):
            for count in range(1, total + 2):
                place, node = place_at(first, count), named.get(f"{first}+{count}")
                assert (node is None) == (place is None or place.end > total)
                assert node is None or tuple(place) == node


@PATIENT
@given(places())
def test_a_name_leads_back_to_its_node_however_large(place):
    assert place.address == model.name(place)
    assert (place.first, place.end) == model.covered(place)
    assert place.n == place.end - place.first
    assert place_at(place.first, place.n) == place
    assert parse_address(place.address, total=HUGE) == place
    assert parse_address(place.first, place.n, total=HUGE) == place


@PATIENT
@given(st.integers(-5, 2**60), st.integers(-5, 2**60))
def test_a_stretch_that_is_no_node_has_no_place(first, count):
    level = max(count, 1).bit_length() - 1
    exists = first >= 0 and count == 2**level and level <= 48 and first % count == 0
    assert place_at(first, count) == (Place(level, first // count) if exists else None)


@PATIENT
@given(places())
def test_a_node_covers_what_its_two_children_cover(place):
    assert place.parent.first <= place.first < place.end <= place.parent.end
    assert place in place.parent.children
    if place.level == 0:
        with pytest.raises(ValueError, match="leaf"):
            _ = place.children
        return
    older, younger = place.children
    assert (older.first, older.end, younger.end) == (place.first, younger.first, place.end)
    assert older.parent == younger.parent == place


# -- the fewest nodes over a stretch


def test_a_stretch_is_tiled_by_the_fewest_nodes():
    for first in range(34):
        for end in range(first, 67):
            found = cover(first, end)
            assert model.tiles([(p.first - first, p.end - first) for p in found], end - first)
            assert all(model.covered(p) == (p.first, p.end) for p in found)
            assert len(found) == (model.fewest(first, end) if end > first else 0)


@PATIENT
@given(st.integers(0, HUGE), st.integers(0, HUGE))
@example(0, HUGE)
@example(0, 10**12)
@example(HUGE - 1, HUGE)
def test_a_stretch_of_any_size_is_tiled_by_a_handful_of_nodes(one, other):
    first, end = min(one, other), max(one, other)
    found = cover(first, end)
    assert model.tiles([(p.first - first, p.end - first) for p in found], end - first)
    assert len(found) <= 96


# -- addresses as models send them

SPELLINGS = [
    (40, 8),
    ("40", "8"),
    ("40", 8),
    (40, "8"),
    ("40+8",),
    ("40 + 8",),
    (" 40+8 ",),
    ("40+8|",),
    ("40+8|user: do it 7+1|\nnow",),
    ("  40+8|x",),
    ("40+8", 1),
    ("40+8", "nonsense"),
    ("40+8", None),
    (" 40", " 8 "),
    (40, "+8"),
    ("40|", "8"),
    ("040", "08"),
    ("٤٠", "٨"),
    ("40\n", "8\n"),
]


@pytest.mark.parametrize("sent", SPELLINGS)
def test_every_usual_spelling_finds_its_line(sent):
    assert parse_address(*sent, total=100) == Place(3, 5)


@pytest.mark.parametrize(
    "sent",
    [(40,), ("40",), (40, 1), ("40", "1"), ("40+1",), ("40", ""), (40, " "), ("40|user: hi",)],
)
def test_an_id_alone_is_the_message(sent):
    assert parse_address(*sent, total=41) == Place(0, 40)


NONSENSE = [
    "",
    " ",
    "x",
    "-1",
    "+8",
    "40+",
    "40-8",
    "40..47",
    "4 0",
    "40+8+2",
    "40*8",
    "1e3",
    "40.0",
    "²",
    "9" * 19,
    "1+" + "1" * 19,
    "40+8 |x|"[:4] + "x",
    None,
    True,
    False,
    40.5,
    [40],
    {"id": 40},
    b"40",
    "\ud83d",
    "\x00",
    -1,
    10**30,
    10**5000,
    -(10**5000),
    float("nan"),
]


def label(sent):
    """A test's name for what is sent.

    Python refuses to write out an integer of thousands of digits.
    """
    return f"int{sent.bit_length()}" if isinstance(sent, int) else ascii(sent)[:12]


@pytest.mark.parametrize("sent", NONSENSE, ids=label)
def test_what_is_no_address_gets_an_answer_that_names_what_is_one(sent):
    with pytest.raises(AddressError) as refused:
        parse_address(sent, total=60)
    assert "0 to 59" in refused.value.hint
    assert "id+n" in refused.value.hint
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "n",
    ["x", "-8", -8, "8.5", None, True, [8], "8+", 10**30, 10**5000, "9" * 5000, "\ud83d", "1_0"],
    ids=label,
)
def test_what_is_no_count_gets_an_answer_that_says_where_to_find_one(n):
    with pytest.raises(AddressError) as refused:
        parse_address(40, n, total=60)
    assert "view" in refused.value.hint
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_nothing_can_be_opened_in_an_empty_log():
    for sent in (0, "0+1", "nonsense", None):
        with pytest.raises(AddressError, match="nothing is logged yet"):
            parse_address(sent, total=0)


SENT = (
    st.integers(-3, 70)
    | st.integers(0, 10**20)
    | st.builds("{}+{}".format, st.integers(0, 70), st.integers(0, 70))
    | st.builds("{} + {} |x".format, st.integers(0, 10**20), st.integers(0, 10**20))
    | st.text(max_size=8)
    | st.sampled_from(NONSENSE)
)


def outcome(sent, n, total):
    """The line an address names, or the error that says it names none."""
    try:
        return parse_address(sent, n, total=total), None
    except AddressError as error:
        return None, error


@PATIENT
@given(SENT, SENT, st.integers(1, 66) | st.integers(1, HUGE))
def test_whatever_is_sent_the_answer_is_a_line_of_the_log_or_names_one(sent, n, total):
    place, error = outcome(sent, n, total)
    if error is None:
        assert place.end <= total
        assert place.address == model.name(place)
        return
    named = re.findall(r"\d+\+\d+", error.hint)
    for address in named:
        line = parse_address(address, total=total)
        assert line.address == address
        assert line.end <= total
    for low, high in re.findall(r"(\d+) to (\d+)", error.hint):
        assert parse_address(low, total=total).first == 0
        assert parse_address(high, total=total).end == total
    assert named or " to " in error.hint or "view" in error.hint, "an answer says what to do"


def test_every_node_of_a_small_log_has_its_address_and_nothing_else_has_one():
    for total in range(1, 35):
        names = {model.name(node) for node in model.complete(total)}
        asked = {
            (first, count): outcome(first, count, total)[0]
            for first in range(total)
            for count in range(36)
        }
        assert {f"{first}+{count}" for (first, count), place in asked.items() if place} == names


@PATIENT
@given(st.integers(0, 200), st.integers(-9, 300), st.integers(1, 200))
def test_the_line_a_hint_names_holds_the_message_asked_for(first, count, total):
    node = next((n for n in model.complete(total) if model.name(n) == f"{first}+{count}"), None)
    if node is not None:
        assert tuple(parse_address(first, count, total=total)) == node
        return
    with pytest.raises(AddressError) as refused:
        parse_address(first, count, total=total)
    if count < 0:
        assert refused.value.message == f"n = '{count}' is no number of messages"
    elif first >= total:
        assert (
            refused.value.message == f"there is no message {first}: the log holds 0 to {total - 1}"
        )
    else:
        addresses = re.findall(r"\d+\+\d+", refused.value.hint)
        assert len(addresses) == 2
        line, message = (parse_address(address, total=total) for address in addresses)
        assert line.first <= first < line.end
        assert (message.first, message.n) == (first, 1)


def test_a_hint_names_a_line_of_about_the_size_asked_for():
    with pytest.raises(AddressError, match=r"no line has the address 41\+8") as refused:
        parse_address("41+8", total=60)
    assert "40+8" in refused.value.hint
    with pytest.raises(AddressError) as refused:
        parse_address("56+8", total=60)
    assert "56+4" in refused.value.hint
