"""Which room may know which, and what each may do.

Read from the source, so that a late import counts as well.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "optchat"
MODULES = {
    path.relative_to(PACKAGE).with_suffix("").as_posix(): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}

RANKS = {
    "base": 0,
    "log": 1,
    "tree": 2,
    "capture": 3,
    "recall": 3,
    "compaction": 3,
    "memory": 4,
    "imports": 5,
    "config_schema": 5,
    "commands": 6,
    "hermes": 7,
    "cli": 8,  # run inside the host it takes the model from there
}
"""A module may import from its own room and from rooms of a lower rank.

Rooms of one rank do not know each other.
"""

DOORS = {"__init__", "__main__"}
"""What hands out the rest on demand: may import anything of the package, inside functions only."""

ENTRIES = ["__init__", "__main__", "cli", "config_schema"]
"""What the host executes at load, in no order and with errors swallowed.

A missing dependency there hides the provider.
"""

HOST = {
    "agent",
    "hermes_cli",
    "hermes_constants",
    "hermes_logging",
    "hermes_state",
    "plugins",
    "tools",
    "gateway",
    "run_agent",
    "model_tools",
    "toolsets",
    "utils",
}
OURS = {"orjson", "filelock", "pydantic", "rich"}
"""What the package depends on."""


def room_of(name):
    first = name.split("/")[0]
    return first if first in RANKS or first in DOORS else name


def parts_of(name):
    """The package a module's relative imports start from.

    The room, or for a room's ``__init__`` the room itself.
    """
    return name.split("/")[:-1]


def is_typing_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) in {
        "TYPE_CHECKING",
        "typing.TYPE_CHECKING",
    }


def walk(tree, *, typing=True):
    """Every node.

    Without ``typing``, those under ``if TYPE_CHECKING`` are left out: they never run.
    """
    yield tree
    for child in ast.iter_child_nodes(tree):
        if typing or not is_typing_only(tree) or child in tree.orelse:
            yield from walk(child, typing=typing)


def outside(nodes):
    """Top-level names of absolute imports."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def inside(name, nodes):
    """Modules of the package that relative imports of a module reach, as the path under the
    package.
    """
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = parts_of(name)[: len(parts_of(name)) - (node.level - 1)]
            assert node.level - 1 <= len(parts_of(name)), (
                f"{name}: an import reaches out of the package"
            )
            target = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                longer = "/".join([*target, alias.name])
                yield longer if longer in MODULES else "/".join(target) or "__init__"


def calls(tree):
    """Calls as (dotted name, call)."""
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def offenders(fault, names=MODULES):
    """What is wrong, module by module: ``fault`` tells it of one, each in a line."""
    return [f"{name}: {what}" for name in names for what in fault(name, TREES[name])]


def test_imports_point_downward_only():
    def fault(name, tree):
        room = room_of(name)
        if room not in RANKS and room not in DOORS:
            yield "stands in no room"
        for target in inside(name, walk(tree)):
            reached = room_of(target)
            if room in DOORS or room == reached:
                continue
            if reached not in RANKS:
                yield f"imports {target}, which stands in no room"
            elif RANKS[room] <= RANKS[reached]:
                yield f"imports {target}: {room} may not know {reached}"

    assert offenders(fault) == []


def test_no_module_imports_itself_by_way_of_others():
    reached = {
        name: {t for t in inside(name, walk(tree, typing=False)) if t in MODULES and t not in DOORS}
        for name, tree in TREES.items()
    }
    while True:
        further = {
            name: to | {more for one in to for more in reached[one]} for name, to in reached.items()
        }
        if further == reached:
            break
        reached = further
    assert [name for name, to in reached.items() if name in to] == []


def test_inside_the_package_imports_are_relative():
    """The host loads the package under names of its own, maybe two names in one process."""

    def fault(_, tree):
        if "optchat" in set(outside(walk(tree))):
            yield "imports optchat by name"

    assert offenders(fault) == []


def test_what_the_host_executes_at_load_needs_the_standard_library_only():
    def fault(name, tree):
        late = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            for inner in ast.walk(node)
        }
        at_load = [node for node in walk(tree, typing=False) if node not in late]
        yield from set(outside(at_load)) - set(sys.stdlib_module_names)
        yield from set(inside(name, at_load)) - set(ENTRIES)

    assert offenders(fault, ENTRIES) == []


def test_a_module_imports_the_standard_library_and_the_named_dependencies():
    """The host's own modules are for ``hermes/``, and for the form its dashboard asks for."""

    def fault(name, tree):
        hosts = HOST if room_of(name) == "hermes" or name == "config_schema" else set()
        yield from set(outside(walk(tree))) - set(sys.stdlib_module_names) - OURS - hosts

    assert offenders(fault) == []


IMPURE = {
    "os",
    "pathlib",
    "time",
    "threading",
    "random",
    "logging",
    "io",
    "sqlite3",
    "subprocess",
    "socket",
    "shutil",
    "tempfile",
    "secrets",
    "filelock",
}


PURE = [
    "base/address",
    "base/canon",
    "base/cost",
    "base/dates",
    "base/errors",
    "base/host_phrases",
    "base/json_line",
    "base/record",
    "base/secrets",
    "base/settings",
    "base/stem",
    "base/terms",
    "capture/alignment",
    "capture/assign_turns",
    "capture/copies",
    "capture/host_messages",
    "capture/host_text",
    "capture/late_deeds",
    "capture/list_reader",
    "capture/match_by_id",
    "capture/match_by_text",
    "capture/open_turns",
    "capture/own_tools",
    "capture/pairing",
    "capture/plan",
    "capture/prints",
    "capture/recognition",
    "capture/reconcile",
    "capture/reports",
    "capture/session_records",
    "capture/wrappers",
    "log/hidden",
    "log/note_lines",
    "log/redacted",
    "recall/focus_lines",
    "recall/passage",
    "recall/rank",
    "tree/render",
    "tree/spans",
    "tree/view",
]
"""What decides and touches nothing: no file, clock, thread, chance or log."""


def test_what_decides_is_pure():
    now = {"datetime.now", "datetime.today", "date.today", "datetime.utcnow"}

    def fault(_, tree):
        yield from set(outside(walk(tree, typing=False))) & IMPURE
        yield from {called for called, _ in calls(tree)} & {"open", "print", "input", *now}

    assert offenders(fault, PURE) == []


FORBIDDEN = {
    "os.write",
    "os.pwrite",
    "os.fsync",
    "os.fdatasync",
    "os.replace",
    "os.rename",
    "os.renames",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.ftruncate",
    "os.unlink",
    "os.remove",
    "shutil.copy",
    "shutil.copyfile",
    "shutil.copy2",
    "shutil.move",
    "tempfile.NamedTemporaryFile",
    "tempfile.mkstemp",
    "tempfile.TemporaryFile",
    "os.mkdir",
    "os.makedirs",
    "os.chmod",
    "FileLock",
    "SoftFileLock",
    "fcntl.flock",
    "fcntl.lockf",
}
METHODS = {
    "write_text",
    "write_bytes",
    "touch",
    "unlink",
    "rename",
    "symlink_to",
    "hardlink_to",
    "truncate",
    "chmod",
    "mkdir",
    "rmdir",
}


def opens_for_writing(called, call):
    """Whether a call opens a file other than to read it.

    ``Memory.open`` and the like take no mode.
    """
    if called == "os.open":
        # A broken pipe is led to nowhere; nothing else is opened by number but to be read.
        return ast.unparse(call.args[0]) != "os.devnull" and "os.O_RDONLY" not in ast.unparse(
            call.args[1]
        )
    if called != "open" and not called.endswith(".open"):
        return False
    given = [
        *call.args[0 if called != "open" else 1 :],
        *(word.value for word in call.keywords if word.arg == "mode"),
    ]
    modes = [
        value.value
        for value in given
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
    return any(set(mode) & set("wax+") and set(mode) <= set("rwaxbt+") for mode in modes)


def test_only_one_module_writes_syncs_replaces_and_locks_files():
    def fault(_, tree):
        yield from set(outside(walk(tree))) & {"filelock", "fcntl", "msvcrt"}
        for called, call in calls(tree):
            moves = called.endswith(".replace") and len(call.args) == 1
            method = "." in called and called.rpartition(".")[2] in METHODS
            if called in FORBIDDEN or method or moves or opens_for_writing(called, call):
                yield f"line {call.lineno}: {called}"

    assert offenders(fault, [name for name in MODULES if name != "log/files"]) == []


READS_SQLITE = {"hermes/state_db", "memory/check_words"}
"""The host's own database, and the full text that a check counts anew."""


def test_databases_are_for_the_log_and_for_what_is_imported():
    def fault(_, tree):
        if "sqlite3" in set(outside(walk(tree))):
            yield "imports sqlite3"

    others = [name for name in MODULES if room_of(name) not in {"log", "imports"}]
    assert offenders(fault, [name for name in others if name not in READS_SQLITE]) == []


def test_every_module_opens_by_saying_what_it_holds():
    assert [name for name, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_a_function_fits_a_screen():
    def fault(_, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                if lines > 70:
                    yield f"{node.name} has {lines} lines"

    assert offenders(fault) == []


def test_the_checks_see_what_they_are_to_find():
    """A test of the test: each forbidden thing, written out, is found."""
    wrong = ast.parse(
        "import filelock\nfrom ..memory import Memory\nif TYPE_CHECKING:\n    import "
        "os\nelse:\n    import time\ndef f():\n    import random"
    )
    assert set(outside(walk(wrong))) == {"filelock", "os", "time", "random"}
    assert set(outside(walk(wrong, typing=False))) == {"filelock", "time", "random"}
    assert list(inside("tree/view", walk(wrong))) == ["memory"]
    assert list(
        inside(
            "log/store", walk(ast.parse("from ..tree import view, records\nfrom . import files"))
        )
    ) == ["tree/view", "tree", "log/files"]
    written = 'open(p, "w"); p.open("ab"); p.open(mode="r+"); io.open(p, "x"); os.open(p, 1)'
    assert all(opens_for_writing(called, call) for called, call in calls(ast.parse(written)))
    read = (
        'open(p); open("warp"); p.open("rb"); Memory.open(root); os.open(os.devnull, 1); p.open()'
    )
    assert not any(opens_for_writing(called, call) for called, call in calls(ast.parse(read)))


def test_each_law_names_tests_that_exist():
    laws = (PACKAGE.parent / "LAWS.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d+)\.", laws, re.MULTILINE) == [
        str(number) for number in range(1, 18)
    ]
    for file, test in re.findall(r"`tests/(\w+\.py)::(\w+)`", laws):
        source = (PACKAGE.parent / "tests" / file).read_text(encoding="utf-8")
        assert f"def {test}(" in source, f"{file} has no {test}"
