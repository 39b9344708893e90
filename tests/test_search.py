"""Finding messages by their words, in any language, whatever became of the index."""

import sqlite3
import unicodedata
from typing import ClassVar

import pytest
from soundness import assert_sound

from optchat.base.errors import OptchatError
from optchat.base.record import Entry, Message
from optchat.log import postings
from optchat.log.fulltext import Search
from optchat.log.sqlite import Database
from optchat.recall.focus import find
from optchat.recall.rank import singles_out
from optchat.recall.recall import POINTED
from optchat.recall.search import hits


def log(memory, *texts):
    memory.record([Entry(kind="user", text=text) for text in texts])
    assert memory.settle(30)


def log_apart(memory, *texts):
    """Each in a session of its own: what stands beside a match is lifted by it."""
    memory.record(
        [Entry(kind="user", text=text, session=f"s{number}") for number, text in enumerate(texts)]
    )
    assert memory.settle(30)


def found(memory, query, limit=20, *, newest=False):
    return [hit.id for hit in memory.search(query, limit, newest=newest)]


def test_messages_are_found_by_their_words_those_with_all_of_them_first(memory):
    log_apart(
        memory, "the invoice of Maria is late", "Maria sings", "an invoice", "nothing of that"
    )
    assert found(memory, "Maria invoice")[0] == 0
    assert set(found(memory, "Maria invoice")) == {0, 1, 2}
    assert found(memory, "MARIA sings")[0] == 1


def test_a_hit_is_the_message_whole_with_a_line_that_can_be_opened(memory, clock):
    text = "and more. " * 500 + "an umbrella\n" + "and more. " * 500
    memory.record([Entry(kind="talk", text=text, session="s1")])
    memory.settle(30)
    (hit,) = memory.search("umbrella")
    assert (hit.id, hit.kind, hit.session, hit.date) == (
        0,
        "talk",
        "s1",
        clock().isoformat(timespec="seconds"),
    )
    assert hit.text == text
    assert hit.line.startswith("0+1|talk: …")
    assert "umbrella" in hit.line
    assert len(hit.line) < 450
    assert memory.zoom(hit.line).startswith("0+1|")


def test_hits_come_best_or_newest_first(memory):
    others = (f"something else {number}" for number in range(9))
    log_apart(
        memory,
        "the invoice of Maria is late",
        "Maria paid the invoice",
        *others,
        "Maria sings",
        "an invoice of 3 euros",
        "Maria likes the sea, and the harbour, and rain",
    )
    assert set(found(memory, "Maria invoice", 2)) == {0, 1}
    assert found(memory, "Maria invoice", 3)[2] in (11, 12)
    assert found(memory, "Maria invoice", newest=True) == [1, 0], (
        "one word of two is no hit while others hold both"
    )
    assert found(memory, "Maria", newest=True) == [13, 11, 1, 0]
    assert found(memory, "Maria", 2, newest=True) == [13, 11]
    assert found(memory, "Maria submarine", 2, newest=True) == [13, 11]


def test_the_users_words_come_before_tool_output_and_a_repeated_text_once(memory):
    memory.record(
        [
            Entry(kind="echo", text="retry of invoice export failed"),
            Entry(kind="user", text="why a retry of the invoice export?"),
            *[Entry(kind="talk", text="nothing to add")] * 9,
        ]
    )
    log(memory, *["an invoice  twice", "An invoice twice"] * 20)
    assert found(memory, "invoice export retry", 2) == [1, 0]
    assert found(memory, "invoice twice") == [50, 1, 0]
    assert found(memory, "invoice twice", newest=True) == [50]


def test_words_that_stand_everywhere_are_found_newest_first(memory, monkeypatch):
    for name in ("LISTED", "_LISTED_ANYWAY"):
        monkeypatch.setattr(postings, name, 3)
    log(
        memory,
        *[f"the deploy {k}" for k in range(40)],
        *[f"a release {k}" for k in range(40)],
        "deploy and release",
    )
    assert found(memory, "deploy", 3) == [80, 39, 38]
    assert found(memory, "what did you deploy?", 3) == [80, 39, 38]
    assert found(memory, "deploy release", 3)[0] == 80
    assert found(memory, "the", 3) == [39, 38, 37], "where nothing else is asked for"
    assert found(memory, "release 7")[:2] == [47, 7]
    log(memory, "another deploy")
    assert found(memory, "the release", 2) == [80, 79]
    assert len(found(memory, "the a", 5)) == 5, "words that never stand together"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们决定把数据库迁移到新的服务器上", "数据库"),
        ("我们决定把数据库迁移到新的服务器上", "服务器 迁移"),
        ("会議は木曜日に延期されました", "木曜日"),
        ("会議は木曜日に延期されました", "れまし"),
        ("コーヒーを二杯ください", "ヒー"),
        ("ﾃﾞｰﾀﾍﾞｰｽの移行", "データベース"),
        ("第3回の会議", "3回"),
        ("서버가 다시 시작되었습니다", "서버"),
        ("서버가 다시 시작되었습니다", "작되"),
        ("진짜 ㅋㅋㅋㅋ 웃기다", "ㅋㅋ"),
        ("아 ㅋㅠㅠ", "ㅠㅠ"),
        ("葛\U000e0100城市に住む", "葛城"),
        ("die Daten\u00adbank", "Datenbank"),
        (unicodedata.normalize("NFD", "서버를 재시작"), "서버를"),
        (unicodedata.normalize("NFD", "データの移行"), "データ"),
        ("mixed 数据库 and English", "数据库 English"),
        ("Übergrößenträger für München", "münchen"),
        ("Решение принято в четверг", "ЧЕТВЕРГ"),
        ("see optchat/core/view.py line 42", "view.py"),
        ("error E1234: timeout after 30s", "E1234"),
        ("snake_case_name and camelCase", "snake_case_name"),
    ],
)
def test_words_of_any_language_are_found(memory, text, query):
    log(memory, "something else", text, "and again other words 其他的")
    assert found(memory, query)[0] == 1


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "?!",
        '"',
        "'",
        "AND",
        "OR NOT",
        "NEAR(a b)",
        "a*",
        "(",
        "^x",
        "col:x",
        "-x",
        "_",
        "__",
        "_ foo",
        "\x00",
        "\ud83d",
        "\ud83d foo",
        "🙂",
        "ǆ" * 9,
        "x" * 100_000,
        "a b c " * 5_000,
        "%",
        "\\",
        "中",
    ],
)
def test_nothing_a_user_may_type_is_an_error(memory, query):
    log(memory, "foo bar", "中文")
    assert isinstance(memory.search(query), list)
    assert isinstance(memory.search(query, newest=True), list)


@pytest.mark.parametrize("limit", [0, -1, 1, 5, 10**9, 2**70])
def test_any_limit_is_kept_within_reason(memory, limit):
    log(memory, *[f"apple {k}" for k in range(30)])
    assert len(memory.search("apple", limit)) == min(max(limit, 1), 30)


@pytest.mark.parametrize(
    "text", ["", "\x00", "a\x00b needle", "\ud83d needle", "needle " * 300_000, "𝄞" * 100]
)
def test_any_text_can_be_made_searchable(memory, text):
    log(memory, "first", text, "last word")
    assert found(memory, "last") == [2]
    assert (1 in found(memory, "needle")) == ("needle" in text)


class LongLog:
    """Half a million messages that nobody had to write.

    Texts by number, but for a few that say what no other says.
    """

    TOTAL = 500_003
    KNOWN: ClassVar = {
        1: ("user", "The new accountant is called Ottoline Fernsby, by the way."),
        1_500: ("talk", "我们决定把发票导入的重试次数改成五次"),
        1_600: ("talk", "請求書の締め切りは木曜日に延期されました"),
        2_000: ("tool", 'read_file: {"path": "optchat/core/view.py", "limit": 40}'),
    }

    def message(self, id_):
        kind, text = self.KNOWN.get(id_) or (
            "user",
            (
                f"we deploy number {id_} {'早 晚'[id_ % 3]}们 new view{id_ % 7} of core{id_ % 11} "
                "called build"
            ),
        )
        return Message(
            id=id_, kind=kind, text=text, date="2026-05-01T09:00:00+02:00", session=f"s{id_ // 400}"
        )

    def messages_of(self, ids):
        return [self.message(id_) for id_ in sorted(ids)]

    def read(self, look):
        return look(self)

    def sizes_of(self, ids):
        return {id_: len(self.message(id_).text) for id_ in ids}


@pytest.fixture(scope="module")
def long_search(tmp_path_factory):
    log = LongLog()
    search = Search(tmp_path_factory.mktemp("long") / "search.sqlite", lambda: 1)
    for first in range(0, log.TOTAL, 20_000):
        search.add(
            first, [log.message(id_).text for id_ in range(first, min(log.TOTAL, first + 20_000))]
        )
    yield search
    search.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "id_"),
    [
        ("What was the new accountant called, Ottoline?", 1),
        ("Fernsby", 1),
        ("发票的重试次数是多少？", 1_500),
        ("木曜日に延期", 1_600),
        ("what did you read in optchat/core/view.py when we were to deploy the new build?", 2_000),
    ],
)
def test_the_only_mention_half_a_million_messages_ago_is_found(long_search, query, id_):
    matches = find(LongLog(), long_search, query)
    assert matches.best[0].message.id == id_
    assert singles_out(matches.best[0].strength, matches.total, **POINTED)
    assert [hit.id for hit in hits(LongLog(), long_search, query, 1)] == [id_]
    assert id_ in [hit.id for hit in hits(LongLog(), long_search, query, 5, newest=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["deploy", "what did we deploy?", "a new build", "們", "new view3"]
)
def test_what_half_a_million_messages_share_points_to_none_and_is_found_newest_first(
    long_search, query
):
    matches = find(LongLog(), long_search, query)
    assert not any(singles_out(match.strength, matches.total, **POINTED) for match in matches.best)
    newest = [hit.id for hit in hits(LongLog(), long_search, query, 5, newest=True)]
    assert newest == sorted(newest, reverse=True)
    assert len(newest) == (0 if query == "們" else 5)
    assert all(id_ > LongLog.TOTAL - 100 for id_ in newest)


def test_an_empty_log_has_nothing(memory):
    assert memory.search("anything") == []


def test_what_was_said_later_is_found_once_it_is_indexed(memory):
    log(memory, "first apple")
    memory.record([Entry(kind="user", text="second apple")])
    assert memory.status()["full_text_behind"] == 1
    memory.settle(20)
    assert memory.status()["full_text_behind"] == 0
    assert sorted(found(memory, "apple")) == [0, 1]


def test_an_index_that_was_deleted_is_made_again(memory):
    log(memory, "an apple", "a pear")
    for path in memory.root.glob("search.sqlite*"):
        path.unlink()
    assert found(memory, "apple") in ([], [0])
    assert memory.settle(20)
    assert found(memory, "apple") == [0]


@pytest.mark.parametrize("garbage", [b"", b"no database at all " * 500, None])
def test_an_index_that_is_damaged_is_made_again(opened, root, garbage):
    memory = opened()
    log(memory, *[f"apple number {k}" for k in range(200)])
    memory.close()
    path = root / "search.sqlite"
    path.write_bytes(
        garbage
        if garbage is not None
        else path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096)
    )
    memory = opened()
    for _ in range(3):
        try:
            memory.search("apple")
            settled = memory.settle(20)
        except OptchatError as error:
            assert "search.sqlite" in str(error)  # noqa: PT017 -- it may say so once
        else:
            assert settled
    assert len(memory.search("apple", 500)) == 200
    assert_sound(memory)


def test_the_index_of_another_log_is_not_searched(opened, root, tmp_path):
    other = opened(tmp_path / "other")
    log(other, "a secret apple", "x", "y", "z")
    other.close()
    memory = opened()
    log(memory, "my pear", "of mine")
    memory.close()
    (root / "search.sqlite").write_bytes((tmp_path / "other" / "search.sqlite").read_bytes())
    memory = opened()
    assert memory.search("apple") == []
    assert memory.settle(20)
    assert found(memory, "pear") == [0]
    assert memory.search("apple") == []


def test_a_lost_message_is_not_found(opened, root):
    memory = opened()
    log(memory, "an apple", "another apple")
    memory.close()
    (day,) = (root / "main").iterdir()
    day.write_bytes(day.read_bytes().replace(b"another apple", b"another ample"))
    memory = opened()
    assert found(memory, "apple") == [0]


def test_two_memories_on_one_directory_find_the_same(opened):
    memory, other = opened(), opened()
    log(memory, "an apple")
    log(other, "another apple")
    assert sorted(found(memory, "apple")) == sorted(found(other, "apple")) == [0, 1]


def test_a_full_text_file_that_vanishes_while_it_is_opened_is_made_anew(memory, monkeypatch):
    """SQLite calls it an error of the disk."""
    memory.record([Entry(kind="user", text="the needle")])
    gone = sqlite3.OperationalError("disk I/O error")
    gone.sqlite_errorcode = 1802
    assert memory.settle(20)
    real, failing = Database.execute, [True]

    def execute(self, sql, *values):
        if failing and self.path.name == "search.sqlite" and "sqlite_master" in sql:
            failing.clear()
            raise gone
        return real(self, sql, *values)

    monkeypatch.setattr(Database, "execute", execute)
    assert memory.settle(20)
    assert not failing
    assert [hit.id for hit in memory.search("needle")] == [0]
