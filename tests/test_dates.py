"""Days and months as terms."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optchat.base.dates import day_terms, named_terms

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.data())
def test_a_day_is_named_in_many_ways_and_always_meets_what_was_written_on_it(day, data):
    name = MONTHS[day.month - 1]
    short = data.draw(st.sampled_from([name, name[:3], name.lower(), f"{name[:3]}."]))
    ways = [
        f"{day:%Y-%m-%d}",
        f"{day.year}/{day.month}/{day.day}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day.year}年{day.month}月{day.day}日",
        f"{day.day} {short} {day.year}",
        f"{short} {day.day}, {day.year}",
        f"{day.day}th of {short}, {day.year}",
        f"{short} {day.day} {day.year}",
    ]
    asked = data.draw(st.sampled_from(ways))
    written = day_terms(f"{day.isoformat()}T23:59:59+02:00")
    assert written == (f"@{day:%Y-%m-%d}", f"@{day:%Y-%m}")
    for around in ("{}", "what was it on {}?", "于{}决定", "({})"):
        assert set(named_terms(around.format(asked))) == set(written), around.format(asked)


@pytest.mark.parametrize("text", ["in June 2023", "june, 2023", "2023-06", "2023年6月", "Jun 2023"])
def test_a_month_alone_is_that_month(text):
    assert list(named_terms(text)) == ["@2023-06"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.3.4.5",
        "in 2023",
        "maybe 2023",
        "marching 2023",
        "2023-13-01",
        "2023-06-32",
        "12023-06-03",
        "on 3 June",
        "v1.2023.4",
    ],
)
def test_what_names_no_day_with_its_year_names_none(text):
    assert list(named_terms(text)) == []


@pytest.mark.parametrize("date_", ["", "yesterday", "2023", "2023-06-031", "at 2023-06-03"])
def test_a_message_with_no_usable_date_has_no_day(date_):
    assert day_terms(date_) == ()
