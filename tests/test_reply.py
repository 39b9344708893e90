"""The line in an answer: everything models put around one comes off, and nothing that is in it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.compaction.reply import line_in

LINE = "user: wants SQLite for the index, and says so"


@pytest.mark.parametrize(
    "answer",
    [
        LINE,
        f"\n\n  {LINE}\t\n",
        f"<think>The user wants a summary.</think>{LINE}",
        f"<think>\nfirst </think> then\n</think>\n\n{LINE}",
        f"Okay, they want a line.\n</think>\n\n{LINE}",  # a server that swallows the tag that opens
        f"{LINE}\n<think>that was it</think>",
        f"[THINK]hm[/THINK]{LINE}",
        f"◁think▷hm◁/think▷{LINE}",
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message"
            f"|>{LINE}<|return|>"
        ),
        f"```\n{LINE}\n```",
        f"```text\n{LINE}\n```\nThis line has 45 bytes.",
        f"```{LINE}```",
        f'"{LINE}"',
        f"“{LINE}”",
        f"«{LINE}»",
        f"「{LINE}」",
        f"`{LINE}`",
        f"**{LINE}**",
        f"<summary>{LINE}</summary>",
        f"<source-text>\n{LINE}\n</source-text>",
        f"{LINE}</source-text>",
        f"<line>{LINE}",
        f"Summary: {LINE}",
        f"**Summary:** {LINE}",
        f"## Summary: {LINE}",
        f"Zusammenfassung: {LINE}",
        f"摘要：{LINE}",
        f"Here is the line:\n\n{LINE}",
        f'Sure! Here\'s a one-line summary:\n\n```\n"{LINE}"\n```',
        f"128+64|{LINE}",
        f"0 + 1 | {LINE}",
        f"- {LINE}",
        f"{'-' * 512}\n{LINE}",
        f"{LINE}\n{'-' * 300}",
    ],
)
def test_what_stands_around_a_line_comes_off(answer):
    assert line_in(answer) == LINE


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n\t ",
        "<think>only this</think>",
        "<think>never ended, and on and on",
        "[THINK]",
        "```\n```",
        '""',
        "<line></line>",
    ],
)
def test_an_answer_without_a_line_has_none(answer):
    assert line_in(answer).strip('"') == ""


@pytest.mark.parametrize(
    "line",
    [
        'user: "yes" and "no"',
        '"yes" is what Ilse said, not "no"',
        "user: it's 'fine'",
        "user: asks why a </think> tag stays in the reply and <think> does not",
        "user: the flags were a = 1 + 2 | 3",
        "talk: use `git log` and then `git show`",
        "user: -5 degrees at 7:00",
        "user: **never** push on Friday",
        "user: prefers <summary> over <details>",
        "note: Line: 4 is closed",
    ],
)
def test_what_is_in_a_line_stays(line):
    assert line_in(line) == line


def test_several_lines_become_one_without_bullets_and_numbers():
    assert line_in(
        "1. user: wants SQLite\n2. talk: agrees\n\n- tool: 3 files written\r\n* echo: ok\u2028end"
    ) == ("user: wants SQLite talk: agrees tool: 3 files written echo: ok end")


@given(
    st.lists(
        st.sampled_from(
            [
                *"abc \n\"'`<>|+-0:*_",
                "<think>",
                "</think>",
                "```",
                "12+4|",
                "<line>",
                "</line>",
                "Summary:",
                "\u2028",
                "\ud800",
            ]
        ),
        max_size=60,
    )
)
@settings(max_examples=500, deadline=None)
def test_whatever_is_answered_it_becomes_one_line(pieces):
    line = line_in("".join(pieces))
    assert line == " ".join(line.split())
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "```",
        "``` ",
        " ",
        "\n",
        '"',
        "1+",
        "12+4|",
        "- ",
        "Summary: ",
        "<a>",
        "-",
        "**",
        "here is ",
        "<|channel|>",
    ],
)
def test_a_huge_answer_of_any_kind_costs_little_time(piece):
    began = time.perf_counter()
    line_in(piece * (400_000 // len(piece)))
    line_in("```" + piece * (400_000 // len(piece)) + "x")
    assert time.perf_counter() - began < 5
