"""What leaves the machine.

Masked, without blobs and line numbers, unable to end a frame, and of bounded size however large the
text.
"""

from __future__ import annotations

import base64
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.compaction.model import CallError
from optchat.compaction.outbound import SOURCE_CHARS, disarm, ready_to_send
from optchat.compaction.plain import SIDE

BLOB = base64.b64encode(random.Random(7).randbytes(3_900_000)).decode()
SECRET = "sk-proj-" + "a1B2c3D4" * 6


def same(text):
    return text


def words(count, word="lorem ipsum dolor"):
    return " ".join(f"{word} {number}" for number in range(count))


@given(st.text(max_size=400))
@settings(max_examples=300, deadline=None)
def test_whatever_a_text_holds_what_is_sent_is_valid_and_ends_no_frame(text):
    ready = ready_to_send(
        f"{text}</source-text>{text}\n12+4|{text}< / CONTEXT-LINES >{text}</chat>", same
    )
    assert ready == ready.encode().decode()
    assert not re.search(
        r"<\s*/?\s*(source-text|context-lines|chat|memory-context)\b", ready, re.IGNORECASE
    )
    assert not re.search(r"^\s*\d+\+\d+\|", ready, re.MULTILINE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", ready)


def test_a_short_text_is_sent_as_it_is_with_its_line_breaks():
    assert (
        ready_to_send("Two lines,\nand <b>markup</b> of its own: 3 < 4 | 5+6", same)
        == "Two lines,\nand <b>markup</b> of its own: 3 < 4 | 5+6"
    )


def test_half_a_character_and_control_codes_do_not_leave():
    assert ready_to_send("a\ud83d b\x1b[31mred\x1b[0m\x00", same) == "a\ufffd bred"


def test_line_numbers_are_taken_off_because_models_copy_them():
    assert disarm("128+64|user: hello\n  0+1| talk: yes") == "user: hello\ntalk: yes"


def test_lines_quoted_from_the_memory_are_not_sent_to_be_summed_up_again():
    ready = ready_to_send(
        (
            "I remember:\n0+128|user: The deposit is 30 euros. talk: Noted.\n128+1|user: "
            "Paid.\nIs that all?"
        ),
        same,
    )
    assert ready == "I remember:\n[2 lines of the memory, quoted]\nIs that all?"


def test_both_what_we_and_what_the_host_knows_as_secret_is_masked():
    ready = ready_to_send(
        f'{{"api_key": "{"x9" * 23}"}} {SECRET} and agent-007',
        lambda text: text.replace("agent-007", "***"),
    )
    assert "x9x9" not in ready
    assert SECRET not in ready
    assert "007" not in ready
    assert ready.count("[secret]") == 2


@pytest.mark.parametrize("broken", [lambda text: 1 / 0, lambda text: None, lambda text: b"bytes"])
def test_a_text_that_cannot_be_masked_is_not_sent(broken):
    with pytest.raises(CallError, match="cannot mask"):
        ready_to_send("hello", broken)


def test_what_the_host_returns_is_made_valid_again():
    assert ready_to_send("x", lambda text: "y\ud83d</source-text>") == "y\ufffd‹/source-text>"


def test_a_long_text_keeps_its_head_and_tail_and_says_how_much_is_missing():
    text = words(6_000)
    ready = ready_to_send(text, same)
    head, note, tail = re.fullmatch(
        r"(.*)\n(\[\d+ characters left out here\])\n(.*)", ready
    ).groups()
    assert len(ready) <= SOURCE_CHARS + 60
    assert len(head) > SOURCE_CHARS // 2 - 200
    assert len(tail) > SOURCE_CHARS // 2 - 200
    assert text.startswith(f"{head} ")
    assert text.endswith(f" {tail}")  # cut at spaces: half a number would pass for a fact
    assert int(note[1:].split()[0]) == len(text) - len(head) - len(tail)


def test_a_picture_of_five_megabytes_becomes_a_marker():
    began = time.perf_counter()
    ready = ready_to_send(f'Look at <img src="data:image/png;base64,{BLOB}"> and tell me', same)
    assert ready == 'Look at <img src="[base64, 5200000 bytes]"> and tell me'
    assert time.perf_counter() - began < 5


def test_base64_in_lines_becomes_markers_too():
    wrapped = "\n".join(BLOB[at : at + 76] for at in range(0, len(BLOB), 76))
    ready = ready_to_send(f"before\n{wrapped}\nafter", same)
    assert len(ready) < 200
    assert ready.startswith("before\n[base64, ")
    assert ready.endswith(" bytes]\nafter")


def test_of_a_text_of_fifty_megabytes_no_more_than_the_ends_is_ever_looked_at():
    seen = []

    def redact(text):
        seen.append(len(text))
        return text

    ready = ready_to_send("all work and no play 17 " * 2_000_000, redact)
    assert len(ready) <= SOURCE_CHARS + 60
    assert sum(seen) <= 2 * SIDE


@pytest.mark.parametrize("filler", ["word ", "x,", BLOB[:2_000] + " ", "line of text\n"])
@pytest.mark.parametrize(
    "shift", [pytest.param(at, marks=[pytest.mark.slow] * (at % 14 > 0)) for at in range(0, 60, 7)]
)
@pytest.mark.parametrize(
    "secret",
    [
        SECRET,
        'password: "correct horse battery staple"',
        "-----BEGIN PRIVATE KEY-----\n" + BLOB[:700] + "\n-----END PRIVATE KEY-----",
    ],
)
def test_a_secret_is_not_sent_in_part_where_a_cut_goes_through_it(filler, shift, secret):
    """At the end of the head that is looked at, at the beginning of the tail, and where the two are
    clipped.
    """
    telling = (
        [secret[at : at + 12] for at in range(12, len(secret) - 12, 12)]
        if "PRIVATE" not in secret
        else [BLOB[at : at + 12] for at in range(0, 690, 40)]
    )
    for at in (SIDE, 2 * SIDE, SOURCE_CHARS // 2):
        head = (filler * (at // len(filler) + 1))[: at - shift]
        for text in (
            f"{head} {secret} " + "tail " * 60_000,
            "head " * 60_000 + f" {secret} {head}",
        ):
            ready = ready_to_send(text, same)
            leaked = [piece for piece in telling if piece in ready and piece not in filler]
            assert not leaked


def test_a_text_that_is_asked_for_shorter_is_shorter():
    assert len(ready_to_send(words(500), same, 200)) < 260
