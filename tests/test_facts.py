"""Facts of a line are looked up in what was shown.

Invented ones are found, other ways of writing the same are not held against it.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.compaction.facts import MOST, Known, unknown

SHOWN = (
    (
        "Paid 1,234.50 EUR to INV-88213 at 14:30 on 2026-05-01; 10k users, thirty-five dollars, "
        "1.5 million rows, a dozen eggs, IP 10.0.0.1, v0.19.1."
    ),
    (
        "Commit 9fceb02d0ae598e95dc970b74767f19372d8af5a in /srv/app/settings.toml and "
        "src\\view.py, see https://www.example.com/a/b?x=1#top"
    ),
    "mail Bob@example.com. tests/test_late_payment.py passed",
    '{"cmd": "cat C:\\\\Users\\\\ann\\\\new.txt\\n/etc/hosts\\nnotes.md"}',
    "他付了３０欧元，订单号77120，路径/srv/数据/a.db。一共2万元",
)
KNOWN = Known(SHOWN)


@pytest.mark.parametrize(
    "line",
    [
        "user: paid 1234.5 to inv-88213, or 1,234.50, 1 234,50, 1'234.50",
        "May 1 at 09:00, 2026-05-01, 1.5.2026, 3 files, 2nd try",
        "10,000 users, 10k users, 10 000 users",
        "35 dollars, 12 eggs, 1,500,000 rows, 1.5M rows, 1.5 million",
        "v0.19 and 0.19.1 at 10.0.0.1",
        "9fceb02, 9FCEB02D0AE5 and commit 9fceb02d0ae598e95dc970b74767f19372d8af5a.",
        "/srv/app/settings.toml, app/settings.toml:12:3, ./src/view.py, settings.toml",
        (
            "example.com/a/b, https://www.example.com/a/b?x=1#top, http://example.com/a/b, "
            "bob@example.com"
        ),
        "C:\\Users\\ann\\new.txt, /etc/hosts and notes.md",
        "tests/test_late…, tests/test_late_pa...",
        "付了30欧元，订单77120，共20000元和2万元",
        "1０００0 users",  # widths mixed
        "and/or, facade, decade, e.g. this, i.e. that, p.m., done.Next one",
        "path=/srv/app/settings.toml",
    ],
)
def test_what_was_shown_is_known_however_it_is_written(line):
    assert unknown(line, KNOWN) == []


@pytest.mark.parametrize(
    ("line", "invented"),
    [
        ("paid 1,235.50", ["1,235.50"]),
        ("invoice INV-88214", ["88214"]),
        ("12345 of 88213", ["12345"]),
        ("order 882 and 8821", ["882", "8821"]),  # parts of a number are other numbers
        ("10.0.0.2 and v0.20", ["10.0.0.2", "0.20"]),
        ("100k users", ["100k"]),
        ("15 million rows", ["15 million"]),
        ("fixed in commit abc1234 and pushed", ["abc1234"]),
        ("9fceb03", ["9fceb03"]),
        ("ceb02d0ae", ["ceb02d0ae"]),  # a short hash is the beginning of one
        ("wrote /srv/app/config.toml", ["/srv/app/config.toml"]),
        ("see /srv/ap", ["/srv/ap"]),
        ("see config.yaml", ["config.yaml"]),
        ("see src/model.py:10", ["src/model.py:10"]),
        ("see https://example.com/a/c", ["https://example.com/a/c"]),
        ("mail eve@example.com", ["eve@example.com"]),
        ("付了31欧元", ["31"]),
        ("wartet seit ٣٤ Tagen", ["34"]),
    ],
)
def test_what_was_not_shown_is_named(line, invented):
    assert unknown(line, KNOWN) == invented


def test_one_digit_is_passed_with_or_without_zeros_but_not_with_a_scale():
    assert unknown("3 files, 05, 2.0", Known(["none"])) == []
    assert unknown("3 million", Known(["none"])) == ["3 million"]


@given(st.text(max_size=300))
@settings(max_examples=500, deadline=None)
def test_a_text_holds_all_of_its_own_facts(text):
    """Whatever the sequence of signs: what is copied can never be refused."""
    assert unknown(text, Known([text])) == []


@given(
    st.lists(
        st.sampled_from(
            [
                *"019af.,:/\\@-_=%# \n'…k",
                "万",
                "3.5",
                "https://",
                "www.",
                "C:",
                ".py",
                "é",
                "million",
            ]
        ),
        max_size=60,
    ).map("".join)
)
@settings(max_examples=800, deadline=None)
def test_a_text_made_of_nothing_but_facts_holds_them_all(text):
    assert unknown(text, Known([text])) == []


@given(
    st.integers(min_value=1_000, max_value=10**12), st.integers(min_value=1_000, max_value=10**12)
)
def test_a_number_is_known_in_every_grouping_and_no_other_number_is(shown, other):
    known = Known([f"it was {shown:,} then"])
    for written in (
        str(shown),
        f"{shown:,}",
        f"{shown:_}",
        f"{shown:,}".replace(",", " "),
        f"{shown:,}".replace(",", "."),
        f"{shown:,}".replace(",", "’"),
    ):
        assert unknown(written, known) == []
    if other != shown and str(other) not in f"{shown:,}".split(","):
        assert unknown(str(other), known) == [str(other)]


def test_no_more_is_named_than_a_model_can_heed():
    found = unknown(" ".join(f"/no/such/{number}/{'x' * 300}" for number in range(50)), Known([""]))
    assert len(found) == MOST
    assert max(map(len, found)) <= 101


@pytest.mark.parametrize(
    "piece",
    [
        "1.",
        "1,",
        "1",
        "1 ",
        "a1",
        "/a",
        "\\n",
        ":1",
        "=",
        "a@b.",
        "١",
        "…",
        "1k ",
        "thousand ",
        "0x1f ",
    ],
)
def test_a_huge_text_of_any_kind_costs_little_time(piece):
    began = time.perf_counter()
    unknown(
        (piece * 1_000)[:1_000] + " 99 1a2b3c4 /x/y.z", Known([piece * (160_000 // len(piece))])
    )
    assert time.perf_counter() - began < 5
