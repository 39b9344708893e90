"""Which lines are kept and which refused.

And that no honest line is refused, tried on a whole sample conversation.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from optchat.compaction.local import leaf_line, merge_lines
from optchat.compaction.outbound import ready_to_send
from optchat.compaction.prompts import AGAIN, SYSTEM, request
from optchat.compaction.validate import SourceText, fault, tagged
from optchat.tree.render import one_line

SAMPLE = Path(__file__).parents[1] / "optchat" / "sample" / "conversation.jsonl"
TEXT = (
    "We have decided to use SQLite for the index, because Postgres needs a server of its own "
    "and nobody here wants to run one. The deposit of "
    "1,200 euros goes to Ilse Okonkwo by 2026-05-03. I'm sorry that I can't help you with "
    "the tests in /srv/app this week. "
) * 3
CHINESE = (
    "我们决定索引使用轻量数据库，因为另一种需要单独的服务器，这里没有人愿意维护它。押金五月初之前交给伊尔莎。"
    * 12
)


def why(line, text=TEXT, kind="user", context="talk: The old database was Oracle 19", limit=512):
    found = fault(line, SourceText(kind, (text,), (text,), context, limit))
    return found and found.why


@pytest.mark.parametrize(
    "line",
    [
        (
            "user: decided: SQLite for the index, since Postgres needs a server; 1200 euros to "
            "Ilse Okonkwo by May 3"
        ),
        "user: SQLite instead of Oracle 19 for the index",  # a fact of the context
        "user: I'm sorry that I can't help you with the tests",  # its own words
        "user: will not run a Postgres server. The best tool: SQLite",
        (
            "user: Ilse Okonkwo bekommt die Anzahlung; entschieden wurde gegen einen eigenen "
            "Datenbankserver, niemand will ihn betreiben müssen"
        ),
        "user: 伊尔莎得到押金，决定不使用单独的数据库服务器，因为没有人愿意维护它，测试本周没有人帮忙",
    ],
)
def test_an_honest_line_is_kept_also_in_another_language(line):
    assert why(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "user: 索引使用轻量数据库，押金五月初前交给伊尔莎",
        "user: decided on a light database for the index, nobody wants to maintain servers",
    ],
)
def test_a_line_of_chinese_is_kept_in_chinese_or_not(line):
    assert why(line, CHINESE) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "empty"),
        ("user: …", "empty"),
        ("user: BANANA", "poor"),
        ("user: 好的", "poor"),
        (f"user: {TEXT}", "echo"),
        (f"user: {TEXT.upper()}", "echo"),
        (f"user: {SYSTEM[:500]}", "prompt"),
        ("user: Write the one line that takes the place of the new text.", "prompt"),
        ("user: The one line that takes the place of the new text is:", "prompt"),
        (
            (
                "user: The new text is: Join them into one, older things first, each item with "
                "its kind."
            ),
            "prompt",
        ),
        (
            "user: Sure, SQLite is a good choice for an index, and here is how to set it up",
            "answer",
        ),
        (
            "user: I cannot help with deposits, euros or databases such as SQLite and Postgres",
            "answer",
        ),
        (
            "user: Es tut mir leid, zu SQLite und Postgres und der Kaution kann ich nichts sagen",
            "answer",
        ),
        (
            "user: SQLite for the index, Postgres needs a server. Let me know if you want more",
            "answer",
        ),
        ("user: Please provide the text about the index and the deposit", "answer"),
        ("talk: SQLite is used for the index, because Postgres needs a server", "kind"),
        ("user: SQLite for the index. talk: Good choice, no server is needed", "kind"),
        ("user: SQLite for the index, fixed in commit abc1234 and pushed", "unknown"),
        ("user: SQLite for the index, 1,300 euros to Ilse Okonkwo", "unknown"),
        ("user: SQLite for the index, see /srv/app/db.sqlite", "unknown"),
        ("user: SQLite for the index, see https://sqlite.org/docs", "unknown"),
        (
            (
                "user: The weather brings thunderstorms, hail, strong wind and cold rain across "
                "northern mountains tomorrow"
            ),
            "foreign",
        ),
        (
            (
                "user: Oracle was the old database, the migration finished smoothly, everybody "
                "celebrated with cake afterwards"
            ),
            "foreign",
        ),
        ("user: " + "SQLite for the index, not Postgres; " * 20, "long"),
        ("user: " + "SQLite for the index, not Postgres; " * 2_000, "long"),
    ],
)
def test_what_is_no_line_of_the_text_is_refused(line, reason):
    assert why(line) == reason


def test_phrases_that_the_text_itself_has_are_never_held_against_a_line():
    text = (
        "Sure, as an AI I cannot help with the deposit of Ilse. Let me know if you need more. " * 10
    )
    assert (
        why(
            "talk: Sure, as an AI I cannot help with the deposit. Let me know if you need more",
            text,
            kind="talk",
        )
        is None
    )


def test_a_line_up_to_twice_the_limit_is_better_than_none():
    ground = SourceText("user", (TEXT,), (TEXT,), "", 512)
    assert fault("user: " + "SQLite for the index; " * 30, ground).usable
    assert not fault("user: " + "SQLite for the index; " * 60, ground).usable
    assert not fault("user: " + "Ü" * 510, ground).usable  # bytes, not characters


def test_a_text_that_fits_the_limit_may_be_its_own_line():
    text = "Decided on SQLite for the index. " * 5
    assert why(f"user: {text}".strip(), text) is None


def test_items_of_two_lines_may_have_the_kinds_of_both_and_no_other():
    halves = (
        "user: wants SQLite for the index " * 9,
        "tool: read_file path=a.db\necho: 3 rows " * 7,
    )
    ground = SourceText("", halves, halves, "talk: yes", 512)
    assert (
        fault("user: wants SQLite for the index. tool: read_file a.db. echo: 3 rows", ground)
        is None
    )
    assert fault("user: wants SQLite for the index. talk: did so", ground) == (
        "kind",
        "talk",
        False,
    )


def test_a_line_gets_the_kind_of_its_message_in_front_once():
    assert tagged("wants SQLite", "user") == "user: wants SQLite"
    assert tagged("User: wants SQLite", "user") == "user: wants SQLite"
    assert tagged("user：要数据库", "user") == "user: 要数据库"
    assert tagged("user:wants", "user") == "user: wants"
    assert tagged("talk: is refused later", "user") == "talk: is refused later"
    assert tagged("a picture", "image") == "image: a picture"
    assert tagged("", "user") == tagged("user: ", "user") == ""


def test_every_reason_has_words_for_the_model():
    for found in (
        "empty",
        "echo",
        "prompt",
        "long",
        "answer",
        "kind",
        "poor",
        "foreign",
        "unknown",
    ):
        assert AGAIN[found].format(detail="x", size=1, limit=2, cut="{y}")
    assert len(AGAIN) == 9


def test_one_that_repeats_any_part_of_the_prompt_is_refused():
    for part in request("", "user", ("",), 64).splitlines():
        if len(part) > 60 and "<" not in part and "---" not in part:
            assert why(f"user: {part}") == "prompt"


@pytest.mark.parametrize("limit", [256, 512])
def test_lines_picked_word_for_word_from_a_conversation_are_never_refused(limit):
    """The local summarizer writes only what stands in its source, so whatever is held against its
    lines is held wrongly.
    """
    messages = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    lines = [leaf_line(message["kind"], message["text"], limit) for message in messages]
    refused, judged = [], 0
    jobs = [
        (message["kind"], (message["text"],), line)
        for message, line in zip(messages, lines, strict=True)
    ]
    while len(lines) > 1:
        merged = [merge_lines(*lines[at : at + 2], limit) for at in range(0, len(lines) - 1, 2)]
        jobs += [
            ("", tuple(lines[at : at + 2]), merged[at // 2]) for at in range(0, len(lines) - 1, 2)
        ]
        lines = merged
    for kind, sources, line in jobs:
        if sum(len(source.encode()) + 8 for source in sources) <= limit:
            continue
        judged += 1
        sent = tuple(ready_to_send(source, lambda text: text) for source in sources)
        found = fault(" ".join(one_line(line).split()), SourceText(kind, sent, sources, "", limit))
        refused += [(found, line)] if found else []
    assert judged > 200
    assert refused == []
