"""Lines with a checksum over all of them."""

from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.base.json_line import BadLineError, encode_line, is_damaged, is_whole, load_line

TEXT = st.text(st.characters(codec=None, categories=None), max_size=20)
FIELDS = st.dictionaries(
    TEXT.filter(lambda key: key != "crc"),
    TEXT | st.integers(0, 2**53) | st.lists(TEXT),
    min_size=1,
    max_size=5,
)
SAMPLES = [
    {"i": 3, "kind": "user", "text": 'a "b" \\ ü漢😀\n', "date": "2026-05-01", "session": "s"},
    {"l": 1, "i": 0, "text": "x", "by": "local", "spare": True},
    {"type": "draft", "session": "s", "token": "t", "turns": ["a", {"b": 1}]},
    {"date": "2026-05-01", "day": {"calls": 1, "seconds": 0.25}, "crb": 0},
]


def is_sound(line):
    try:
        fields = load_line(line)
    except BadLineError:
        return False
    return is_whole(line, fields)


@settings(deadline=None)
@given(FIELDS)
def test_a_line_is_whole_as_it_was_written(fields):
    line = encode_line(fields)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert is_sound(line)
    assert is_sound(line.rstrip())
    assert not is_damaged(line, load_line(line))


@pytest.mark.parametrize("fields", SAMPLES)
def test_a_flipped_byte_of_any_line_is_found(fields):
    """Every byte set to every other value: no line, not whole, or the same in other white space."""
    line = encode_line(fields).rstrip()
    for at in range(len(line)):
        for value in {*range(256)} - {line[at]}:
            damaged = line[:at] + bytes([value]) + line[at + 1 :]
            if is_sound(damaged):
                assert load_line(damaged) == load_line(line)


@pytest.mark.parametrize("fields", SAMPLES)
def test_a_checksum_under_a_damaged_name_is_found(fields):
    line = encode_line(fields)
    for name in (b"crb", b"Crc", b"c c", b"\\rc"):
        renamed = line.replace(b'"crc"', b'"%b"' % name)
        assert is_damaged(renamed, load_line(renamed))


def test_a_line_of_another_program_lacks_no_checksum():
    line = b'{"i":0,"kind":"user","text":"x","size":7,"n":12}'
    assert not is_damaged(line, load_line(line))
    assert not is_damaged(b"{}", {})


def test_a_line_written_with_other_white_space_is_whole():
    fields = {"i": 0, "text": "x", "crc": crc32(b'{"i":0,"text":"x"}')}
    line = str(fields).replace("'", '"').encode()
    assert is_whole(line, load_line(line))
    assert not is_whole(line.replace(b"x", b"y"), load_line(line.replace(b"x", b"y")))
