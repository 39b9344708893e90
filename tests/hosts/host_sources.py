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
    r"[\"'](?:\\n|\s)*\[[A-Z][^\]\n\"']{0,60}?[ —]|display_kind|DISPLAY_KIND|_synthetic"
    r"|[\"']role[\"']: ?[\"']user|role=[\"']user|msg\[[\"']_|message\[[\"']_|row\[[\"']_"
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
    """A string expression as text, {} for what is known only when it runs.

    None if it is another.
    """
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


# -- marks


def kinds(host, file):
    """Every text that a module sets, passes or compares as the kind of a row."""
    module = tree(host, file)
    found = {text for name, text in constants(module).items() if name.endswith("DISPLAY_KIND")}
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg and node.arg.endswith("display_kind"):
            found.add(text_of(node.value))
        elif isinstance(node, ast.Dict):
            found |= {
                text_of(v)
                for k, v in zip(node.keys, node.values, strict=True)
                if text_of(k) == "display_kind"
            }
        elif isinstance(node, ast.Assign) and any(
            _key(target) == "display_kind" for target in node.targets
        ):
            found.add(text_of(node.value))
        elif isinstance(node, ast.Compare) and _names_kind(node.left):
            found |= {text_of(other) for other in node.comparators}
    return {kind for kind in found if kind}


def flags(host, file):
    """Every key with an underscore that a module sets on a message."""
    module = tree(host, file)
    names, found = constants(module), set()
    for node in ast.walk(module):
        if isinstance(node, ast.Dict):
            keys = {text_of(key, names) for key in node.keys if key is not None}
            found |= keys if "role" in keys else set()
        elif isinstance(node, ast.Assign):
            found |= {_key(target, names) for target in node.targets if _is_on_message(target)}
    return {key for key in found if key and key.startswith("_")}


def user_rows(host, file):
    """Line and words of every row in the user's role whose words a module holds."""
    module = tree(host, file)
    names = constants(module)
    for node in ast.walk(module):
        given = {}
        if isinstance(node, ast.Dict):
            given = {
                text_of(key): value
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            }
        elif isinstance(node, ast.Call):
            given = {keyword.arg: keyword.value for keyword in node.keywords}
        if "content" in given and text_of(given.get("role"), names) == "user":
            text = text_of(given["content"], names)
            if text and not text.startswith("{}"):
                yield node.lineno, text


def _key(target, names=None):
    return text_of(target.slice, names) if isinstance(target, ast.Subscript) else None


def _names_kind(node):
    if (
        isinstance(node, ast.Call)
        and node.args
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
    ):
        return text_of(node.args[0]) == "display_kind"
    return isinstance(node, ast.Name) and node.id == "display_kind"


_MESSAGE = re.compile(
    r"(?:\A|_)(?:m|msg|message|messages|row|entry|handoff|survivor|nudge|staged|prev|target"
    r"|anchor)(?:\Z|_|\[)"
)


def _is_on_message(target):
    if not isinstance(target, ast.Subscript):
        return False
    base = target.value
    while isinstance(base, (ast.Subscript, ast.Attribute)):
        base = base.value
    return isinstance(base, ast.Name) and bool(_MESSAGE.search(base.id))
