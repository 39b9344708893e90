"""Which room may know which, and what each may do.

Read from the source, so that a late import counts as well.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "optchat"
MODULES = {
    path.relative_to(PACKAGE).with_suffix("").as_posix(): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}

RANKS = {
    "core": 0,
    "storage": 1,
    "capture": 2,
    "recall": 2,
    "compaction": 2,
    "memory": 3,
    "commands": 4,
    "config_schema": 4,
    "hermes": 5,
    "cli": 6,  # run inside the host it takes the model from there
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


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downward_only(name):
    room = room_of(name)
    for target in inside(name, walk(TREES[name])):
        reached = room_of(target)
        if room == reached or room in DOORS:
            continue
        assert room in RANKS, f"{name} stands in no room"
        assert reached in RANKS, f"{name} imports {target}, which stands in no room"
        assert RANKS[room] > RANKS[reached], (
            f"{name} imports {target}: {room} may not know {reached}"
        )


@pytest.mark.parametrize("name", MODULES)
def test_inside_the_package_imports_are_relative(name):
    """The host loads the package under names of its own, and it may be loaded under two names in
    one process.
    """
    assert "optchat" not in set(outside(walk(TREES[name])))


@pytest.mark.parametrize("name", ENTRIES)
def test_what_the_host_executes_at_load_needs_the_standard_library_only(name):
    late = {
        inner
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
    }
    at_load = [node for node in walk(TREES[name], typing=False) if node not in late]
    assert set(outside(at_load)) <= set(sys.stdlib_module_names)
    assert set(inside(name, at_load)) <= set(ENTRIES), "the rooms need dependencies"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_the_standard_library_and_the_named_dependencies(name):
    """The host's own modules are for ``hermes/``, and for the form the host's dashboard
    asks for.
    """
    allowed = set(sys.stdlib_module_names) | OURS
    if room_of(name) == "hermes" or name == "config_schema":
        allowed |= HOST
    assert set(outside(walk(TREES[name]))) <= allowed


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


@pytest.mark.parametrize("name", [name for name in MODULES if room_of(name) == "core"])
def test_the_core_is_pure(name):
    tree = TREES[name]
    assert not set(outside(walk(tree, typing=False))) & IMPURE
    assert not {called for called, _ in calls(tree)} & {
        "open",
        "print",
        "input",
        "datetime.now",
        "datetime.today",
        "date.today",
        "datetime.utcnow",
    }


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


@pytest.mark.parametrize("name", [name for name in MODULES if name != "storage/files"])
def test_only_one_module_writes_syncs_replaces_and_locks_files(name):
    tree = TREES[name]
    assert not set(outside(walk(tree))) & {"filelock", "fcntl", "msvcrt"}
    for called, call in calls(tree):
        assert called not in FORBIDDEN, f"line {call.lineno}: {called}"
        assert called.rpartition(".")[2] not in METHODS or "." not in called, (
            f"line {call.lineno}: {called}"
        )
        assert not (called.endswith(".replace") and len(call.args) == 1), (
            f"line {call.lineno}: {called} moves a file"
        )
        assert not opens_for_writing(called, call), (
            f"line {call.lineno}: {called} opens for writing"
        )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in MODULES
        if room_of(name) not in {"storage", "commands"} and name != "hermes/state_db"
    ],
)
def test_databases_are_for_the_storage_and_for_what_is_imported(name):
    assert "sqlite3" not in set(outside(walk(TREES[name])))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_opens_by_saying_what_it_holds(name):
    assert ast.get_docstring(TREES[name])


@pytest.mark.parametrize("name", MODULES)
def test_a_function_fits_a_screen(name):
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno + 1 <= 70, node.name


def test_the_checks_see_what_they_are_to_find():
    """A test of the test: each forbidden thing, written out, is found."""
    wrong = ast.parse(
        "import filelock\nfrom ..memory import Memory\nif TYPE_CHECKING:\n    import "
        "os\nelse:\n    import time\ndef f():\n    import random"
    )
    assert set(outside(walk(wrong))) == {"filelock", "os", "time", "random"}
    assert set(outside(walk(wrong, typing=False))) == {"filelock", "time", "random"}
    assert list(inside("core/view", walk(wrong))) == ["memory"]
    assert list(
        inside(
            "storage/store",
            walk(ast.parse("from ..core import view, records\nfrom . import files")),
        )
    ) == [
        "core/view",
        "core/records",
        "storage/files",
    ]
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
