"""What the installed hosts write, read out of their sources: texts by file and function.

An f-string is one text with {} where a value goes. Docstrings, log lines and printed lines are left
out: no message holds them.
"""

import ast
import re
from functools import cache
from typing import NamedTuple

import make_hosts

ROOMS = ("agent", "gateway", "tools", "hermes_cli", "cron", "plugins", "tui_gateway", "acp_adapter")
_LOGGERS = ("log", "logger", "logging", "_log", "_logger")
_WORTH_PARSING = re.compile(
    r"[\"'](?:\\n)*\[[A-Z]|display_kind|[\"']role[\"']|DISPLAY_KIND|_synthetic"
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Text(NamedTuple):
    file: str
    function: str
    line: int
    text: str


def packages(host):
    return next(make_hosts.environment(host).glob("lib/python*/site-packages"))


@cache
def files(host):
    """The host's own modules in which a phrase or mark may stand."""
    root = packages(host)
    own = [
        *(file for file in root.glob("*.py")),
        *(f for room in ROOMS for f in (root / room).rglob("*.py")),
    ]
    kept = [f for f in sorted(own) if _WORTH_PARSING.search(f.read_text(encoding="utf-8"))]
    return [file.relative_to(root).as_posix() for file in kept]


@cache
def tree(host, file):
    return ast.parse((packages(host) / file).read_text(encoding="utf-8"))


@cache
def texts(host, file):
    """All texts of one module."""
    found = []
    _collect(tree(host, file), file, "", found)
    return found


def text_of(node, names=None):
    """A string expression as text, {} for what is known only when it runs; None if it is another."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, names) or "{}" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value, names) if isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.Name):
        return (names or {}).get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [text_of(side, names) for side in (node.left, node.right)]
        return None if sides == [None, None] else "".join("{}" if s is None else s for s in sides)
    return None


def constants(module):
    """A module's own names for texts."""
    names = {}
    for node in module.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            text = text_of(node.value, names)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if text is not None:
                names.update(
                    {target.id: text for target in targets if isinstance(target, ast.Name)}
                )
    return names


def _collect(node, file, function, found):
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)):
        text = text_of(node)
        if text is not None:
            found.append(Text(file, function, node.lineno, text))
            if not isinstance(node, ast.BinOp):
                return
    if isinstance(node, ast.Call) and _is_told_to_nobody(node.func):
        return
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, (*_SCOPES, ast.Module)):
        function = getattr(node, "name", "")
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            children = [child for child in children if child is not first]
    for child in children:
        _collect(child, file, function, found)


def _is_told_to_nobody(function):
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id in _LOGGERS
    return isinstance(function, ast.Name) and function.id == "print"
