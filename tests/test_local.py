"""The local summarizer.

Laws over arbitrary text, one example of each kind of source, and what survives ten levels of
merging.
"""

from __future__ import annotations

import base64
import gc
import json
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optchat.base.json_line import clean
from optchat.base.record import KINDS
from optchat.base.secrets import mask
from optchat.compaction.lexicon import STATUS, weigh
from optchat.compaction.local import leaf_line, merge_lines
from optchat.compaction.plain import clip, plain

GAP = "…"
kinds = st.sampled_from((*KINDS, "image", "system"))
limits = st.sampled_from((128, 160, 256, 512, 4096))
pieces = st.sampled_from(
    (
        "the",
        "not",
        "if",
        "we",
        "decided",
        "Okonkwo",
        "INV-88213",
        "db2.example.com",
        "/srv/app/settings.toml",
        "retry_limit",
        "error:",
        "决定",
        "项目代号",
        "，",
        "。",
        "カタカナ",
        "ひらがな",
        "한국어",
        "สวัสดีครับ" * 8,
        "🇩🇪" * 20,
        "e\u0301" * 30,
        "👩‍👩‍👧‍👦" * 9,
        "\ud800",
        "\x00",
        "\u2028",
        "\xa0",
        "\t",
        "…",
        "not…done",
        "Hello!",
        "end.",
        "why?",
        "Dr.",
        "1.",
        "- ",
        "> ",
        "```",
        "|---|",
        "@@",
        "+x",
        "user:",
        "talk: yes",
        "at a.js:1:2",
        'File "a.py", line 3',
        "x" * 300,
        "{",
        "}",
        "[",
        '"',
        "=",
        ":",
        "12345",
        "\n",
        "\n\n",
    )
)
texts = st.one_of(
    st.text(max_size=900),
    st.lists(st.tuples(pieces, st.sampled_from((" ", " ", ""))), max_size=120).map(
        lambda found: "".join(a + b for a, b in found)
    ),
)
prose = st.lists(
    st.text(alphabet="abcdeABnotiswÄöéдж019_", min_size=1, max_size=9).flatmap(
        lambda word: st.sampled_from((word, word, word, f"{word}.", f"{word},", f"{word}?"))
    ),
    min_size=40,
    max_size=300,
)


def flat(text: str) -> str:
    """The text as it can stand in a line: no control characters, white space single."""
    return " ".join(re.sub(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]", "", clean(text)).split())


def body(line: str) -> str:
    return line.split(": ", 1)[1]


# ---- laws


@given(kinds, texts, limits)
@settings(max_examples=400, deadline=None)
def test_a_leaf_line_is_valid_utf_8_within_the_limit_never_empty_and_always_the_same(
    kind, text, limit
):
    line = leaf_line(kind, text, limit)
    assert 0 < len(line.encode("utf-8")) <= limit
    assert line.startswith(f"{kind}: ")
    assert line == leaf_line(kind, text, limit)


@given(kinds, texts, limits)
@settings(max_examples=200, deadline=None)
def test_a_message_that_fits_is_its_own_line_and_a_longer_one_becomes_a_single_item(
    kind, text, limit
):
    whole = f"{kind}: {clean(text)}"
    line = leaf_line(kind, text, limit)
    if len(whole.encode()) <= limit:
        assert line == whole
    else:
        assert len(line.splitlines()) == 1


@given(st.sampled_from(("user", "talk", "echo", "work")), texts, limits)
@settings(max_examples=400, deadline=None)
def test_every_stretch_of_a_leaf_line_between_gaps_stands_in_the_source(kind, text, limit):
    line, source = leaf_line(kind, text, limit), flat(text)
    if (
        source.startswith(("{", "["))
        or re.search(r"\[(?:base64|hex), \d", line)
        or "**" in text
        or "\x1b" in text
    ):
        # read out of JSON, shortened by a marker, or without the terminal's codes: other tests
        return
    for stretch in flat(body(line)).split(GAP):
        assert stretch.strip() in source


@given(prose, limits)
@settings(max_examples=200, deadline=None)
def test_the_words_of_a_leaf_line_are_words_of_the_source_in_their_order(words, limit):
    text = " ".join(words)
    shown = re.split(rf"[\s{GAP}]+", body(leaf_line("talk", text, limit)))
    loose = ",.;:-?!"
    whole = [word.strip(loose) for word in shown if word.strip(loose)]
    source = [word.strip(loose) for word in words]
    for word in whole:
        assert word in source
    if "?" not in text and not any(
        weigh(word)[2] & STATUS for word in words
    ):  # such a word may be repeated beside what it belongs to
        rest = iter(source)
        assert all(word in rest for word in whole)


@given(texts, texts, limits)
@settings(max_examples=400, deadline=None)
def test_a_merged_line_is_valid_and_always_the_same(left, right, limit):
    line = merge_lines(left, right, limit)
    assert 0 < len(line.encode("utf-8")) <= limit
    assert line == merge_lines(left, right, limit)
    whole = f"{clean(left)}\n{clean(right)}"
    if len(whole.encode()) <= limit:
        assert line == whole
    else:
        assert all(re.match(r"[^\s:]{1,32}: ", item) for item in line.split("\n"))


@given(kinds, texts, kinds, texts, limits)
@settings(max_examples=200, deadline=None)
def test_every_stretch_of_a_merged_line_stands_in_one_of_its_two_lines(
    kind, text, other, said, limit
):
    left, right = leaf_line(kind, text, limit), leaf_line(other, said, limit)
    sources = flat(left), flat(right)
    line = merge_lines(left, right, limit)
    if any(mark in left + right for mark in ("{", "**", "\x1b")) or re.search(
        r"\[(?:base64|hex), \d", line
    ):
        return
    tag = re.compile(rf"^(?:{'|'.join(KINDS)}|note|{kind}): ")
    for item in line.split("\n"):
        for stretch in flat(tag.sub("", item)).split(GAP):
            assert any(stretch.strip() in source for source in sources)


@given(
    st.text(alphabet="aé漢🇩🇪e\u0301👩\u200d👧🏽\ufe0f한", max_size=60),
    st.integers(min_value=0, max_value=80),
)
def test_a_clip_is_the_longest_head_that_fits_or_nearly_so(text, limit):
    head = clip(text, limit)
    assert text.startswith(head)
    assert len(head.encode()) <= limit
    if len(text.encode()) <= limit:
        assert head == text
    else:
        assert len(head.encode()) > limit - 4 - 24 * 4


@pytest.mark.parametrize(
    ("text", "limit", "head"),
    [
        ("cafe\u0301!", 5, "caf"),  # never the letter without its accent
        ("ab🇩🇪🇫🇷", 13, "ab🇩🇪"),  # never half a flag
        ("a👩‍👧b", 9, "a"),  # never one of a family
        ("漢字", 5, "漢"),
        ("👍🏽", 5, "👍"),  # nothing shorter is left to take: a whole character at least
    ],
)
def test_a_clip_ends_between_graphemes(text, limit, head):
    assert clip(text, limit) == head


# ---- kinds of source

PROSE = (
    "Sure, I'd be happy to help! We looked at the billing service this morning. The nightly "
    "job on db2.example.com has failed since "
    "14 March because the role billing_ro lost its grant when Dr. Okonkwo rotated the keys. "
    "I have not yet restarted the worker. We "
    "decided to use Postgres 16.2 instead of MySQL for the ledger, since the JSON indexes "
    "are faster. The config lives in "
    "/srv/billing/config.yml and the retry limit is 7. The invoice that started all of this "
    "is INV-88213, for 4,210.50 EUR. I think "
    "that we could also look at the other page at some later time, and so could everyone "
    "else who has a little time to look at it. "
    "Should I open a ticket for the dashboards? Let me know if you need anything else, I'm "
    "always here to help you out!"
)


def test_prose_keeps_facts_and_drops_politeness():
    line = leaf_line("talk", PROSE, 512)
    for kept in (
        "db2.example.com",
        "14 March",
        "Okonkwo",
        "Postgres 16.2 instead of MySQL",
        "/srv/billing/config.yml",
        "INV-88213",
        "dashboards?",
    ):
        assert kept in line
    assert "happy to help" not in line
    assert "Let me know" not in line
    assert GAP in line


def test_the_decision_is_the_last_to_go():
    assert "Postgres 16.2 instead of MySQL" in leaf_line("talk", PROSE, 128)


def test_an_abbreviation_ends_no_sentence_and_a_number_does():
    text = (
        "We met Dr. Okonkwo in room 12. Lindqvist was late. "
        + "There was not much else to say about it. " * 20
    )
    line = leaf_line("user", text, 128)
    assert "Dr. Okonkwo" in line


@pytest.mark.parametrize("limit", [128, 200, 512])
def test_what_has_not_happened_never_reads_as_if_it_had(limit):
    unfinished = (
        "The release of payments-service-77 has not been deployed to production by Lindqvist.",
        "If the audit of Marchetti GmbH passes, ledger-9 is closed on Friday.",
        "We will rotate KEY_88213 on host17 tomorrow.",
        "Die Migration von kunde_4711 ist noch nicht abgeschlossen.",
        "Did we already refund INV-5150 to Haddad?",
    )
    cues = ("not", "If", "will", "nicht", "?")
    filler = " ".join(
        f"The view of page {n} looks fine to everyone who has seen it." for n in range(12)
    )
    for sentence, cue in zip(unfinished, cues, strict=True):
        line = leaf_line("talk", f"{filler} {sentence} {filler}", limit)
        names = re.findall(r"\w*\d\w*", sentence)
        shown = [name for name in names if name in line]
        assert shown
        around = next(part for part in re.split(r"… |: ", line) if shown[0] in part)
        assert cue in around, line


def test_a_negation_survives_merging_with_what_it_negates():
    line = leaf_line(
        "talk",
        "The worker ledger-77 has not, as far as anyone in the Lisbon office knows, been "
        "restarted on host17. " + PROSE * 2,
        256,
    )
    for level in range(5):
        line = merge_lines(
            line,
            leaf_line(
                "echo", f"request {level} served by host{level} in {level * 7} ms\n" * 30, 512
            ),
            256,
        )
        if "restarted on host17" in line:
            assert re.search(r"not\S*(?:…| )(?:.{0,80})restarted on host17", line)


def test_chinese_sentences_are_divided_and_the_facts_kept():
    text = (
        "你好！我们决定改用PostgreSQL 16，而不是MySQL，因为索引更快。张伟明负责在3月14日之前完成测试。"
        + "我看了一下文件，感觉没有什么问题。" * 12
        + "客户编号是88213。"
    )
    line = leaf_line("user", text, 300)
    for kept in ("决定改用PostgreSQL 16", "张伟明", "3月14日", "88213"):
        assert kept in line
    assert line.count("感觉没有什么问题") <= 1


def test_japanese_sentences_are_divided_and_the_facts_kept():
    text = (
        "こんにちは。MySQLの代わりにPostgreSQL 16を使うことに決定しました。田中さんが3月14日までにテストします。"
        + "ファイルを確認しましたが、特に問題はありませんでした。" * 8
        + "まだ本番環境にはデプロイしていません。"
    )
    line = leaf_line("talk", text, 330)
    for kept in (
        "PostgreSQL 16を使うことに決定しました",
        "田中さん",
        "3月14日",
        "デプロイしていません",
    ):
        assert kept in line


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "안녕하세요. MySQL 대신 PostgreSQL 16을 사용하기로 결정했습니다. "
            + "파일을 확인했지만 특별한 문제는 없었습니다. " * 9
            + "고객 번호는 88213입니다.",
            ("PostgreSQL 16", "결정했습니다", "88213"),
        ),
        (
            "Hallo! Die Rechnung 88213 wird erst im Mai bezahlt. "
            + "Ich habe mir die Datei angesehen und es gibt nichts zu berichten. " * 8
            + "Frau Schönbächler entscheidet das statt Herrn Maier.",
            ("Rechnung 88213 wird erst im Mai", "Schönbächler"),
        ),
        (
            "Здравствуйте! "
            + "Я посмотрел файл и всё остальное там по-прежнему так же. " * 8
            + "Решили взять PostgreSQL вместо MySQL, отвечает Петрова. Счёт 88213.",
            ("Решили взять PostgreSQL вместо MySQL", "Петрова", "88213"),
        ),
        (
            "สวัสดีครับ "
            + "ผมดูไฟล์แล้วไม่มีปัญหาอะไรเลยครับทุกอย่างเรียบร้อยดี " * 6
            + "ลูกค้าหมายเลข 88213 ใช้เซิร์ฟเวอร์ db2.example.com",
            ("88213", "db2.example.com"),
        ),
        (
            "مرحبا "
            + "نظرت في الملف ولم أجد أي مشكلة فيه وكل شيء على ما يرام. " * 8
            + "رقم الفاتورة 88213 على الخادم db2.example.com",
            ("88213", "db2.example.com"),
        ),
    ],
    ids=["korean", "german", "russian", "thai", "arabic"],
)
def test_other_languages_keep_names_and_numbers(text, kept):
    line = leaf_line("user", text, 300)
    for part in kept:
        assert part in line


def test_a_tool_call_keeps_its_name_and_what_it_was_done_to():
    call = {
        "command": "psql -h db2.example.com -c 'select count(*) from invoices'",
        "timeout": 120,
        "env": {"LANG": "C", "MODE": "slow"},
        "note": "as before " * 60,
    }
    line = leaf_line("tool", f"terminal {json.dumps(call)}", 200)
    assert line.startswith("tool: terminal command=psql -h db2.example.com")
    assert "{" not in line


def test_a_written_file_keeps_its_path_before_its_content():
    call = {
        "path": "/home/ana/shop/pricing.py",
        "content": "from decimal import Decimal\n\n"
        + "def price_of(cart):\n    return sum(cart)\n" * 40,
    }
    assert "write_file path=/home/ana/shop/pricing.py" in leaf_line(
        "tool", f"write_file {json.dumps(call)}", 160
    )


def test_numbers_of_json_stand_as_they_were_written():
    data = {
        "rate": 1.10,
        "big": 12345678901234567890,
        "exp": 0,
        "note": "same again and again " * 40,
    }
    text = json.dumps(data).replace('"exp": 0', '"exp": 1E5')
    line = leaf_line("echo", text, 200)
    for shown in ("rate=1.1", "big=12345678901234567890", "exp=1E5"):
        assert shown in line


def test_json_without_end_or_bottom_is_read_as_lines():
    assert leaf_line("echo", '{"a": ' * 5000 + "1}", 128).startswith("echo: ")
    assert leaf_line("echo", "[" * 100_000 + "]" * 100_000, 128).startswith("echo: ")


def test_a_result_keeps_its_status_its_failure_and_its_first_line_but_no_repeats():
    data = {
        "output": "Reading package lists...\n"
        + "Get:1 http://deb.example.org stable [151 kB]\n" * 40
        + "E: Unable to locate package libfoo7-dev\n",
        "exit_code": 100,
        "error": None,
    }
    line = leaf_line("echo", json.dumps(data), 256)
    for kept in ("Reading package lists", "Unable to locate package libfoo7-dev", "exit_code=100"):
        assert kept in line
    assert line.count("deb.example.org") <= 1


def test_a_test_run_keeps_the_failure_and_the_count():
    text = "\n".join(f"tests/test_mod{n}.py::test_case_{n} PASSED [{n}%]" for n in range(60))
    text += (
        "\nE   AssertionError: assert Decimal('10.00') == Decimal('10.01')\nFAILED "
        "tests/test_billing.py::test_refund - AssertionError\n=== 1 failed, 60 passed in 4.21s "
        "==="
    )
    line = leaf_line("echo", text, 300)
    for kept in (
        "Decimal('10.00') == Decimal('10.01')",
        "tests/test_billing.py::test_refund",
        "1 failed, 60 passed",
    ):
        assert kept in line


PYTHON_TRACE = """Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/flask/app.py", line 2190, in wsgi_app
    response = self.full_dispatch_request()
  File "/home/ana/shop/views.py", line 88, in create_order
    total = price_of(cart)
  File "/home/ana/shop/pricing.py", line 41, in price_of
    rate = TAX[cart.country]
  File "/usr/lib/python3.11/collections/__init__.py", line 1023, in __getitem__
    raise KeyError(key)
KeyError: 'no tax rate for country XK'"""
NODE_TRACE = """TypeError: Cannot read properties of undefined (reading 'currency')
    at formatPrice (/app/src/money.ts:27:18)
    at CartLine (/app/src/CartLine.tsx:54:9)
    at renderWithHooks (/app/node_modules/react-dom/cjs/react-dom.development.js:16305:18)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)"""
JAVA_TRACE = """Exception in thread "main" java.lang.IllegalStateException: ledger 7731 is closed
\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)
\tat com.acme.ledger.Book.post(Book.java:118)
\tat com.acme.ledger.Importer.run(Importer.java:64)
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"""


@pytest.mark.parametrize(
    ("trace", "kept", "dropped"),
    [
        (PYTHON_TRACE, ("no tax rate for country XK", "/home/ana/shop/pricing.py"), "flask/app.py"),
        (
            NODE_TRACE,
            ("Cannot read properties of undefined", "/app/src/money.ts:27:18"),
            "react-dom",
        ),
        (
            JAVA_TRACE,
            (
                "java.lang.IllegalStateException",
                "com.acme.ledger.Book.post(Book.java:118)",
                "No space left on device",
            ),
            "requireNonNull",
        ),
    ],
    ids=["python", "node", "java"],
)
def test_a_trace_keeps_its_exception_and_the_innermost_frame_of_the_users_code(
    trace, kept, dropped
):
    line = leaf_line("echo", trace, 220)
    for part in kept:
        assert part in line
    assert dropped not in line


def test_a_diff_keeps_its_file_and_both_sides_of_a_change():
    diff = """diff --git a/src/config.py b/src/config.py
index 83db48f..bf2a1c3 100644
--- a/src/config.py
+++ b/src/config.py
@@ -12,7 +12,7 @@ class Config:
     host: str = "0.0.0.0"
-    timeout_s: int = 30
+    timeout_s: int = 90
     retries: int = 3
     workers: int = 4
 def load(path):
     with open(path) as file:
         return Config(**parse(file))"""
    line = leaf_line("echo", diff, 200)
    for kept in ("src/config.py", "- timeout_s: int = 30", "+ timeout_s: int = 90"):
        assert kept in line


def test_a_table_keeps_its_head_and_rows_without_rulers():
    table = "| name | region | cost |\n|------|--------|------|\n" + "\n".join(
        f"| node-{n} | eu-west-{n % 3} | {n * 13}.50 |" for n in range(30)
    )
    line = leaf_line("echo", table, 256)
    assert "name | region | cost" in line
    assert "node-0 | eu-west-0 | 0.50" in line
    assert "---" not in line


def test_a_log_keeps_the_line_that_differs():
    log = "\n".join(
        f"2026-03-01T10:00:{n % 60:02d}Z INFO request {n} served in {n % 97} ms" for n in range(400)
    )
    log = log.replace("request 287 served in 93 ms", "worker ledger-7 lost its lease on shard 4411")
    line = leaf_line("echo", log, 128)
    assert "worker ledger-7 lost its lease on shard 4411" in line
    assert line.count("INFO request") <= 2
    assert "2026-03-01T10" not in line


def test_base64_is_a_marker_with_its_length():
    blob = "iVBORw0KGgoAAAANSUhEUgAA9x/K" * 4000
    line = leaf_line(
        "user",
        f"Here is the photo: data:image/png;base64,{blob} please put it on the Lisbon page.",
        512,
    )
    assert (
        line
        == f"user: Here is the photo: [base64, {len(blob)} bytes] please put it on the Lisbon page."
    )
    wrapped = "\n".join(blob[at : at + 76] for at in range(0, len(blob), 76))
    line = leaf_line("echo", f"$ base64 photo.png\n{wrapped}\ndone with photo.png", 512)
    assert f"[base64, {len(wrapped)} bytes]" in line
    assert "iVBORw0" not in line


def test_the_marker_of_a_blob_is_kept_or_dropped_but_never_cut():
    text = (
        f"First we saw the report of Okonkwo. {'QWxhZGRpbjpvcGVuIHNlc2FtZQ9' * 40} Then came "
        "INV-88213. " + "It looks fine to me and to everyone else. " * 20
    )
    line = leaf_line("talk", text, 128)
    for level in range(4):
        line = merge_lines(line, f"user: {PROSE[level * 40 : level * 40 + 300]}", 160)
        assert re.sub(r"\[base64, 1080 bytes\]", "", line).count("1080") == 0


def test_a_terminals_colours_are_no_text():
    line = leaf_line(
        "echo",
        "\x1b[1;31mFAILED\x1b[0m tests/test_ledger.py::test_\x1b[32mclose_9\x1b[0m\n"
        + "ok and again ok\n" * 60,
        256,
    )
    assert line.startswith("echo: FAILED tests/test_ledger.py::test_close_9")


def test_a_large_picture_in_an_address_is_one_marker():
    url = "data:image/png;base64," + base64.b64encode(random.Random(5).randbytes(150_000)).decode()
    line = leaf_line("echo", f"before {url} after", 300)
    assert line.startswith("echo: before [base64, 200000 bytes]")
    assert line.count("[base64") == 1


def test_a_sha_is_no_blob():
    sha = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    assert sha in leaf_line(
        "echo", f"sha256 {sha} release.tar.gz\n" + "ok and again ok\n" * 60, 256
    )


def test_quoted_words_weigh_less_than_the_users_own():
    quoted = "\n".join(
        f"> The Harbour plan of {name} costs {n}000 EUR."
        for n, name in enumerate(("Abel", "Bruno", "Carla", "Dora", "Emil"), 3)
    )
    line = leaf_line(
        "user", f"{quoted}\nPlease tell Marchetti that the Harbour plan is too dear.", 128
    )
    assert "Please tell Marchetti that the Harbour plan is too dear." in line


QUOTES = "\n".join(
    f"{8 * k}+8|user: The deposit for shed {k} is {k}00 euros, to be paid by Friday. talk: Noted."
    for k in range(12)
)


@pytest.mark.parametrize(
    "quotes",
    [QUOTES, QUOTES.replace("\n", "\n\n"), "\n".join(f"> {line}" for line in QUOTES.splitlines())],
)
def test_what_an_agent_quotes_from_its_memory_is_not_told_once_more_as_something_new(quotes):
    answer = (
        f"This is all I know of the sheds:\n\n{quotes}\n\nShed 7 is new to me: I have asked Ilse "
        "to look it up."
    )
    for line in (
        leaf_line("talk", answer, 300),
        merge_lines(leaf_line("talk", answer, 300), leaf_line("user", PROSE, 300), 300),
    ):
        assert "deposit" not in line
        assert "user: The" not in line
    assert "[12 lines of the memory, quoted]" in leaf_line("talk", answer, 300)
    assert "Ilse" in leaf_line("talk", answer, 300)


def test_only_whole_lines_of_a_view_are_quotes_of_it():
    table = (
        "Sum of the sheds:\n3+4|user: one\n1+3|talk: two\n12+4|three\n0+0|user: four\nsee "
        "8+8|user: five\n" + "and so on " * 60
    )
    kept = plain(table)
    for word in ("one", "two", "three", "four", "five"):
        assert word in kept
    assert plain("a\n5+1|user: x\nb") == "a\n[a line of the memory, quoted]\nb"
    assert (
        plain("0+2|user: x talk: y\nbetween\n2+1|user: z")
        == "[a line of the memory, quoted]\nbetween\n[a line of the memory, quoted]"
    )


def test_a_hard_wrapped_sentence_is_one_sentence():
    text = (
        "we decided to move the ledger to\npostgres on the machine that Okonkwo\nset up. "
        + "There is nothing else to say about it. " * 20
    )
    assert (
        "we decided to move the ledger to postgres on the machine that Okonkwo set up"
        in leaf_line("user", text, 256)
    )


@pytest.mark.parametrize(
    "text",
    [
        "😀" * 2000,
        " " * 9000,
        "\n" * 9000,
        "-" * 9000,
        "!?" * 5000,
        "\x00" * 9000,
        "\u3000" * 5000,
        "\u0301" * 5000,
    ],
)
def test_text_without_a_word_still_gives_a_line(text):
    line = leaf_line("user", text, 128)
    assert line.startswith("user: ")
    assert line.endswith(GAP)
    assert len(line.encode()) <= 128


def test_text_without_a_word_keeps_its_own_kind_in_a_merge():
    for text in ("😀" * 200, "- " * 200):
        assert re.fullmatch(r"talk: \S.*", merge_lines("user: ", f"talk: {text}", 128))


def test_a_message_that_is_one_block_of_code_still_gives_its_words():
    code = (
        "```python\n"
        + "\n".join(f"def step_{n}(ledger_{n}): return close(ledger_{n})" for n in range(40))
        + "\n```"
    )
    assert re.search(r"def step_\d+\(ledger_\d+\)", leaf_line("talk", code, 256))


def test_an_unknown_or_odd_kind_still_gives_a_tag():
    assert leaf_line("image", PROSE, 128).startswith("image: ")
    assert re.match(r"[^\s:]{1,32}: \S", leaf_line("a b:c\n" * 40, PROSE, 128))
    assert re.match(r"note: \S", leaf_line("", PROSE, 128))


# ---- secrets


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("use sk-proj-a1B2c3D4e5F6g7H8i9J0 for it", "a1B2c3D4"),
        ("git clone with ghp_a1B2c3D4e5F6g7H8i9J0k1L2", "a1B2c3D4"),
        ("AKIAIOSFODNN7EXAMPLE is the id", "IOSFODNN7"),
        ("password=correcthorse", "correcthorse"),
        ("Passwort: hunter22", "hunter22"),
        ("密码：hunter22", "hunter22"),
        ('{"api_key": "f3a9c1d27b6e4f8890aa"}', "f3a9c1d2"),
        ('{"output": "{\\"access_token\\": \\"f3a9c1d27b6e4f8890aa\\"}"}', "f3a9c1d2"),
        ("export DB_PASSWORD='s3cr3t pass'", "s3cr3t"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123"),
        ("Authorization: Token abcdef0123456789", "abcdef0123"),
        ("curl --api-key abcdef0123456789 https://x.example", "abcdef0123"),
        ("<api_key>abcdef0123456789</api_key>", "abcdef0123"),
        ("'api_key' => 'abcdef0123456789'", "abcdef0123"),
        ("| api key | abcdef0123456789 |", "abcdef0123"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIi"),
        ("postgres://ana:hunter22@db2.example.com/x", "hunter22"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----",
            "MIIEow",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA", "MIIEow"),
    ],
)
def test_an_obvious_secret_is_masked_in_leaves_and_merges(text, secret):
    long = f"{text}\n" + "There is nothing else to say about it. " * 20
    for line in (
        leaf_line("user", long, 512),
        leaf_line("echo", long, 512),
        merge_lines(f"user: {text}", leaf_line("talk", PROSE, 512), 512),
    ):
        assert secret not in line
    assert "[secret]" in mask(text)
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "def login(token: str, password: str | None) -> None",
        "max_tokens=512 and tokens: 1532",
        "the primary key: id",
        "task-force of 17 people",
        "if token > most_tokens_of_all and key | other_key_2 else",
        "| API key | see chapter 12 |",
        "use --password or --token-limit 4096_per_day",
        "basic understanding of bearer bonds",
        "see https://example.com/a@b for it",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "pass=5 fail=2",
    ],
)
def test_what_only_looks_like_a_secret_stays(text):
    if "password: str" in text:
        assert "token: str" in mask(text)
    else:
        assert mask(text) == text


# ---- merging


def test_two_lines_that_fit_stay_word_for_word():
    assert merge_lines("user: hi\nthere", "talk: hello", 128) == "user: hi\nthere\ntalk: hello"


def test_a_short_word_of_the_user_outlives_long_output():
    logs = leaf_line(
        "echo",
        "\n".join(f"loaded chunk {n} of file_{n * 7}.bin from host{n}" for n in range(90)),
        512,
    )
    line = "user: never deploy on Fridays"
    for _ in range(6):
        line = merge_lines(line, logs, 512)
    assert "never deploy on Fridays" in line


def test_order_is_kept_and_kinds_stay_with_their_words():
    left = (
        leaf_line("user", "Okonkwo1 asks. " + PROSE, 400)
        + "\n"
        + leaf_line("talk", "Lindqvist2 answers. " + PROSE[::-1], 100)
    )
    right = leaf_line("echo", "Marchetti3 error: disk full on host33. " + PROSE * 2, 400)
    line = merge_lines(left, right, 300)
    found = re.findall(r"^(user|talk|echo): ", line, re.MULTILINE)
    assert found == sorted(found, key=("user", "talk", "echo").index)
    assert "user" in found
    assert "echo" in found


def test_neither_half_is_erased():
    loud = "\n".join(
        f"user: We decided that Okonkwo{n} owns INV-{n}88213 and /srv/app{n}/x.toml."
        for n in range(12)
    )
    quiet = (
        "tool: read_file path=/srv/quiet/notes.md\necho: 12 lines, nothing special, ends with "
        "marker_4711"
    )
    for left, right in ((loud, quiet * 3), (quiet * 3, loud)):
        line = merge_lines(left, right, 512)
        assert "quiet" in line or "marker_4711" in line
        assert "Okonkwo" in line


def test_a_clause_said_in_both_halves_stands_once():
    said = "The invoice INV-88213 was paid by Okonkwo in Lisbon."
    line = merge_lines(
        f"user: {said}\n" + leaf_line("talk", PROSE, 400),
        f"talk: {said}\n" + leaf_line("echo", PROSE, 400),
        512,
    )
    assert line.count("was paid by Okonkwo in Lisbon") == 1
    assert line.startswith("user: The invoice INV-88213")


def test_a_decision_and_its_reversal_both_stand():
    line = merge_lines(
        "user: We decided to use Postgres instead of MySQL.\n"
        + leaf_line("echo", "loaded chunk and again a chunk\n" * 40, 300),
        "user: We decided to use MySQL instead of Postgres.\n"
        + leaf_line("echo", "wrote page and again a page\n" * 40, 300),
        200,
    )
    assert "use Postgres instead of MySQL" in line
    assert "use MySQL instead of Postgres" in line


def test_a_line_of_someone_elses_log_is_no_item():
    left = "user: it prints\nerror: no such table\nwarning: none\nthat is all " + "and so on " * 60
    line = merge_lines(left, leaf_line("talk", PROSE, 512), 512)
    assert set(re.findall(r"^(\S+): ", line, re.MULTILINE)) <= {"user", "talk"}


def test_a_models_line_with_all_items_in_one_row_is_divided_at_its_tags():
    left = (
        "user: wants the ledger on Postgres. talk: moved it to db2.example.com. echo: error "
        "E4711 from the old host. " + "It went on for long. " * 20
    )
    line = merge_lines(left, leaf_line("talk", PROSE, 512), 512)
    assert re.match(r"user: wants the ledger on Postgres", line)
    assert re.search(r"^talk: ", line, re.MULTILINE)


def test_text_without_a_kind_is_a_note_and_not_the_users():
    line = merge_lines("The team moved to Lisbon in May. " * 20, leaf_line("talk", PROSE, 512), 256)
    assert line.startswith("note: ")


# ---- what survives


NAMES = (
    "Abernathy",
    "Castellano",
    "Dvořák",
    "Eriksson",
    "Fitzgerald",
    "Gunnarsdóttir",
    "Ibáñez",
    "Jokinen",
    "Kowalczyk",
    "Løvstad",
)
SMALL = (
    "That works for me, and we can look at the details once the first part is in.",
    "I read through it twice and found nothing that would stop us.",
    "Not much has changed since last time, apart from the order of the columns.",
    "You may want to compare both screens before you go on.",
    "It is a small thing, but it would be good to have it done before the next meeting.",
    "Everybody agreed that the shorter version reads better.",
    "Das sieht gut aus, den Rest machen wir dann nächste Woche.",
    "Puedes seguir con la parte siguiente cuando quieras.",
    "这个部分看起来没有问题，可以继续。",
)
OUTPUT = (
    "GET /api/items/{n} 200 in {m} ms",
    "compiled module {n} of 412",
    "   {m} files checked, none changed",
    "PASS src/list/row{m}.test.ts ({n} ms)",
    "worker {m} idle",
    "{n} rows copied",
)


def _fact(pick: random.Random) -> tuple[str, str, str]:
    """Kind, sentence, and the rare term a later search would look for."""
    n, m, name = (
        pick.randrange(10_000, 99_999),
        pick.randrange(2, 99),
        f"{pick.choice(NAMES)}{pick.choice('xyzkq')}",
    )
    return pick.choice(
        (
            ("user", f"My sister {name} arrives on the {m % 28 + 1}th.", name),
            (
                "user",
                f"From now on every export goes to bucket-{n} and nowhere else.",
                f"bucket-{n}",
            ),
            ("user", f"Kundennummer {n} gehört zu dem Vertrag aus dem Herbst.", str(n)),
            ("user", f"会议室改到{n}号，请通知大家。", str(n)),
            (
                "talk",
                f"The leak came from pool_size_{n}, which nobody had closed.",
                f"pool_size_{n}",
            ),
            ("talk", f"I wrote the summary to docs/report-{n}.md for {name}.", f"report-{n}.md"),
            ("work", f"The subagent found that part {n} ships from Rotterdam only.", str(n)),
            ("echo", f"fatal: object {n:x}c0ffee{m} is missing", f"{n:x}c0ffee{m}"),
            (
                "tool",
                f'terminal {{"command": "kubectl scale deploy/web-{n} --replicas={m}"}}',
                f"web-{n}",
            ),
        )
    )


def conversation(seed: int, count: int, every: int) -> list[tuple[str, str, str]]:
    """``count`` messages of mixed kinds and sizes.

    Every ``every``-th has one fact among the small talk.
    """
    pick, out = random.Random(seed), []
    for number in range(count):
        kind, fact, term = (
            _fact(pick)
            if number % every == every - 1
            else (pick.choice(("user", "talk", "talk", "tool", "echo", "echo")), "", "")
        )
        if kind == "tool":
            text = (
                fact or f'read_file {{"path": "src/list/row{pick.randrange(40)}.ts", "limit": 200}}'
            )
        elif kind == "echo":
            lines = [
                pick.choice(OUTPUT).format(n=pick.randrange(1000), m=pick.randrange(99))
                for _ in range(pick.randrange(1, 40))
            ]
            text = "\n".join(
                [*lines[: len(lines) // 2], *([fact] if fact else []), *lines[len(lines) // 2 :]]
            )
        else:
            said = [
                pick.choice(SMALL) for _ in range(pick.randrange(1, 4 if kind == "user" else 12))
            ]
            said[len(said) // 2 : len(said) // 2] = [fact] if fact else []
            text = " ".join(said)
        out.append((kind, text, term))
    return out


def survival(messages, leaf, merge, levels: int) -> list[float]:
    """The share of facts whose term stands in the line that covers them, from level 0 up."""
    lines = [leaf(kind, text, 512) for kind, text, _ in messages]
    facts = [(number, term.lower()) for number, (_, _, term) in enumerate(messages) if term]
    shares = []
    for level in range(levels + 1):
        shares.append(
            sum(term in lines[number >> level].lower() for number, term in facts) / len(facts)
        )
        lines = [merge(a, b, 512) for a, b in zip(lines[::2], lines[1::2], strict=True)]
    return shares


def head_leaf(kind: str, text: str, limit: int) -> str:
    return clip(f"{kind}: {text}", limit)


def head_merge(left: str, right: str, limit: int) -> str:
    """The naive rival.

    Both lines cut to their heads, with what one does not need given to the other.
    """
    half = limit // 2
    head = clip(left, max(half, limit - 1 - len(right.encode())))
    return f"{head}\n{clip(right, limit - 1 - len(head.encode()))}"


# Measured on this conversation: 1.00 1.00 1.00 1.00 0.92 0.89 with a fact in every eighth message
# and 1.00 1.00 1.00 1.00 0.89 0.73 in every fourth; heads have 0.98 0.87 0.36 0.01 0 0. At level 5
# a line has 512 bytes for 32 messages.
@pytest.mark.parametrize(
    ("every", "least"),
    [(8, (1.0, 1.0, 0.98, 0.96, 0.9, 0.85)), (4, (1.0, 1.0, 0.98, 0.95, 0.85, 0.7))],
)
def test_rare_facts_survive_five_levels_where_heads_lose_them(every, least):
    messages = conversation(11, 512, every)
    ours = survival(messages, leaf_line, merge_lines, 5)
    heads = survival(messages, head_leaf, head_merge, 5)
    assert all(share >= floor for share, floor in zip(ours, least, strict=True))
    assert all(share >= naive for share, naive in zip(ours, heads, strict=True))
    assert all(share >= naive + 0.4 for share, naive in zip(ours[2:], heads[2:], strict=True))


def test_ten_levels_up_a_line_still_names_facts_from_across_the_whole_time():
    messages = conversation(3, 1024, 16)
    line_of = [leaf_line(kind, text, 512) for kind, text, _ in messages]
    while len(line_of) > 1:
        line_of = [merge_lines(a, b, 512) for a, b in zip(line_of[::2], line_of[1::2], strict=True)]
    named = [
        number
        for number, (_, _, term) in enumerate(messages)
        if term and term.lower() in line_of[0].lower()
    ]
    assert len(named) >= 8
    assert {number * 4 // len(messages) for number in named} == {0, 1, 2, 3}


# ---- time and size


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        " ",
        "\n",
        ".",
        "password=",
        'password="',
        "=",
        ":",
        "-----BEGIN PRIVATE KEY-----",
        "http://",
        "data:;base64,",
        "{",
        "[1,",
        '{"a":',
        "at x\n",
        "…",
        "A1b2",
        "。",
        "漢",
        "e\u0301",
        "user: ",
        "… user: ",
        "? ",
        "** a",
        "eyJaaaaaaaaaa.",
        "\x1b[",
        "👩\u200d",
        "\ud800",
        "no ",
        "```\n",
        "x…y ",
    ],
)
def test_no_repetition_takes_more_than_linear_time(piece, request):
    def seconds(size: int) -> float:
        text, best = piece * (size // len(piece)), 1e9
        for _ in range(2):
            start = time.process_time()
            leaf_line("echo", text, 512)
            merge_lines(f"user: {text}", text, 512)
            best = min(best, time.process_time() - start)
        return best

    request.addfinalizer(gc.enable)
    gc.disable()  # a collection goes through what all tests before have left

    assert (
        seconds(32_000) < 24 * seconds(4_000) + 0.03
    )  # eight times the text; 64 times would be quadratic


@pytest.mark.parametrize(
    ("piece", "count"),
    [("We met Okonkwo. ", 3_300_000), ("A1x2" * 19 + "\n", 700_000), ("😀", 13_000_000)],
    ids=["prose", "base64", "emoji"],
)
def test_a_message_of_fifty_megabytes_takes_less_than_three_seconds(piece, count):
    text = piece * count
    start = time.process_time()
    line = leaf_line("echo", text, 512)
    assert time.process_time() - start < 3
    assert len(line.encode()) <= 512
    if "\n" in piece:
        assert f"[base64, {len(text)} bytes]" in line


def test_of_a_huge_text_head_and_tail_are_looked_at():
    text = (
        "It began with Okonkwo. "
        + "Nothing to see in this place either. " * 20_000
        + "It ended with Lindqvist."
    )
    line = leaf_line("talk", text, 256)
    assert "Okonkwo" in line
    assert "Lindqvist" in line
