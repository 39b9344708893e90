"""What a disk, a user and a host may hand over.

A clear line saying what is wrong and what to do, and nothing lost.
"""

import json
import os
import shutil

import pytest
from children import unprivileged
from soundness import assert_sound

from optchat.base.errors import AddressError, OptchatError, StoreError
from optchat.base.record import Entry
from optchat.base.settings import Settings
from optchat.capture.capture import Capture
from optchat.compaction import scheduler
from optchat.memory import Memory, load_settings


def said(count, start=0):
    return [Entry(kind="user", text=f"message {k}") for k in range(start, start + count)]


def texts(memory):
    return [message and message.text for message in memory.store.messages(0, memory.store.total())]


def assert_helps(error, *parts):
    """One line: the thing, the cause, and what to do."""
    line = str(error)
    assert "\n" not in line
    for part in parts:
        assert part in line, line


# -- texts


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        "\x00",
        "\x00" * 1000,
        "\ud83d",
        "\udc00\ud83d",
        "\ufffe\uffff",
        "\u2028\u2029\x85",
        "a\r\nb",
        "\x1b[31m",
        '{"i":0}',
        "🏳️‍🌈" * 50,
        "e\u0301" * 50,
    ],
)
def test_any_text_is_logged_shown_opened_and_found_again(memory, text):
    memory.record(
        [
            Entry(kind="user", text="before"),
            Entry(kind="echo", text=text),
            Entry(kind="user", text="after"),
        ]
    )
    assert memory.settle(30)
    assert [message.id for message in memory.store.messages(0, 9)] == [0, 1, 2]
    assert len(memory.view().splitlines()) == 3 + 3 + 1
    assert memory.zoom(1).startswith("1+1|echo:")
    assert memory.date(1)


@pytest.mark.parametrize("uid", ["", "m{}\ud83d"])
def test_half_a_character_in_any_name_a_host_gives_costs_nothing(memory, uid):
    half = "\ud83d"
    call = {
        "id": f"c1{half}",
        "type": "function",
        "function": {"name": f"look{half}", "arguments": f'{{"at": "{half}"}}'},
    }
    turn = [
        {"role": "user", "content": f"ask{half}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": f"c1{half}",
            "name": f"look{half}",
            "content": f"found{half}",
        },
        {"role": "assistant", "content": f"answer{half}"},
    ]
    if uid:
        turn = [
            message | {"message_uid": uid.format(number)} for number, message in enumerate(turn)
        ]
    capture = Capture(memory.capture_store(), session=f"s{half}", platform=half)
    capture.turn_started(f"ask{half}", author=half)
    capture.turn_ended(turn, f"ask{half}", author=half)
    capture.switched(f"t{half}", parent=f"s{half}", reason="compression")
    memory.compressed(f"s{half}", f"t{half}")
    for _ in range(2):  # the agent is made anew, and shows its list again
        capture = Capture(memory.capture_store(), session=f"t{half}", platform=half)
        capture.initialized()
        capture.list_seen(turn)
        memory.list_shown(f"t{half}", turn)
    assert memory.settle(20)
    assert "ask\ufffd" in memory.recall(f"ask{half}", session=f"t{half}")
    assert texts(memory) == [
        "ask\ufffd",
        'look\ufffd {"at": "\ufffd"}',
        "found\ufffd",
        "answer\ufffd",
    ]


@pytest.mark.slow
def test_a_message_of_fifty_megabytes_is_kept_whole_and_its_line_short(memory):
    text = "".join(f"line {k} of a very long dump of something\n" for k in range(1_250_000))
    assert len(text) > 50_000_000
    memory.record([Entry(kind="echo", text=text), *said(3)])
    assert memory.settle(100)
    assert memory.message(0).text == text
    page = memory.zoom(0, 1, 2)
    assert "page 2 of" in page
    assert len(page) < 17_000
    assert len(memory.view()) <= 16_000
    assert len(memory.zoom("0+2").splitlines()[0]) < 600


@pytest.mark.slow
def test_a_batch_of_nothing_but_long_messages_is_worked_off(memory, monkeypatch):
    monkeypatch.setattr(scheduler, "BYTES_AT_ONCE", 1 << 20)
    memory.record([Entry(kind="echo", text="x y " * 50_000) for _ in range(12)])
    assert memory.settle(100)
    assert memory.store.read(lambda index: index.count("nodes")) == 12 + 6 + 3 + 1


def test_very_many_sessions_and_very_long_names_are_no_trouble(memory):
    memory.record(
        [
            Entry(kind="user", text="x", session=f"s{k}" * 500, author="a" * 10_000, uid=f"u{k}")
            for k in range(300)
        ]
    )
    assert memory.settle(30)
    assert len(list(memory.session_entries("s7" * 500))) == 1
    assert memory.status()["sessions"] == 300


@pytest.mark.parametrize(
    "date",
    ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00", "not a date", "\x00", "2026-13-45"],
)
def test_any_date_is_kept_as_it_came(opened, date):
    memory = opened()
    memory.record([Entry(kind="user", text="x", date=date)])
    assert memory.message(0).date == date
    assert memory.date(0).startswith("0: ")
    assert memory.check()["damage"] == []


# -- numbers


@pytest.mark.parametrize(
    "id_", [-1, 3, 10**18, 10**30, "3", "3+1", "-1", "x", "", None, 1.5, "0+3", [], {}]
)
def test_an_id_that_is_none_is_an_answer_that_helps(memory, id_):
    memory.record(said(3))
    for ask in (memory.zoom, memory.date):
        with pytest.raises(AddressError) as caught:
            ask(id_)
        assert caught.value.hint


# -- settings


def test_a_byte_order_mark_before_the_settings_is_no_part_of_them(opened, root):
    write_config(root, b'\xef\xbb\xbf{"view_budget_chars": 4000}')
    memory = opened(settings=None)
    assert memory.settings.view_budget_chars == 4_000
    assert memory.warnings == []


def test_a_bad_setting_is_logged_once_with_its_file(opened, root, caplog):
    write_config(root, {"view_budget_chars": 10})
    opened(settings=None)
    (record,) = caplog.records
    assert record.getMessage().count(str(root / "config.json")) == 1


def write_config(root, content):
    root.mkdir(parents=True, exist_ok=True)
    (root / "config.json").write_bytes(
        content if isinstance(content, bytes) else json.dumps(content).encode()
    )


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ({"view_budget_chars": 10}, ["view_budget_chars", "2000"]),
        ({"view_budget_chars": "many"}, ["view_budget_chars"]),
        ({"view_budget_chars": None}, ["view_budget_chars"]),
        ({"nodebytes": 512}, ["nodebytes", "node_bytes"]),
        ({"summarizer": "gpt"}, ["summarizer", "auto"]),
        ({"model_kinds": ["user", "nonsense"]}, ["model_kinds"]),
        ({"retain_pre_filter": {"enabled": "perhaps"}}, ["retain_pre_filter"]),
        ({"compact_jobs": 99, "node_bytes": 1}, ["compact_jobs", "node_bytes"]),
        (b"{", ["not JSON"]),
        (b"", ["not JSON"]),
        (b"[]", ["object"]),
        (b"\xff\xfe", ["not JSON"]),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, ["not JSON"]),
        (b'{"x\\ud83d": 1}', ["not JSON"]),
        ({"view_budget_chars": 1e300}, ["view_budget_chars"]),
    ],
)
def test_bad_settings_are_named_and_their_defaults_in_force(root, config, parts):
    write_config(root, config)
    before = (root / "config.json").read_bytes()
    with Memory.open(root, compact=False) as memory:
        warnings = " ".join(memory.warnings)
        for part in parts:
            assert part in warnings
        assert "\n" not in warnings
        assert memory.settings == Settings()
        memory.record(said(1))
        assert set(memory.warnings) <= set(memory.status()["warnings"])
    assert (root / "config.json").read_bytes() == before


def test_good_settings_beside_bad_ones_are_in_force(root):
    write_config(root, {"view_budget_chars": 5_000, "node_bytes": "x", "unknown": 1})
    found, warnings = load_settings(root)
    assert found == Settings(view_budget_chars=5_000)
    assert len(warnings) == 2


def test_settings_that_cannot_be_read_leave_the_defaults(root):
    (root / "config.json").mkdir(parents=True)
    found, warnings = load_settings(root)
    assert found == Settings()
    assert "config.json" in warnings[0]


# -- files and directories


@pytest.mark.parametrize("name", ["", "main", "tree"])
def test_a_file_where_a_directory_should_be_is_said_to_be_one(root, name):
    path = root / name if name else root
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"precious")
    with pytest.raises(StoreError) as caught:
        Memory.open(root)
    assert_helps(caught.value, str(path), "A file stands where a directory should be: move it away")
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["write.lock", "index.sqlite", "main/2026-05-01.jsonl"])
def test_a_directory_where_a_file_should_be_is_a_plain_error(opened, root, name):
    (root / name).mkdir(parents=True)
    with pytest.raises(OptchatError) as caught:
        opened().record(said(1))
    assert_helps(caught.value, name)


def test_a_path_below_a_file_is_a_plain_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError) as caught:
        Memory.open(tmp_path / "file" / "memory")
    assert_helps(caught.value, "A file stands where a directory should be")


def test_a_relative_path_means_the_same_directory_whatever_the_host_does_later(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with Memory.open("memory", compact=False) as memory:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        memory.record(said(2))
        assert texts(memory) == ["message 0", "message 1"]
    assert os.listdir(tmp_path / "elsewhere") == []


def test_stray_files_and_broken_links_do_not_disturb(opened, root):
    memory = opened()
    memory.record(said(3))
    for room in ("main", "tree"):
        (root / room / "notes.txt").write_text("mine")
        (root / room / "2026-05-01.jsonl.bak").write_text("mine")
        (root / room / "2026-07-01.jsonl").symlink_to(root / "nowhere")
        (root / room / "2026-07-02.jsonl").mkdir()
    (root / "index.sqlite").unlink()
    again = opened()
    assert texts(again) == [f"message {k}" for k in range(3)]
    assert again.record(said(1, 3)) == [3]
    assert again.settle(30)
    assert_sound(again)


def test_an_append_never_goes_through_a_symbolic_link(opened, root, tmp_path):
    memory = opened()
    (tmp_path / "outside.jsonl").write_bytes(b"")
    (root / "main" / "2026-05-01.jsonl").symlink_to(tmp_path / "outside.jsonl")
    with pytest.raises(StoreError) as caught:
        memory.record(said(1))
    assert_helps(caught.value, "symbolic link")
    assert (tmp_path / "outside.jsonl").read_bytes() == b""


# -- rights, in a process that is bound by them


def outcome(start, code, *args):
    """What a child says: its answer, or the error as a user would see it."""
    lines = []
    for line in code.strip("\n").splitlines():
        lines.append("    " + line)
    wrapped = (
        "root = Path(sys.argv[1])\ntry:\n"
        + "\n".join(lines)
        + "\nexcept OptchatError as error:\n    say(f'{type(error).__name__}: {error}')\n"
    )
    (line,) = start(wrapped, *args).rest()
    return line


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Puts a memory of five messages where it is told, owned by whoever owns that place."""
    source = tmp_path_factory.mktemp("filled") / "memory"
    with Memory.open(source, Settings(), compact=False) as memory:
        memory.record(said(5))
        assert memory.settle(20)

    def fill(root):
        shutil.copytree(source, root)
        owner = root.parent.stat()
        for path in (root, *root.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)

    return fill


def test_an_unreadable_day_file_is_named_and_gives_no_number_away(filled):
    with unprivileged() as (start, directory):
        root = directory / "memory"
        filled(root)
        (day,) = (root / "main").iterdir()
        day.chmod(0)
        assert "cannot read" in outcome(
            start, "say(Memory.open(root, compact=False).zoom(1))", root
        )
        denied = outcome(
            start,
            "say(Memory.open(root, compact=False).record([Entry(kind='user', text='x')]))",
            root,
        )
        assert "StoreError" in denied
        assert "Give your user the right" in denied
        (root / "index.sqlite").unlink()
        assert "cannot read" in outcome(
            start, "say(Memory.open(root, compact=False).message(0))", root
        )
        day.chmod(0o600)
        assert (
            outcome(
                start,
                "say(Memory.open(root, compact=False).record([Entry(kind='user', text='x')]))",
                root,
            )
            == "[5]"
        )


def test_a_directory_without_the_right_to_write_is_named(filled):
    with unprivileged() as (start, directory):
        root = directory / "memory"
        filled(root)
        (root / "main").chmod(0o500)
        try:
            assert (
                outcome(
                    start,
                    "say(Memory.open(root, compact=False).record([Entry(kind='user', text='x')]))",
                    root,
                )
                == "[5]"
            )  # the file is there already
            clock = (
                "import datetime\nmemory = Memory.open(root, compact=False, clock=lambda: "
                "datetime.datetime(2031, 1, 1).astimezone())\n"
            )
            denied = outcome(
                start, clock + "say(memory.record([Entry(kind='user', text='x')]))", root
            )
            assert "cannot append to" in denied
            assert "Give your user the right" in denied
        finally:
            (root / "main").chmod(0o700)


@pytest.mark.parametrize("mode", [0o500, 0o400, 0])
def test_a_memory_directory_that_may_not_be_used_is_named(filled, mode):
    with unprivileged() as (start, directory):
        root = directory / "memory"
        filled(root)
        for path in root.iterdir():
            if path.suffix == ".sqlite" or path.name.startswith("index.sqlite"):
                path.unlink()
        root.chmod(mode)
        try:
            denied = outcome(
                start,
                "say(Memory.open(root, compact=False).record([Entry(kind='user', text='x')]))",
                root,
            )
            assert "Error: cannot" in denied
            assert "right" in denied
        finally:
            root.chmod(0o700)
        assert (
            outcome(
                start,
                "say(Memory.open(root, compact=False).record([Entry(kind='user', text='x')]))",
                root,
            )
            == "[5]"
        )


def test_a_home_that_belongs_to_another_is_named():
    with unprivileged() as (start, directory):
        (directory / "memory").mkdir()
        os.chown(directory / "memory", os.geteuid(), os.getegid())
        (directory / "memory").chmod(0o755)
        if os.geteuid() != 0:
            pytest.skip("only root can make a directory of another user's")
        assert "cannot make" in outcome(start, "Memory.open(root)", directory / "memory")


def test_unreadable_settings_and_view_leave_a_memory_that_works(filled):
    with unprivileged() as (start, directory):
        root = directory / "memory"
        filled(root)
        for name in ("config.json", "view.json"):
            (root / name).write_bytes(b"{}")
            (root / name).chmod(0)
        code = (
            "memory = Memory.open(root, compact=False)\nsay(len(memory.view()) > 100, "
            "memory.warnings)"
        )
        answer = outcome(start, code, root)
        assert answer.startswith("True")
        assert "config.json" in answer
        assert "all defaults are in force" in answer


def test_a_file_size_limit_is_like_a_full_disk(filled):
    """RLIMIT_FSIZE: a write that is cut short by the system itself, not by a stand-in."""
    with unprivileged() as (start, directory):
        root = directory / "memory"
        filled(root)
        code = """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        memory = Memory.open(sys.argv[1], compact=False)
        (day,) = (Path(sys.argv[1]) / "main").iterdir()
        resource.setrlimit(resource.RLIMIT_FSIZE, (day.stat().st_size + 500, resource.RLIM_INFINITY))
        entries = [Entry(kind="user", text=f"large {k} " * 30) for k in range(8)]
        try:
            memory.record(entries)
        except StoreError as error:
            say(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        say(memory.record(entries))
        say([m and m.text[:9] for m in memory.store.messages(0, 99)])
        say(memory.check()["damage"])
        """
        error, ids, log, damage = start(code, root).rest()
        assert "cannot append to" in error
        assert ids == str(list(range(5, 13)))
        assert log == str([f"message {k}" for k in range(5)] + [f"large {k} l" for k in range(8)])
        assert damage == "[]"
