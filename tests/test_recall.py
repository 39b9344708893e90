"""What is put in front of the model for a question: on a first turn and on later ones."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import model
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optchat.core.errors import StoreError
from optchat.core.records import Entry
from optchat.core.render import HEAD as VIEW_HEAD
from optchat.core.render import one_line
from optchat.core.settings import Settings
from optchat.memory import Memory
from optchat.recall import added
from optchat.recall.added import HOST_FRAME_CHARS, standing_in

PATIENT = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = ["booking", "import", "invoice", "deadline", "retry", "release", "migration", "harbour", "garden", "violin", "painter", "winter", "kitchen", "journey", "lantern", "bridge"]
HEAD = VIEW_HEAD.partition("\n")[0]
QUERIES = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from([*WORDS, *model.HOSTILE, "AND", "NOT", "NEAR(", '"', "*", "^", "😀", "红色按钮", "0+1|", "-"]), max_size=12).map(" ".join),
    st.sampled_from(["", " ", "\n", "😀" * 50, '"' * 99, "garden " * 15_000, "x" * 100_000, "\x00", "a" * 3 + "*"]),
)


def filler(count, start=0, **fields):
    """Messages with words of their own and few in common."""
    dice = model.random.Random(start)
    fields = {"session": "old"} | fields
    return [
        Entry(kind="user" if k % 2 else "talk", text=f"note {start + k}: " + " ".join(dice.choice(WORDS) + str(dice.randrange(300)) for _ in range(12)), **fields)
        for k in range(count)
    ]


def filled(memory, *entries):
    ids = memory.record(list(entries))
    assert memory.settle(60)
    return ids


def indented(text):
    return [first for first, _, _ in model.shown_lines(text)[1]] if text else []


def says(memory, text, id_):
    """Whether a message stands in a text word for word."""
    return one_line(memory.message(id_).source) in text


def checked(memory, text, budget):
    """Laws 1, 3 and 12 for a whole view."""
    assert len(text) <= budget
    assert text.split("\n") == text.splitlines()
    assert model.host_keeps(text) == text
    plain, below = model.shown_lines(text)
    assert model.tiles([(first, end) for first, end, _ in plain], memory.status()["messages"])
    covering = None
    for row in text.split("\n"):
        match = re.match(r"( *)(\d+)\+(\d+)\|", row)
        if match and match[1]:
            assert covering[0] <= int(match[2]) < covering[1]
        elif match:
            covering = int(match[2]), int(match[2]) + int(match[3])
    assert all(end == first + 1 for first, end, _ in below)


# -- the first turn


@pytest.fixture(scope="module")
def long_memory(tmp_path_factory):
    """Some hundred messages, all built and searchable, with a few among them that a question can mean."""
    with Memory.open(tmp_path_factory.mktemp("recall") / "memory", Settings(), compact=False) as memory:
        filled(
            memory,
            *filler(40),
            Entry(kind="user", text="The new accountant is called Ottoline Fernsby.", session="old", date="2025-11-04T10:00:00+01:00"),
            Entry(kind="talk", text="I will write that down.", session="old", date="2025-11-04T10:00:05+01:00"),
            *filler(40, 100),
            Entry(kind="user", text="我们决定把发票导入的重试次数改成五次", session="old"),
            *filler(40, 200),
            Entry(kind="tool", text='read_file: {"path": "optchat/core/view.py", "limit": 40}', session="old", tool="read_file"),
            Entry(kind="echo", text="the fold\n" * 900, session="old", tool="read_file"),
            *filler(40, 300),
            Entry(kind="echo", text="line of a log\n" * 700 + "FATAL: disk quota exceeded on host lemur-7\n" + "line of a log\n" * 700, session="old"),
            Entry(kind="talk", text="請求書の締め切りは木曜日に延期されました", session="old"),
            Entry(kind="user", text="송장 마감일을 다음 주로 미뤘어요", session="old"),
            *filler(400, 400),
        )
        yield memory


@pytest.mark.parametrize(
    ("query", "id_"),
    [
        ("Who is Ottoline?", 40),
        ("what was the accountant's name", 40),
        ("the accountants!", 40),
        ("发票的重试次数是多少？", 82),
        ("重试次数", 82),
        ("締め切りはいつ延期された？", 166),
        ("木曜日", 166),
        ("마감일은 언제로 미뤘지?", 167),
        ("송장", 167),
        ("what did you read in optchat/core/view.py?", 123),
        ("view.py", 123),
        ("What did I say on 4 November 2025?", 40),
        ("am 4.11.2025?", 40),
    ],
)
def test_a_question_finds_its_message(long_memory, query, id_):
    text = long_memory.recall(query)
    checked(long_memory, text, 16_000)
    assert id_ in indented(text)
    assert says(long_memory, text, id_)


def test_the_answer_that_stands_beside_the_words_asked_for_is_shown_too(long_memory):
    assert {40, 41} <= set(indented(long_memory.recall("Ottoline Fernsby")))


def test_of_a_long_message_the_part_that_matters_is_shown_and_what_is_cut_is_marked(long_memory):
    text = long_memory.recall("which host ran over its disk quota?")
    (line,) = [row for row in text.split("\n") if "lemur-7" in row]
    assert line.startswith("  165+1|echo: …")
    assert line.endswith("…")
    assert "FATAL: disk quota exceeded on host lemur-7" in line
    assert len(line) < 1_100


@pytest.mark.parametrize("query", ["", "  ", "note", "What about the note?", "the of and", "😀", '"*"', "zzyzx quux", "what did we say?"])
def test_a_weak_match_or_none_leaves_the_plain_view(long_memory, query):
    assert long_memory.recall(query) == long_memory.view()


def test_one_word_that_many_messages_share_is_no_match(opened):
    memory = opened()
    filled(memory, *(Entry(kind="user", text=f"the deploy number {k} {WORDS[k % 16]}") for k in range(500)))
    assert memory.recall("what about the deploy?") == memory.view()
    assert memory.recall("was it 37?") != memory.view()


def test_with_focus_off_the_view_is_shown_as_it_is(opened):
    memory = opened(settings=Settings(focus_chars=0))
    filled(memory, Entry(kind="user", text="The accountant is called Ottoline."), *filler(400))
    assert memory.recall("Ottoline") == memory.view()


@PATIENT
@given(query=QUERIES)
def test_whatever_is_asked_the_view_keeps_its_laws(long_memory, query):
    checked(long_memory, long_memory.recall(query), 16_000)


@PATIENT
@given(
    texts=st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(model.HOSTILE), st.text(max_size=30)), min_size=1, max_size=60),
    long=st.integers(0, 30),
    settled=st.booleans(),
    budget=st.sampled_from([2_000, 2_500, 16_000]),
    query=QUERIES,
)
def test_whatever_was_said_and_is_asked_the_view_keeps_its_laws(tmp_path_factory, texts, long, settled, budget, query):
    dice = model.random.Random(long)
    with Memory.open(tmp_path_factory.mktemp("laws") / "memory", Settings(view_budget_chars=budget), compact=False) as memory:
        entries = [Entry(kind=dice.choice(["user", "talk", "echo"]), text=f"{text} {' '.join(dice.choices(texts, k=long))}") for text in texts]
        memory.record(entries)
        if settled:
            assert memory.settle(60)
        memory.record(entries[:3])
        checked(memory, memory.recall(query), budget)
        checked(memory, memory.recall(texts[0]), budget)


def test_a_repeated_text_is_shown_once(opened):
    memory = opened()
    filled(memory, *(entry for k in range(60) for entry in (*filler(6, 10 * k), Entry(kind="echo", text="retry of invoice export failed"))), *filler(300, 900))
    text = memory.recall("invoice export retry")
    assert sum("retry of invoice export failed" in row for row in text.split("\n") if row.startswith("  ")) == 1


def test_messages_not_searchable_yet_and_a_broken_index_leave_the_plain_view(opened, root, monkeypatch):
    memory = opened()
    filled(memory, Entry(kind="user", text="The accountant is called Ottoline."), *filler(400))
    assert indented(memory.recall("Ottoline"))

    def broken(_terms):
        raise StoreError("the disk is on fire", path=root)

    monkeypatch.setattr(memory._search, "look_up", broken)
    assert memory.recall("Ottoline") == memory.view()


def test_an_index_lost_in_between_leaves_the_plain_view_until_it_is_made_anew(opened, root):
    memory = opened()
    filled(memory, Entry(kind="user", text="The accountant is called Ottoline."), *filler(400))
    for path in root.glob("search.sqlite*"):
        path.unlink()
    assert memory.recall("Ottoline") == memory.view()
    assert memory.settle(60)
    assert indented(memory.recall("Ottoline"))


def test_a_session_is_shown_the_view_once_and_every_turn_where_that_is_set(opened, tmp_path):
    memory = opened()
    filled(memory, *filler(30))
    assert memory.recall("hello", session="s") == memory.view()
    assert memory.recall("hello again", session="s") == ""
    every = opened(tmp_path / "every", settings=Settings(recall="turn"))
    filled(every, *filler(30))
    assert every.recall("hello", session="s") == every.recall("hello", session="s") == every.view()


# -- the later turns of a context


class Host:
    """Keeps every block it is given with its turn, as the hosts do, and shows its list after each turn."""

    def __init__(self, memory, session="here"):
        self.memory = memory
        self.session = session
        self.messages = []

    def turn(self, text, *, loses=False):
        block = self.memory.recall(text, session=self.session)
        message = {"role": "user", "content": text}
        if block and not loses:
            message["api_content"] = f"{text}\n\n<memory-context>\n[System note: …]\n\n{block}\n</memory-context>"
        self.messages += [message, {"role": "assistant", "content": "all right"}]
        self.memory.ledger.seen(self.session, self.messages)
        self.memory.record([Entry(kind="user", text=text, session=self.session), Entry(kind="talk", text="all right", session=self.session)])
        self.memory.settle(60)
        return block

    def memory_chars(self):
        return sum(len(message["api_content"]) - len(message["content"]) for message in self.messages if "api_content" in message)


def rows(block):
    assert block.startswith(added.HEAD)
    assert block.endswith("\n</chat>")
    assert not model.shown_lines(block)[1]
    return [first for first, _, _ in model.shown_lines(block)[0]]


@pytest.fixture
def host(opened):
    memory = opened()
    filled(
        memory,
        *filler(60),
        Entry(kind="user", text="The new accountant is called Ottoline Fernsby.", session="old"),
        *filler(60, 100),
        Entry(kind="user", text="The boat lies in the harbour of Trondheim under the name Windbraut.", session="old"),
        *filler(500, 200),
    )
    return Host(memory)


def test_a_later_question_brings_its_message_and_nothing_else(host):
    assert host.turn("good morning").startswith(HEAD)
    block = host.turn("What is the accountant Ottoline called in full?")
    assert 60 in rows(block)
    assert len(block) <= 4_000
    assert host.turn("thank you") == ""


def test_what_stands_in_front_of_the_model_is_not_brought_again(host):
    host.turn("Tell me of Ottoline Fernsby the accountant")
    assert host.turn("Ottoline Fernsby, the accountant!") == ""
    assert 121 in rows(host.turn("Where lies the boat Windbraut, in Trondheim?"))
    assert host.turn("Windbraut? In Trondheim?") == ""


def test_what_the_host_has_lost_is_brought_again(host):
    host.turn("good morning")
    assert 60 in rows(host.turn("Who is Ottoline Fernsby?", loses=True))
    assert 60 in rows(host.turn("Who is Ottoline Fernsby?"))


def test_what_the_session_said_itself_since_is_never_brought(host):
    host.turn("good morning")
    host.turn("remember that the heron nests on the chimney of Hollowell House")
    assert host.turn("where does the heron nest, on Hollowell House?") == ""


def test_a_new_process_goes_on_where_the_old_one_stopped(host, opened, root):
    host.turn("good morning")
    assert 60 in rows(host.turn("Who is Ottoline Fernsby?"))
    host.memory.close()
    host.memory = opened(root)
    assert host.turn("Who is Ottoline Fernsby?") == ""
    assert 121 in rows(host.turn("Where lies the Windbraut, in Trondheim?"))


def test_news_is_what_others_have_said_and_nothing_of_ones_own(host):
    host.turn("good morning")
    first = host.memory.record([Entry(kind="user", text="the release moved to Friday", session="there")])[0]
    host.memory.settle(60)
    block = host.turn("go on")
    assert rows(block) == [first]
    assert "the release moved to Friday" in block
    assert host.turn("go on") == ""


def test_much_news_is_shown_coarsely_and_within_the_limit(host):
    host.turn("good morning")
    filled(host.memory, *filler(700, 5_000, session="there"))
    block = host.turn("go on")
    assert len(block) <= 4_000
    plain, _ = model.shown_lines(block)
    assert plain[-1][1] == host.memory.status()["messages"] - 2
    assert all(a[1] == b[0] for a, b in pairwise(plain))


def test_after_a_compression_the_view_comes_again(host):
    host.turn("good morning")
    host.turn("Who is Ottoline Fernsby?")
    host.memory.compressed(host.session)
    host.messages = host.messages[-2:]
    assert host.turn("Who is Ottoline Fernsby?").startswith(HEAD)


@pytest.mark.parametrize("budget", [2_000, 16_000])
def test_twenty_turns_with_a_match_each_stay_far_below_two_views(opened, budget):
    memory = opened(settings=Settings(view_budget_chars=budget))
    names = [f"Quorvex{chr(97 + k)}{chr(107 + k)}" for k in range(20)]
    for k, name in enumerate(names):
        memory.record([*filler(30, 100 * k), Entry(kind="user", text=f"{name} is the word for {'what is kept in the cellar ' * 8}", session="old")])
    filled(memory, *filler(300, 9_000))
    host = Host(memory)
    blocks = [host.turn(f"what does {name} mean?") for name in names]
    assert host.memory_chars() <= 1.3 * budget
    if budget == 16_000:
        assert sum(map(bool, blocks)) > 5, "as long as there is room, what is asked for is brought"
    assert not any(blocks[-2:]), "then nothing more is"


def test_what_is_counted_as_spent_is_what_the_host_sends(host):
    host.turn("good morning")
    host.turn("Who is Ottoline Fernsby?")
    first = host.memory_chars()
    host.turn("Where lies the Windbraut, in Trondheim?")
    spent = host.memory._added.standing(host.session).spent
    blocks = [message["api_content"] for message in host.messages if "api_content" in message]
    assert spent == standing_in(blocks).spent
    assert spent >= host.memory_chars() - first + HOST_FRAME_CHARS - 100
    assert json.loads(json.dumps(sorted(standing_in(blocks).ids)))
