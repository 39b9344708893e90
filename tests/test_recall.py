"""What is put in front of the model for a question: on a first turn and on later ones."""

from __future__ import annotations

import re
from itertools import pairwise

import model
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optchat.base.errors import StoreError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.memory import Memory
from optchat.recall import shown
from optchat.recall.shown import HOST_FRAME_CHARS, standing_in
from optchat.tree.render import HEAD as VIEW_HEAD
from optchat.tree.render import UNBUILT, one_line

PATIENT = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WORDS = [
    "booking",
    "import",
    "invoice",
    "deadline",
    "retry",
    "release",
    "migration",
    "harbour",
    "garden",
    "violin",
    "painter",
    "winter",
    "kitchen",
    "journey",
    "lantern",
    "bridge",
]
HEAD = VIEW_HEAD.partition("\n")[0]
QUERIES = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                *WORDS,
                *model.HOSTILE,
                "AND",
                "NOT",
                "NEAR(",
                '"',
                "*",
                "^",
                "😀",
                "红色按钮",
                "0+1|",
                "-",
            ]
        ),
        max_size=12,
    ).map(" ".join),
    st.sampled_from(
        [
            "",
            " ",
            "\n",
            "😀" * 50,
            '"' * 99,
            "garden " * 15_000,
            "x" * 100_000,
            "\x00",
            "a" * 3 + "*",
        ]
    ),
)


def filler(count, start=0, **fields):
    """Messages with words of their own and few in common."""
    dice = model.random.Random(start)
    fields = {"session": "old"} | fields
    return [
        Entry(
            kind="user" if k % 2 else "talk",
            text=f"note {start + k}: "
            + " ".join(dice.choice(WORDS) + str(dice.randrange(300)) for _ in range(12)),
            **fields,
        )
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
    """Some hundred messages, all built and searchable, with a few among them that a question can
    mean.
    """
    with Memory.open(
        tmp_path_factory.mktemp("recall") / "memory", Settings(), compact=False
    ) as memory:
        filled(
            memory,
            *filler(40),
            Entry(
                kind="user",
                text="The new accountant is called Ottoline Fernsby.",
                session="old",
                date="2025-11-04T10:00:00+01:00",
            ),
            Entry(
                kind="talk",
                text="I will write that down.",
                session="old",
                date="2025-11-04T10:00:05+01:00",
            ),
            *filler(40, 100),
            Entry(kind="user", text="我们决定把发票导入的重试次数改成五次", session="old"),
            *filler(40, 200),
            Entry(
                kind="tool",
                text='read_file: {"path": "optchat/core/view.py", "limit": 40}',
                session="old",
                tool="read_file",
            ),
            Entry(kind="echo", text="the fold\n" * 900, session="old", tool="read_file"),
            *filler(40, 300),
            Entry(
                kind="echo",
                text="line of a log\n" * 700
                + "FATAL: disk quota exceeded on host lemur-7\n"
                + "line of a log\n" * 700,
                session="old",
            ),
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


@pytest.mark.parametrize(
    "query",
    [
        "",
        "  ",
        "note",
        "What about the note?",
        "the of and",
        "😀",
        '"*"',
        "zzyzx quux",
        "what did we say?",
    ],
)
def test_a_weak_match_or_none_leaves_the_plain_view(long_memory, query):
    assert long_memory.recall(query) == long_memory.view()


def test_one_word_that_many_messages_share_is_no_match(opened):
    memory = opened()
    filled(
        memory,
        *(Entry(kind="user", text=f"the deploy number {k} {WORDS[k % 16]}") for k in range(500)),
    )
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
    texts=st.lists(
        st.one_of(st.sampled_from(WORDS), st.sampled_from(model.HOSTILE), st.text(max_size=30)),
        min_size=1,
        max_size=60,
    ),
    long=st.integers(0, 30),
    settled=st.booleans(),
    budget=st.sampled_from([2_000, 2_500, 16_000]),
    query=QUERIES,
)
def test_whatever_was_said_and_is_asked_the_view_keeps_its_laws(
    tmp_path_factory, texts, long, settled, budget, query
):
    dice = model.random.Random(long)
    with Memory.open(
        tmp_path_factory.mktemp("laws") / "memory",
        Settings(view_budget_chars=budget),
        compact=False,
    ) as memory:
        entries = [
            Entry(
                kind=dice.choice(["user", "talk", "echo"]),
                text=f"{text} {' '.join(dice.choices(texts, k=long))}",
            )
            for text in texts
        ]
        memory.record(entries)
        if settled:
            assert memory.settle(60)
        memory.record(entries[:3])
        checked(memory, memory.recall(query), budget)
        checked(memory, memory.recall(texts[0]), budget)


def test_a_repeated_text_is_shown_once(opened):
    memory = opened()
    filled(
        memory,
        *(
            entry
            for k in range(60)
            for entry in (
                *filler(6, 10 * k),
                Entry(kind="echo", text="retry of invoice export failed"),
            )
        ),
        *filler(300, 900),
    )
    text = memory.recall("invoice export retry")
    assert (
        sum(
            "retry of invoice export failed" in row
            for row in text.split("\n")
            if row.startswith("  ")
        )
        == 1
    )


def test_messages_not_searchable_yet_and_a_broken_index_leave_the_plain_view(
    opened, root, monkeypatch
):
    memory = opened()
    filled(memory, Entry(kind="user", text="The accountant is called Ottoline."), *filler(400))
    assert indented(memory.recall("Ottoline"))

    def broken(_terms):
        raise StoreError("the disk is on fire", path=root)

    monkeypatch.setattr(memory.full_text, "look_up", broken)
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


def wrapped(block):
    """A block as the hosts wrap it, in as many characters."""
    start, end = "\n\n<memory-context>\n[System note: ", "]\n\n"
    foot = "\n</memory-context>"
    return f"{start}{'…' * (HOST_FRAME_CHARS - len(start + end + foot))}{end}{block}{foot}"


class Host:
    """Keeps every block it is given with its turn, as the hosts do, and shows its list after each
    turn.
    """

    def __init__(self, memory, session="here", *, told=True):
        """``told``: its list is seen as a turn begins, and not only after it."""
        self.memory = memory
        self.told = told
        self.session = session
        self.messages = []

    def turn(self, text, *, loses=False):
        block = self.memory.recall(
            text, self.session, standing_in(self.messages) if self.told else None
        )
        message = {"role": "user", "content": text}
        if block and not loses:
            message["api_content"] = text + wrapped(block)
        self.messages += [message, {"role": "assistant", "content": "all right"}]
        self.memory.list_shown(self.session, self.messages)
        self.memory.record(
            [
                Entry(kind="user", text=text, session=self.session),
                Entry(kind="talk", text="all right", session=self.session),
            ]
        )
        self.memory.settle(2 if self.memory.settings.summarizer == "model" else 60)
        return block

    def memory_chars(self):
        """The host's frames and the line breaks before them included."""
        return sum(
            len(message["api_content"]) - len(message["content"])
            for message in self.messages
            if "api_content" in message
        )

    def compress(self, keeps_head, tail):
        """Sum the list up but for its head, if it is the first time, and so many turns of
        its tail.
        """
        self.memory.compressed(self.session, self.session)
        summary = {
            "role": "user",
            "content": "[CONTEXT COMPACTION — REFERENCE ONLY] …",
            "_compressed_summary": True,
        }
        head = self.messages[:2] if keeps_head else []
        rest = self.messages[len(head) :]
        self.messages = [
            *head,
            summary,
            {"role": "assistant", "content": "…"},
            *rest[len(rest) - 2 * tail :],
        ]

    def tiles(self):
        """The unindented lines of all blocks in front of the model, in the order of the log."""
        blocks = [message["api_content"] for message in self.messages if "api_content" in message]
        found = [re.findall(r"^(\d+)\+(\d+)\|(.*)$", block, re.MULTILINE) for block in blocks]
        return sorted(
            (int(first), int(first) + int(count), text)
            for block in found
            for first, count, text in block
        )


def told_twice(tiles):
    return [
        (one, other)
        for one, other in pairwise(tiles)
        if other[0] < one[1] and UNBUILT not in (one[2], other[2])
    ]


def rows(block):
    """The first messages of the lines of a later block.

    Those that were searched for, then those that are new.
    """
    assert block.startswith(shown.HEAD)
    assert block.endswith("\n</chat>")
    new, found = model.shown_lines(block)
    return [first for first, _, _ in (*found, *new)]


@pytest.fixture
def host(opened):
    memory = opened()
    filled(
        memory,
        *filler(60),
        Entry(kind="user", text="The new accountant is called Ottoline Fernsby.", session="old"),
        *filler(60, 100),
        Entry(
            kind="user",
            text="The boat lies in the harbour of Trondheim under the name Windbraut.",
            session="old",
        ),
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
    first = host.memory.record(
        [Entry(kind="user", text="the release moved to Friday", session="there")]
    )[0]
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


def test_a_view_that_a_compression_dropped_comes_again(host):
    host.turn("good morning")
    host.turn("Who is Ottoline Fernsby?")
    host.compress(keeps_head=False, tail=1)
    assert host.turn("Who is Ottoline Fernsby?").startswith(HEAD)


def test_beside_a_view_that_a_compression_kept_only_what_is_missing_comes(host):
    own = host.memory.status()["messages"]
    host.turn("good morning")
    for k in range(6):
        host.turn(f"the heron nests on chimney {k}")
    host.compress(keeps_head=True, tail=1)
    said = host.memory.status()["messages"]

    block = host.turn("go on")

    assert block.startswith(shown.HEAD)
    assert model.tiles(
        [(first - own, end - own) for first, end, _ in model.shown_lines(block)[0]], said - own
    )
    assert host.turn("go on") == ""


def test_where_the_list_is_seen_only_after_a_turn_one_turn_goes_without(host):
    host.told = False
    host.turn("good morning")
    host.turn("go on")
    host.compress(keeps_head=False, tail=1)
    assert not host.turn("go on").startswith(HEAD), "it may still stand there"
    assert host.turn("go on").startswith(HEAD)


def test_what_a_branch_began_with_is_not_news(host):
    host.turn("good morning")
    host.turn("the heron nests on the chimney")
    host.memory.capture_store().fork("branch", "here", [], whole=False)
    host.memory.shown.branched("here", "branch")
    host.session = "branch"
    assert host.turn("go on") == ""
    other = host.memory.record(
        [Entry(kind="user", text="the release moved to Friday", session="here")]
    )[0]
    host.memory.settle(60)
    assert rows(host.turn("go on")) == [other]


def test_what_was_said_a_moment_ago_is_shown_in_its_own_words(opened):
    memory = opened()
    filled(memory, *filler(600))
    memory.record(
        [
            Entry(kind="user", text="the code word is Quorvex", session="there"),
            Entry(kind="talk", text="x" * 3_000, session="there"),
        ]
    )
    host = Host(memory)

    first = host.turn("good morning")

    assert "\n600+1|user: the code word is Quorvex\n" in first
    assert f"\n601+1|{UNBUILT}\n" in first
    assert rows(host.turn("go on")) == [601], "its line is there now"
    memory.record([Entry(kind="user", text="and now it is Windbraut", session="there")])
    assert "\n606+1|user: and now it is Windbraut\n" in memory.recall(
        "go on", "here", standing_in(host.messages)
    )


def test_what_has_no_line_yet_is_named_once(opened):
    memory = opened(settings=Settings(summarizer="model"))
    memory.record(filler(60))
    memory.settle(2)  # there is no model
    host = Host(memory)
    host.turn("good morning")
    first = memory.record([Entry(kind="user", text="long " * 900, session="there")])[0]
    assert rows(memory.recall("go on", "here", standing_in(host.messages))) == [first]
    host.turn("go on")
    assert memory.recall("go on", "here", standing_in(host.messages)) == ""


@PATIENT
@given(st.data())
def test_in_any_life_the_past_is_told_once_and_within_the_limit(tmp_path_factory, data):
    """Compressions that keep a head or a tail, undone turns, lost blocks, other sessions, new
    processes, lists seen late or not.
    """
    budget = data.draw(st.sampled_from([2_000, 4_000, 16_000]))
    root = tmp_path_factory.mktemp("life")
    memory = Memory.open(root, Settings(view_budget_chars=budget), compact=False)
    filled(memory, *filler(data.draw(st.sampled_from([3, 60, 400]))))
    host = Host(memory, told=data.draw(st.booleans()))
    compressed = False
    for step in data.draw(
        st.lists(
            st.sampled_from(
                ["turn", "turn", "turn", "loses", "others", "compress", "undo", "reopen"]
            ),
            max_size=16,
        )
    ):
        if step in ("turn", "loses"):
            host.turn(
                data.draw(
                    st.sampled_from(["go on", "what about the garden and the violin?", "note 7?"])
                ),
                loses=step == "loses",
            )
        elif step == "others":
            filled(host.memory, *filler(data.draw(st.integers(1, 40)), 7_000, session="there"))
        elif step == "compress" and host.messages:
            host.compress(keeps_head=not compressed, tail=data.draw(st.integers(0, 4)))
            compressed = True
        elif step == "undo":
            host.messages = host.messages[:-2]
        elif step == "reopen":
            host.memory.close()
            host.memory = Memory.open(root, Settings(view_budget_chars=budget), compact=False)
        if host.told:
            assert host.memory_chars() <= 1.3 * budget
            assert not told_twice(host.tiles())
    host.told = True
    host.turn("go on")
    host.turn("go on")
    assert host.memory_chars() <= 1.3 * budget
    host.memory.close()


@pytest.mark.parametrize("budget", [2_000, 16_000])
def test_twenty_turns_with_a_match_each_stay_far_below_two_views(opened, budget):
    memory = opened(settings=Settings(view_budget_chars=budget))
    names = [f"Quorvex{chr(97 + k)}{chr(107 + k)}" for k in range(20)]
    for k, name in enumerate(names):
        memory.record(
            [
                *filler(30, 100 * k),
                Entry(
                    kind="user",
                    text=f"{name} is the word for {'what is kept in the cellar ' * 8}",
                    session="old",
                ),
            ]
        )
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
    assert host.memory.shown.standing(host.session).chars == host.memory_chars()
    assert host.memory_chars() > first > 0
