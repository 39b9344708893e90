"""What lines cost, and that a free one is found at once behind any number of those that wait for a
model.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundness import assert_sound

from optchat.base.address import Place
from optchat.base.cost import ALL, CHEAP, Cost, Costs
from optchat.base.record import KINDS, Entry, Node, decode_node, encode_node
from optchat.base.settings import Settings
from optchat.log import ready
from optchat.log.store import Store


@pytest.mark.parametrize(
    ("bytes_", "spare", "cost"),
    [
        (512, False, Cost.FREE),
        (512, True, Cost.FREE),
        (513, False, Cost.MODEL),
        (513, True, Cost.LOCAL),
        (0, False, Cost.FREE),
    ],
)
def test_a_line_costs_nothing_tokens_or_only_our_time(bytes_, spare, cost):
    assert Costs().of(bytes_, spare=spare) is cost


def test_kinds_nobody_chose_to_pay_for_are_spared():
    assert [kind for kind in (*KINDS, "diary", "") if not Costs().spares(kind)] == [
        "user",
        "talk",
        "work",
        "note",
    ]
    assert not Costs(model_kinds=("tool",)).spares("tool")


def test_a_node_says_that_it_is_spare_and_one_that_is_not_says_nothing():
    node = Node(level=0, index=3, text="x", by="local", spare=True)
    assert decode_node(encode_node(node)).spare
    assert b"spare" not in encode_node(Node(level=0, index=3, text="x", by="local"))
    assert not decode_node(b'{"l":0,"i":3,"text":"x","by":"local","spare":"yes"}').spare


def now():
    from datetime import UTC, datetime

    return datetime(2026, 5, 1, tzinfo=UTC)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_the_ready_table_knows_the_cost_of_every_line_as_the_definition_has_it(
    tmp_path_factory, data
):
    costs = Costs(128, ("user", "talk"))
    root = tmp_path_factory.mktemp("m")
    store = Store(root, clock=now, costs=costs)
    kinds, sizes, built = [], [], {}  # built: place -> (bytes, spare)
    for _ in range(data.draw(st.integers(1, 6))):
        for kind, size in data.draw(
            st.lists(
                st.tuples(st.sampled_from([*KINDS, "diary"]), st.sampled_from([1, 100, 130, 500])),
                max_size=9,
            )
        ):
            store.record([Entry(kind=kind, text="x" * size)])
            kinds.append(kind)
            sizes.append(len(kind) + 2 + size)
        wanted = store.read(lambda index: index.ready(1_000))
        chosen = data.draw(st.lists(st.sampled_from(wanted), unique=True)) if wanted else []
        if chosen:
            lengths = [data.draw(st.sampled_from([10, 90, 128])) for _ in chosen]
            store.commit(
                [
                    Node(
                        level=r.place.level,
                        index=r.place.index,
                        text="y" * n,
                        by="local",
                        spare=r.spare,
                    )
                    for r, n in zip(chosen, lengths, strict=True)
                ]
            )
            built.update({r.place: (n, r.spare) for r, n in zip(chosen, lengths, strict=True)})
    expected = {}
    for id_, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
        if Place(0, id_) not in built:
            expected[Place(0, id_)] = (costs.of(size, spare=costs.spares(kind)), costs.spares(kind))
    for place in built:
        older, younger = place.parent.children
        if older in built and younger in built and place.parent not in built:
            spare = built[older][1] and built[younger][1]
            expected[place.parent] = (
                costs.of(built[older][0] + built[younger][0] + 1, spare=spare),
                spare,
            )
    for _ in range(2):
        for wanted in (ALL, CHEAP, [Cost.FREE], [Cost.MODEL]):
            found = store.read(lambda index, w=wanted: index.ready(1_000, w))
            assert {r.place: (r.cost, r.spare) for r in found} == {
                p: e for p, e in expected.items() if e[0] in wanted
            }
            assert found == sorted(found, key=lambda r: (r.place.end, r.place.level))
        for cost in Cost:
            assert store.read(lambda index, c=cost: index.waiting(c)) == sum(
                1 for e in expected.values() if e[0] is cost
            )
        store.rebuild_index()
    store.close()


def test_what_is_next_is_found_without_sorting_all_that_waits(opened):
    memory = opened()
    for costs in (ALL, CHEAP, [Cost.MODEL]):
        for question in ready.questions(costs):
            plan = memory.store.read(
                lambda index, q=question: index.rows(f"EXPLAIN QUERY PLAN {q}", (5,))
            )
            assert not any("TEMP" in step for *_, step in plan)


def test_the_settings_in_force_are_noted_once_and_asked_for_cheaply(opened, monkeypatch):
    first = opened(settings=Settings(compact_enabled=False))
    first.record([Entry(kind="talk", text="x" * 600)])
    asked = []
    second = opened(settings=Settings(model_kinds=("user",)))
    real = second.store._index.rebuild_ready
    monkeypatch.setattr(second.store._index, "rebuild_ready", lambda: asked.append(1) or real())
    assert [r.cost for r in second.store.read(lambda index: index.ready(9))] == [Cost.MODEL]
    for _ in range(3):
        second.store.recost()
        assert [r.cost for r in second.store.read(lambda index: index.ready(9))] == [Cost.LOCAL]
    assert asked == [1]


def test_what_was_built_spare_is_spare_for_all_and_after_a_rebuild(opened):
    memory = opened(compact=False)
    memory.record([Entry(kind="echo", text="long words " * 100)] * 8)
    assert memory.settle(30)
    nodes = [Place(level, k) for level in range(4) for k in range(8 >> level)]
    assert memory.store.read(lambda index: index.spares(nodes)) == set(nodes)
    memory.store.rebuild_index()
    assert memory.store.read(lambda index: index.spares(nodes)) == set(nodes)
    memory.record(
        [Entry(kind="talk", text="long words " * 100)]
        + [Entry(kind="echo", text="long words " * 100)] * 7
    )
    assert memory.settle(30)
    assert memory.store.read(
        lambda index: index.spares(
            [Place(0, 8), Place(1, 4), Place(1, 5), Place(3, 1), Place(4, 0)]
        )
    ) == {Place(1, 5)}


# -- fallbacks


def fallback_of(level, index, text="made here"):
    return Node(level=level, index=index, text=text, by="fallback")


def test_a_fallback_is_written_anew_while_nothing_stands_on_it(opened, root):
    memory, other = (
        opened(compact=False, settings=Settings(summarizer="model")),
        opened(compact=False),
    )
    memory.record([Entry(kind="user", text="words " * 200)] * 3)
    memory.store.commit([fallback_of(0, k) for k in range(3)])
    assert other.view().count("made here") == 3
    assert memory.store.read(lambda index: index.fallbacks([Place(0, k) for k in range(3)])) == [
        Place(0, k) for k in range(3)
    ]
    (anew,) = memory.store.commit(
        [Node(level=0, index=2, text="user: what the model wrote, which is longer", by="model")]
    )
    assert anew.index == 2
    for one in (memory, other, opened(compact=False)):
        assert one.view().count("made here") == 2
        assert "what the model wrote, which is longer" in one.view()
    memory.store.rebuild_index()
    assert "what the model wrote, which is longer" in memory.view()
    assert not memory.check()["disagreements"]
    assert not memory.check()["damage"]
    assert_sound(memory)


def test_only_a_model_writes_a_fallback_anew(opened):
    memory = opened(compact=False)
    memory.record([Entry(kind="user", text="words " * 200)])
    memory.store.commit([fallback_of(0, 0)])
    assert (
        memory.store.commit(
            [fallback_of(0, 0, "again"), Node(level=0, index=0, text="local", by="local")]
        )
        == []
    )
    assert "made here" in memory.view()


def test_a_fallback_something_stands_on_stays(opened):
    memory = opened(compact=False)
    memory.record([Entry(kind="user", text="words " * 200)] * 2)
    memory.store.commit([fallback_of(0, 0), fallback_of(0, 1)])
    memory.store.commit([Node(level=1, index=0, text="both", by="model")])
    assert memory.store.read(lambda index: index.fallbacks([Place(0, 0), Place(0, 1)])) == []
    assert memory.store.commit([Node(level=0, index=1, text="better", by="model")]) == []
    assert memory.zoom(0, 2) == "0+1|made here\n1+1|made here"


def test_a_merge_that_waits_is_made_from_the_line_as_it_is_now(opened):
    memory = opened(compact=False)
    memory.record([Entry(kind="user", text="words " * 200)] * 2)
    memory.store.commit([fallback_of(0, 0, "x" * 300), fallback_of(0, 1, "y" * 300)])
    memory.store.commit([Node(level=0, index=1, text="user: short", by="model")])
    (ready,) = memory.store.read(lambda index: index.ready(10))
    assert (ready.source_bytes, ready.cost) == (300 + 1 + 11, Cost.FREE)
    assert memory.settle(30)
    assert memory.zoom(0, 2).endswith("1+1|user: short")
