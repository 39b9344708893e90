"""The index: what it derives from the log, that it heals, and that nobody who leaves takes it away from the others."""

from children import children

from optchat.core.records import Entry


def said(count, start=0, **fields):
    return [Entry(kind="user", text=f"message {k}", **fields) for k in range(start, start + count)]


def test_a_process_that_leaves_does_not_take_the_index_from_under_the_others(opened, root):
    memory = opened()
    memory.record(said(1))
    opened().close()  # a second one in this process, gone again
    beside = root / "index.sqlite-wal"
    before = beside.stat().st_ino
    with children() as start:
        start("Memory.open(sys.argv[1], compact=False).close()", root).rest()
    assert beside.stat().st_ino == before
