"""Redacting a message: what is left of its words, on disk and in whoever has the memory open."""

import pytest

from optchat.storage.search import Search


@pytest.fixture
def search(tmp_path):
    one = Search(tmp_path / "search.sqlite", lambda: 7)
    yield one
    one.close()


def bytes_of(directory):
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


# -- the full text


def test_a_replaced_text_leaves_no_byte_in_the_full_text(search, tmp_path):
    texts = [f"message {number} about word{number}" for number in range(50)]
    texts[7] = "the key is zzqqxxyysecret"
    for first in range(0, 50, 10):
        search.add(first, texts[first : first + 10])
    assert search.look_up(["zzqqxxyysecret"]).postings
    assert b"zzqqxxyysecret" in bytes_of(tmp_path)
    search.replace(7, texts[7], "[redacted]")
    assert not search.look_up(["zzqqxxyysecret"]).postings
    assert search.clean()
    assert b"zzqqxxyysecret" not in bytes_of(tmp_path)
    assert search.look_up(["word8"]).postings["word8"].ids == [8]
    assert search.look_up(["redact"]).postings


def test_replacing_a_text_twice_takes_nothing_from_others(search):
    search.add(0, ["the deposit is thirty", "the deposit is forty"])
    for _ in range(3):
        search.replace(0, "the deposit is thirty", "[redacted]")
        search.replace(0, None, "[redacted]")
    assert search.look_up(["deposit"]).postings["deposit"].ids == [1]
    assert search.indexed() == 2


def test_what_was_read_before_a_text_was_replaced_is_not_added_after_it(search):
    search.add(0, ["one"])
    before = search.made()
    search.replace(1, "a secret word", "[redacted]")  # not in the index yet: somebody is about to add it
    search.add(1, ["a secret word"], since=before)
    assert search.indexed() == 1
    search.add(1, ["[redacted]"], since=search.made())
    assert search.indexed() == 2
    assert not search.look_up(["secret"]).postings


def test_what_was_read_before_is_not_added_to_an_index_that_was_not_there_either(search):
    before = search.made()
    assert before == 0
    search.replace(0, "a secret word", "[redacted]")
    search.add(0, ["a secret word"], since=before)
    assert search.indexed() == 0


def test_where_nobody_knows_what_was_replaced_the_full_text_is_made_anew(search):
    search.add(0, ["a secret word", "another"])
    search.replace(0, None, "[redacted]")
    assert search.indexed() == 0


def test_an_index_that_was_deleted_is_not_gone_on_with_in_the_middle(search, tmp_path):
    search.add(0, ["one", "two"])
    (tmp_path / "search.sqlite").unlink()
    search.add(2, ["three"])
    assert search.indexed() == 0
