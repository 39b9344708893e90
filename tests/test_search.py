"""Finding messages by their words, in any language, whatever became of the index."""

import pytest
from soundness import assert_sound

from optchat.core.errors import OptchatError
from optchat.core.records import Entry


def log(memory, *texts):
    memory.record([Entry(kind="user", text=text) for text in texts])
    assert memory.settle(30)


def found(memory, query, limit=20):
    return [hit.id for hit in memory.search(query, limit)]


def test_messages_are_found_by_their_words_those_with_all_of_them_first(memory):
    log(memory, "the invoice of Maria is late", "Maria sings", "an invoice", "nothing of that")
    assert found(memory, "Maria invoice")[0] == 0
    assert set(found(memory, "Maria invoice")) == {0, 1, 2}
    assert found(memory, "MARIA sings")[0] == 1


def test_a_hit_is_the_message_whole(memory, clock):
    memory.record([Entry(kind="talk", text="an umbrella\n" + "and more " * 500, session="s1")])
    memory.settle(30)
    (hit,) = memory.search("umbrella")
    assert (hit.id, hit.kind, hit.session, hit.date) == (0, "talk", "s1", clock().isoformat(timespec="seconds"))
    assert hit.text == "an umbrella\n" + "and more " * 500


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们决定把数据库迁移到新的服务器上", "数据库"),
        ("我们决定把数据库迁移到新的服务器上", "服务器 迁移"),
        ("会議は木曜日に延期されました", "木曜日"),
        ("서버가 다시 시작되었습니다", "서버"),
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
    ["", " ", "?!", '"', "'", "AND", "OR NOT", "NEAR(a b)", "a*", "(", "^x", "col:x", "-x", "_", "__", "_ foo", "\x00", "\ud83d", "\ud83d foo", "🙂", "ǆ" * 9, "x" * 100_000, "a b c " * 5_000, "%", "\\", "中"],
)
def test_nothing_a_user_may_type_is_an_error(memory, query):
    log(memory, "foo bar", "中文")
    assert isinstance(memory.search(query), list)


@pytest.mark.parametrize("limit", [0, -1, 1, 5, 10**9, 2**70])
def test_any_limit_is_kept_within_reason(memory, limit):
    log(memory, *[f"apple {k}" for k in range(30)])
    assert len(memory.search("apple", limit)) == min(max(limit, 1), 30)


@pytest.mark.parametrize("text", ["", "\x00", "a\x00b needle", "\ud83d needle", "needle " * 300_000, "𝄞" * 100])
def test_any_text_can_be_made_searchable(memory, text):
    log(memory, "first", text, "last word")
    assert found(memory, "last") == [2]
    assert (1 in found(memory, "needle")) == ("needle" in text)


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
    path.write_bytes(garbage if garbage is not None else path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096))
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
