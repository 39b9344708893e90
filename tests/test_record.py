"""Law 10, and what a line of a day file may hold: ours, another program's, or damage."""

from __future__ import annotations

import dataclasses
import json

import model
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optchat.base import record
from optchat.base.json_line import BadLineError, clean
from optchat.base.record import (
    Entry,
    Message,
    Node,
    decode_message,
    decode_node,
    encode_message,
    encode_node,
)

PATIENT = settings(deadline=None)
"""Other work shares the machine: how long an example takes is no property of the code."""

ANY = st.text(st.characters(codec=None, categories=None), max_size=60)
"""All of Unicode, lone surrogates and unassigned code points included."""

HALVES = st.text(st.sampled_from("\ud83d\ude00\udfff\ud800a😀\ufffd"), max_size=12)
COUNTS = st.integers(0, 2**48 - 1)
TEXTS = [field.name for field in dataclasses.fields(Entry) if field.name != "unshown"]


@st.composite
def messages(draw):
    return Message(
        id=draw(COUNTS), unshown=draw(st.booleans()), **{name: draw(ANY | HALVES) for name in TEXTS}
    )


@st.composite
def nodes(draw):
    level = draw(st.integers(0, 48))
    index = draw(st.integers(0, 2 ** (48 - level) - 1))
    return Node(
        level=level,
        index=index,
        text=draw(ANY | HALVES),
        by=draw(st.sampled_from(record.BUILDERS)),
        date="2026-05-01T09:00:00+02:00",
    )


def cleaned(record):
    return dataclasses.replace(
        record,
        **{
            f.name: model.clean(value)
            for f in dataclasses.fields(record)
            if isinstance(value := getattr(record, f.name), str)
        },
    )


@PATIENT
@given(ANY | HALVES)
@example("\ud83d\ude00")
@example("\ude00\ud83d")
@example("\ud83da")
@example("a\ud83d")
def test_a_lone_surrogate_becomes_the_replacement_sign_and_a_pair_its_character(text):
    assert clean(text) == model.clean(text)
    clean(text).encode()


@PATIENT
@given(messages())
def test_a_message_decodes_to_what_was_encoded(message):
    assert decode_message(encode_message(message)) == cleaned(message)


@PATIENT
@given(nodes())
def test_a_node_decodes_to_what_was_encoded(node):
    assert decode_node(encode_node(node)) == cleaned(node)


def test_every_code_point_survives_the_disk():
    for start in range(0, 0x110000, 0x4000):
        text = "".join(chr(code) for code in range(start, start + 0x4000))
        message = decode_message(encode_message(Message(id=0, kind="echo", text=text)))
        assert message.text == model.clean(text)


@PATIENT
@given(messages())
def test_a_message_is_one_line_of_json_with_its_size_and_checksum(message):
    line = encode_message(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    raw, kind, text = json.loads(line), model.clean(message.kind), model.clean(message.text)
    assert list(raw)[:6] == ["i", "kind", "text", "size", "date", "session"]
    assert (raw["i"], raw["kind"], raw["text"]) == (message.id, kind, text)
    assert raw["size"] == len(f"{kind}: {text}".encode())
    assert line.endswith(b',"crc":%d}\n' % raw["crc"])
    assert raw["crc"] == model.crc(line.decode().rpartition(',"crc":')[0] + "}")
    assert {key for key in raw if key in TEXTS and not raw[key]} <= {
        "kind",
        "text",
        "date",
        "session",
    }, "unknown facts take no room"


@PATIENT
@given(nodes())
def test_a_node_is_one_line_of_json_with_its_size_and_checksum(node):
    line = encode_node(node)
    assert line.count(b"\n") == 1
    raw, text = json.loads(line), model.clean(node.text)
    assert list(raw) == ["l", "i", "text", "size", "date", "by", "crc"]
    assert (raw["l"], raw["i"], raw["text"]) == (node.level, node.index, text)
    assert raw["size"] == len(text.encode())
    assert raw["crc"] == model.crc(line.decode().rpartition(',"crc":')[0] + "}")


@PATIENT
@given(ANY | HALVES, ANY | HALVES)
def test_the_size_is_that_of_what_is_written_whatever_was_said(kind, text):
    """It is taken once more after the line is durable.

    Failing there would make the caller say it again.
    """
    assert record.message_size(kind, text) == len(
        f"{model.clean(kind)}: {model.clean(text)}".encode()
    )


# -- lines of other programs


@PATIENT
@given(messages(), st.booleans(), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_a_line_another_json_writer_made_reads_the_same(message, ascii_only, separators):
    fields = {"i": message.id, **{name: getattr(message, name) for name in TEXTS}, "size": 3}
    if not ascii_only:
        fields = {
            key: model.clean(value) if isinstance(value, str) else value
            for key, value in fields.items()
        }
    line = json.dumps(fields, ensure_ascii=ascii_only, separators=separators).encode()
    assert decode_message(line) == cleaned(dataclasses.replace(message, unshown=False))


def test_half_a_character_written_as_an_escape_does_not_lose_the_line():
    message = decode_message(
        rb'{"i":0,"kind":"user","text":"a \ud83d b \ud83d\ude00 \udc00","session":"\uD800"}'
    )
    assert (message.text, message.session) == ("a \ufffd b 😀 \ufffd", "\ufffd")
    assert decode_node(rb'{"l":0,"i":0,"text":"\udfff"}').text == "\ufffd"


@pytest.mark.parametrize(
    "line",
    [
        b'{"i":0,"kind":"user","text":"\\ud83d","x":NaN}',
        b'["\\ud83d"',
        b'["\\ud83d"]',
        b"[" * 100_000 + b'"\\ud83d',
    ],
)
def test_half_a_character_excuses_nothing_else(line):
    with pytest.raises(BadLineError):
        decode_message(line)


def test_a_line_of_another_program_needs_no_checksum():
    line = (
        b'{"i":7,"kind":"talk","text":"hi","size":8,"date":"2026-05-01T09:00:00+02:00",'
        b'"session":"s","mood":{"a":[1]},"tags":[]}'
    )
    assert decode_message(line) == Message(
        id=7, kind="talk", text="hi", date="2026-05-01T09:00:00+02:00", session="s"
    )
    assert decode_node(b'{"l":1,"i":3,"text":"hi","size":2,"date":"2026"}') == Node(
        level=1, index=3, text="hi", by="model", date="2026"
    )
    assert decode_message(b'{"i":0,"kind":"","text":""}') == Message(id=0, kind="", text="")
    assert decode_message(b' { "text" : "t" , "kind" : "k" , "i" : 0 } \r').text == "t"


@pytest.mark.parametrize("value", [None, 5, 1.5, True, [1], {"a": None}, "x"])
def test_a_fact_of_the_wrong_type_never_costs_the_message(value):
    for name in TEXTS[2:]:
        message = decode_message(
            json.dumps({"i": 0, "kind": "k", "text": "t", name: value}).encode()
        )
        assert (message.id, message.kind, message.text) == (0, "k", "t")
        assert getattr(message, name) == ("" if value is None else str(value))


BAD_NUMBERS = [
    b"-1",
    b"1.0",
    b"1.5",
    b"true",
    b"false",
    b"null",
    b'"7"',
    b"[]",
    b"{}",
    b"1e3",
    b"281474976710656",
    b"18446744073709551616",
    b"9" * 400,
]


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_an_id_that_is_no_count_is_refused(number):
    with pytest.raises(BadLineError) as refused:
        decode_message(b'{"i":' + number + b',"kind":"user","text":"x"}')
    assert refused.value.id is None
    with pytest.raises(BadLineError):
        decode_node(b'{"l":0,"i":' + number + b',"text":"x"}')
    with pytest.raises(BadLineError):
        decode_node(b'{"l":' + number + b',"i":0,"text":"x"}')


@pytest.mark.parametrize(
    "crc", ["0", "true", '"abc"', "[]", "1.5", "-1", str(2**32 + model.crc("0|user|x"))]
)
def test_a_checksum_that_is_there_must_match(crc):
    with pytest.raises(BadLineError, match="checksum") as refused:
        decode_message(f'{{"i":0,"kind":"user","text":"x","crc":{crc}}}'.encode())
    assert refused.value.id == 0, "the id was given to a message, and must not be given to another"


@PATIENT
@given(COUNTS, st.integers(0, 48))
def test_a_node_beyond_any_log_is_refused_as_damage(index, level):
    """Its last message would not fit the index's 64-bit numbers, and the memory could never be
    opened again.
    """
    line = json.dumps({"l": level, "i": index, "text": "x"}).encode()
    if (index + 1) * 2**level <= 2**48:
        assert decode_node(line).index == index
    else:
        with pytest.raises(BadLineError, match="beyond"):
            decode_node(line)


WRONG = [
    "",
    " ",
    "nonsense",
    "[]",
    "1",
    "null",
    '"x"',
    "{}",
    '{"i":0}',
    '{"kind":"a","text":"b"}',
    '{"i":0,"kind":"a"}',
    '{"i":0,"text":"b"}',
]
WRONG += [
    '{"i":0,"kind":1,"text":"b"}',
    '{"i":0,"kind":"a","text":null}',
    '{"i":0,"kind":"a","text":"b"',
    '{"i":0,"kind":"a","text":"b"}}',
]
WRONG += [
    '{"i":0,"kind":"a","text":"b","z":NaN}',
    '\ufeff{"i":0,"kind":"a","text":"b"}',
    "\0" * 30,
    "[" * 5000,
]


@pytest.mark.parametrize("line", WRONG)
def test_a_line_that_holds_no_record_is_refused_and_says_why(line):
    for decode in (decode_message, decode_node):
        with pytest.raises(BadLineError) as refused:
            decode(line.encode())
        assert str(refused.value).startswith("is no")


@PATIENT
@given(st.binary(max_size=60))
def test_bytes_at_random_are_refused_and_nothing_else_happens(line):
    for decode in (decode_message, decode_node):
        with pytest.raises(BadLineError):
            decode(line)


def test_every_way_to_cut_a_line_short_is_refused():
    for line in (
        encode_message(Message(id=1, kind="user", text="a漢😀", date="d", session="s")),
        encode_node(Node(level=1, index=0, text="漢", by="local")),
    ):
        for end in range(len(line.rstrip())):
            for decode in (decode_message, decode_node):
                with pytest.raises(BadLineError):
                    decode(line[:end])


# -- damage


@pytest.mark.parametrize(
    "message",
    [
        Message(
            id=10,
            kind="user",
            text='{"i":1,"text":"x\\y"} \t\x00 ü漢😀 "',
            date="2026-05-01T09:00:00+02:00",
            session="s1",
        ),
        Message(
            id=0,
            kind="a|b",
            text="c|d",
            uid="u",
            turn="t",
            call="c",
            tool="x",
            author="n",
            platform="p",
            unshown=True,
        ),
    ],
)
def test_a_flipped_byte_never_turns_a_message_into_another_in_silence(message):
    """Every byte of the line set to every other value: the line is refused, or says the same."""
    line = encode_message(message).rstrip(b"\n")
    for at in range(len(line)):
        for value in range(256):
            try:
                read = decode_message(line[:at] + bytes([value]) + line[at + 1 :])
            except BadLineError:
                continue
            assert read == message


def test_a_flipped_byte_never_turns_a_node_into_another_in_silence():
    node = Node(level=1, index=1, text='a "b" ü\n', by="local", date="2026-05-01")
    line = encode_node(node).rstrip(b"\n")
    for at in range(len(line)):
        for value in range(256):
            try:
                read = decode_node(line[:at] + bytes([value]) + line[at + 1 :])
            except BadLineError:
                continue
            assert read == node


@PATIENT
@given(messages(), st.data())
def test_a_flipped_bit_never_turns_any_message_into_another_in_silence(message, data):
    line = bytearray(encode_message(message))
    line[data.draw(st.integers(0, len(line) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        read = decode_message(bytes(line))
    except BadLineError:
        return
    assert read == cleaned(message)
