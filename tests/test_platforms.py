"""What other systems lack or have otherwise.

The module that locks files, and UTF-8 as the encoding a text file is opened with.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from children import CHECKOUT, children

GERMAN_AND_JAPANESE = "Grüße aus 横浜 😀. "

HIDDEN = "import sys; sys.modules['fcntl'] = None"
HALF = "import sys, types; sys.modules['fcntl'] = types.ModuleType('fcntl')"

LIFE = """
root = Path(sys.argv[1])
say("begun")
with Memory.open(root) as memory:
    for turn in range(20):
        assert memory.record([Entry(kind="user", text=f"Grüße {turn}", session="s")]) == [turn]
    assert memory.settle(30)
    assert "Grüße 19" in memory.view()
from optchat.log.files import Lock
one, other = Lock(root / "write.lock"), Lock(root / "write.lock")
say(one.acquire(1), one.acquire(0.05), other.acquire(0.05))
one.release()
say(other.acquire(1))
other.release()
"""

OWNER = """
from optchat.log.files import Lock
lock = Lock(Path(sys.argv[1]) / "write.lock")
assert lock.acquire(5)
say("locked")
wait_for("never")
"""


@pytest.mark.parametrize("lacking", [HIDDEN, HALF])
def test_without_the_usual_locks_a_memory_works(tmp_path, lacking):
    """The module is missing altogether, or there and without what locks need.

    An AttributeError, not an ImportError.
    """
    root = tmp_path / "memory"
    with children() as start:
        assert start(lacking + textwrap.dedent(LIFE), root).rest() == [
            "begun",
            "True False False",
            "True",
        ]
        owner = start(lacking + textwrap.dedent(OWNER), root)
        assert owner.hear() == "locked"
        owner.kill()
        again = start(
            lacking
            + textwrap.dedent("""
            with Memory.open(Path(sys.argv[1]), compact=False) as memory:
                say(memory.record([Entry(kind="user", text="after")]))
                report = memory.check()
                say(report["damage"], report["disagreements"])
            """),
            root,
        )
        assert again.rest() == ["[20]", "[] []"]


ELSEWHERE = r"""
import warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"optchat\b")
import io, json, sys
from pathlib import Path
from optchat import Entry, Memory, cli
home, text = Path(sys.argv[1]), sys.argv[2].encode("ascii").decode("unicode_escape")
root = home / "optchat"
from optchat.hermes import config_json
config_json.save_config({"platforms_off": text}, home)
assert config_json.read_config(home)["platforms_off"] == [text.strip()]
with Memory.open(root) as memory:
    memory.record([Entry(kind="user", text=text * 60, session=text), Entry(kind="talk", text=text)])
    assert memory.settle(30)
    assert text.strip() in memory.view()
    assert memory.message(0).text == text * 60
    memory.redact(1)
    assert memory.settle(30)
source = home / "source.jsonl"
source.write_bytes(json.dumps({"role": "user", "content": "\xe4" + text}, ensure_ascii=False).encode())
for command in (["import", str(source)], ["status"], ["view"], ["search", "\xe4"], ["zoom", "0"], ["compact"], ["check"]):
    status = cli.main([*command, "--home", str(home)])
    assert not status, (command, status)
"""


def test_no_text_depends_on_the_encoding_of_the_system(tmp_path):
    """As on Windows, where a file opened without a word about it is read as cp1252.

    Python tells of each such opening.
    """
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    text = GERMAN_AND_JAPANESE.encode("unicode_escape").decode("ascii")
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "warn_default_encoding",
            "-c",
            textwrap.dedent(ELSEWHERE),
            str(tmp_path),
            text,
        ],
        env=kept
        | {
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "LC_ALL": "C",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=Path("/"),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-3000:]
    log = b"".join(path.read_bytes() for path in sorted((tmp_path / "optchat" / "main").iterdir()))
    assert GERMAN_AND_JAPANESE.encode() in log
