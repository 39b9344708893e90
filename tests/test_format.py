"""The file `format`: who wrote a memory, and what is done with one of a later version."""

import json

import pytest
from damage import TOTAL, Life, without_derived

from optchat import cli
from optchat.base.errors import StoreError
from optchat.base.json_line import encode_line
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.log import files
from optchat.log.format import FORMAT, NAME
from optchat.memory import Memory

LATER = encode_line({"format": FORMAT + 1, "by": "optchat 9.0"})


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    return Life(tmp_path_factory.mktemp("life") / "memory")


def everything(root):
    return {
        str(path.relative_to(root)): (path.read_bytes() if path.is_file() else None)
        for path in sorted(root.rglob("*"))
    }


@pytest.fixture
def later(life, tmp_path):
    """The directory of a memory that a later version has written."""
    root = tmp_path / "optchat"
    life.open(without_derived(life.closed), root).close()
    for path in root.glob("*.sqlite*"):
        path.unlink()
    (root / NAME).write_bytes(LATER)
    return root


def test_a_new_memory_says_its_format_and_its_writer(opened, root):
    opened()
    said = json.loads((root / NAME).read_bytes())
    assert (said["format"], said["by"].split()[0]) == (FORMAT, "optchat")


def test_what_an_older_version_wrote_gets_the_file_and_goes_on(life, tmp_path):
    files = {name: data for name, data in life.closed.items() if name != NAME}
    memory = life.open(files, tmp_path / "optchat")
    assert (tmp_path / "optchat" / NAME).exists()
    assert memory.record([Entry(kind="user", text="next")]) == [TOTAL]
    memory.close()


@pytest.mark.parametrize("data", [b"", b"{}", b"\x00" * 9, LATER.replace(b"2", b"3", 1), b"[1]"])
def test_a_damaged_file_is_written_anew(life, tmp_path, data):
    memory = life.open(life.closed | {NAME: data}, tmp_path / "optchat")
    assert memory.record([Entry(kind="user", text="next")]) == [TOTAL]
    memory.close()
    assert (tmp_path / "optchat" / NAME).read_bytes() == life.closed[NAME]


def test_a_memory_of_a_later_version_is_read(life, later):
    before = everything(later)
    with Memory.open(later) as memory:
        assert [memory.message(id_) for id_ in range(TOTAL)] == life.messages
        assert "message 2 8" in memory.view()
        assert memory.zoom("0+8")
        assert memory.search("asked")
        assert memory.recall("asked 1", "other")
        assert memory.check()["damage"] == []
        (warning,) = [text for text in memory.status()["warnings"] if "only read" in text]
        assert "optchat 9.0 in format 2" in warning
    assert everything(later) == before


def test_a_memory_of_a_later_version_is_not_written_to(life, later):
    before = everything(later)
    with Memory.open(later, Settings()) as memory:
        for write in (
            lambda: memory.record([Entry(kind="user", text="next")]),
            lambda: memory.redact(3),
            lambda: memory.settle(1),
            lambda: memory.capture_store().begin(life._draft("late", 1)),
        ):
            with pytest.raises(StoreError, match=r"optchat 9\.0 in format 2") as refused:
                write()
            assert "Upgrade optchat" in str(refused.value)
    assert everything(later) == before


def test_the_command_line_shows_a_later_memory_and_says_why_it_is_only_read(later, capsys):
    home = ["--home", str(later.parent)]
    for command in (["view"], ["search", "asked"], ["zoom", "3"], ["status"]):
        assert cli.main([*command, *home]) == 0
        said = capsys.readouterr()
        assert "only read" in said.out + said.err
    assert cli.main(["compact", *home]) == 1
    assert "Upgrade optchat" in capsys.readouterr().err


def test_an_older_memory_is_read_where_the_file_cannot_be_written(life, tmp_path, monkeypatch):
    files_ = {name: data for name, data in life.closed.items() if name != NAME}
    monkeypatch.setattr(files, "replace_file", refuse)
    memory = life.open(files_, tmp_path / "optchat")
    assert memory.message(3) == life.messages[3]
    memory.close()


def refuse(path, _data):
    raise StoreError(f"cannot replace {path}: not allowed", path=path)
