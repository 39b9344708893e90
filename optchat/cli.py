"""The command line.

``optchat …``, ``python -m optchat …`` and, in a Hermes with this plugin active, ``hermes optchat
…``.

Holds the parser, the choice of the memory directory and the last resort for errors; what a command
does is in ``commands/``, which is imported when one is run, because the host executes this file at
load and a missing package must not break that.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .commands.progress import Bars
    from .compaction.model import Model
    from .memory import Memory

DESCRIPTION = (
    "Endless memory for Hermes Agent: every message kept word for word, one fixed-budget view of "
    "all of it."
)

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
"""What a shell reports for a program ended by SIGPIPE, as every other one is under ``optchat view |
head -1``.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status."""
    parser = argparse.ArgumentParser(prog="optchat", description=DESCRIPTION)
    register_cli(parser)
    args = parser.parse_args(argv)
    if getattr(args, "optchat_action", None) is None:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    return _run(args)


class _ShowVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from .base.version import __version__

        print(f"optchat {__version__}")
        parser.exit()


def register_cli(parser: argparse.ArgumentParser) -> None:
    """Fill a parser with the commands: our own, or the one a host made for ``hermes optchat``."""
    parser.add_argument("--version", nargs=0, action=_ShowVersion, help="print the version")
    commands = parser.add_subparsers(dest="optchat_action", metavar="COMMAND")

    def command(name: str, text: str, *, facts: bool = False) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        added.add_argument(
            "--home",
            metavar="DIR",
            help="Hermes home; the memory is DIR/optchat (default: $HERMES_HOME, else ~/.hermes)",
        )
        if facts:
            added.add_argument(
                "--json", action="store_true", help="print the facts as one JSON object"
            )
        return added

    command("status", "what the memory holds, and what to do if something is wrong", facts=True)
    command("view", "print the view: all of it in one fixed budget", facts=True).add_argument(
        "--query", metavar="Q", default="", help="also show the lines this question points to"
    )
    opened = "open a line of the view: the two lines under it, or the message itself"
    zoom = command("zoom", opened, facts=True)
    zoom.add_argument(
        "address",
        metavar="ID+N",
        help="as it stands before the | of a line; ID alone is the message itself",
    )
    zoom.add_argument(
        "--page", metavar="P", default="1", help="page of a long message (default: 1)"
    )
    command(
        "date", "when a message was said, by whom and in which session", facts=True
    ).add_argument("address", metavar="ID")
    search = command("search", "find messages by their words, best first", facts=True)
    search.add_argument("query", metavar="QUERY", nargs="+")
    most = "most hits to print (default: 20)"
    search.add_argument("--limit", type=_positive, default=20, metavar="N", help=most)
    search.add_argument("--newest", action="store_true", help="newest first instead of best first")
    taken = command(
        "import",
        "take in a JSONL file, a state.db, an OptMem LOG.txt or a memory; twice adds nothing",
        facts=True,
    )
    taken.add_argument("file", metavar="FILE", help="the file, or a memory's directory")
    command(
        "compact",
        (
            "build all lines that are not built yet, now; inside Hermes with its model, where "
            "one is to write"
        ),
        facts=True,
    )
    command("check", "read everything and report damage", facts=True)
    copies = command("copies", "name what was logged twice, hide it or bring it back", facts=True)
    which = copies.add_mutually_exclusive_group()
    hide = "take all copies out of sight, or these messages"
    which.add_argument("--hide", metavar="A-B", nargs="?", const="", help=hide)
    which.add_argument("--show", metavar="A-B", help="bring these messages back")
    force = "hide these messages as long as they repeat earlier words"
    copies.add_argument("--force", action="store_true", help=force)
    gone = "take the words of a message out of the memory for good"
    redacted = command("redact", gone, facts=True)
    redacted.add_argument("address", metavar="ID")
    redacted.add_argument("--yes", action="store_true", help="do not ask")
    demo = command("demo", "show on a sample conversation what this is")
    demo.add_argument(
        "--keep", action="store_true", help="keep the sample memory to look around in it"
    )


def optchat_command(args: argparse.Namespace) -> int:
    """Run a command inside Hermes, which has parsed it and calls this by its name; its exit status.

    Raises: SystemExit: it is not 0. Older hosts drop what a command returns, and a script would go
    on after one that failed.
    """
    args.in_hermes = True
    if status := _run(args):
        raise SystemExit(status)
    return status


def _run(args: argparse.Namespace) -> int:
    """Run the command that was parsed; its exit status.

    Prints one line for whatever goes wrong, never a traceback.
    """
    _accept_any_text(sys.stdout)
    _accept_any_text(sys.stderr)
    # What the memory logs it also returns, and it is shown from there: without a handler Python
    # would print it a second time.
    logging.getLogger(__package__).addHandler(logging.NullHandler())
    try:
        action = ACTIONS.get(getattr(args, "optchat_action", None) or "")
        if action is None:
            _complain(f"no command given. Run: {_program(args)} --help")
            return EXIT_USAGE
        status = action(args)
        if sys.stdout is not None:
            # Here, where it can still be reported: at interpreter exit a full disk would print a
            # traceback.
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        _complain("stopped; everything said to be done so far is kept")
        return EXIT_INTERRUPTED
    except Exception as error:  # the last resort: whatever it is, the user gets one line
        return _report(error)
    return status


def _report(error: Exception) -> int:
    if os.environ.get("OPTCHAT_DEBUG"):
        raise error
    if (
        isinstance(error, ModuleNotFoundError)
        and error.name
        and not error.name.startswith(__package__ or "optchat")
    ):
        package = error.name.partition(".")[0]
        _complain(
            f"{package} is not installed for {sys.executable}. Run: {sys.executable} -m pip "
            f"install {package}"
        )
    elif isinstance(error, OSError) and not hasattr(error, "hint"):
        where = f" ({error.filename})" if error.filename else ""
        _complain(
            f"{error.strerror or error}{where}. Check the path, its permissions and the free space"
        )
        _drop_stdout_if_dead()
    elif hasattr(error, "hint"):
        _complain(str(error))
    else:
        _complain(
            f"unexpected {type(error).__name__}: {error}. Set OPTCHAT_DEBUG=1 to see where, "
            "and please report it"
        )
    return EXIT_ERROR


def _complain(text: str) -> None:
    """One line on stderr, whatever line breaks the text has."""
    # With a full disk or a closed terminal there is nowhere left to say it; the exit status still
    # does.
    with contextlib.suppress(OSError, ValueError):
        print(f"optchat: {' '.join(text.split())}", file=sys.stderr)


def _accept_any_text(stream: Any) -> None:
    """Without this a Chinese line on a cp1252 or ASCII terminal ends the command with a
    UnicodeEncodeError.
    """
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")


def _drop_stdout_if_dead() -> None:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _drop_stdout()


def _drop_stdout() -> None:
    """Send what is still buffered nowhere.

    Else the interpreter tries again at exit and prints a traceback.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _positive(text: str) -> int:
    # What int() takes beyond this, "1_0" or " 7", nobody means; and its own complaint would name
    # this function.
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, not {text!r}")
    return int(text)


def _program(args: argparse.Namespace) -> str:
    """What the user types before a command.

    Advice that names a program this shell does not know would be none.
    """
    if getattr(args, "in_hermes", False):
        return "hermes optchat"
    as_module = Path(sys.argv[0]).parts[-2:] == (__package__, "__main__.py")
    return f"{shlex.quote(sys.executable)} -m optchat" if as_module else "optchat"


def _typed(args: argparse.Namespace) -> Callable[[str], str]:
    """From a command to all that has to be typed for it, in this shell and for this memory."""
    home = f" --home {shlex.quote(args.home)}" if args.home else ""
    return lambda command: f"{_program(args)} {command}{home}"


def home_of(args: argparse.Namespace) -> Path:
    """The Hermes home the user named, else the environment's, else the default one."""
    return Path(args.home or os.environ.get("HERMES_HOME") or "~/.hermes").expanduser()


def _open(args: argparse.Namespace, *, bars: Bars, create: bool = False) -> Memory:
    """The memory of this home.

    Only ``create`` makes one: a typing mistake in --home must not open a second, empty memory.
    """
    from .base.errors import StoreError

    home = home_of(args)
    root = home / "optchat"
    # The default one needs no spelling, so it is made where it is missing.
    named = args.home or os.environ.get("HERMES_HOME")
    if create and named and not home.is_dir():
        raise StoreError(
            "there is no such Hermes home",
            path=home,
            hint=f"Run: mkdir -p '{home}', or name another with --home",
        )
    if not create and not (root / "main").is_dir():
        start = (
            f"It begins with the first message in Hermes, or with: {_typed(args)('import FILE')}"
        )
        raise StoreError(
            f"there is no memory in {home} yet",
            path=home,
            hint=f"{start}. To see one: {_program(args)} demo",
        )
    from .memory import Memory

    memory = Memory.open(root, compact=False, progress=bars, model=_model(args, root))
    if args.optchat_action != "status":  # which shows them among its facts
        for warning in memory.warnings:
            _complain(warning)
    return memory


def _model(args: argparse.Namespace, root: Path) -> Model | None:
    """The host's model, for what builds or counts its lines.

    Outside of the host there is none, also where one is named in there.
    """
    if not getattr(args, "in_hermes", False) or args.optchat_action not in ("compact", "status"):
        return None
    from .hermes.model_client import model_of
    from .memory import load_settings

    return model_of(load_settings(root)[0], root.parent)


def _facts(args: argparse.Namespace, facts: Mapping[str, Any], text: str) -> None:
    print(json.dumps(facts, ensure_ascii=False, indent=2) if args.json else text)


def _status(args: argparse.Namespace) -> int:
    from .commands.output import status_text
    from .commands.progress import Bars

    with Bars() as bars, _open(args, bars=bars) as memory:
        facts = memory.status()
    _facts(args, facts, status_text(facts, _typed(args)))
    return 0


def _view(args: argparse.Namespace) -> int:
    from .commands.progress import Bars

    with Bars() as bars, _open(args, bars=bars) as memory:
        text = memory.recall(args.query) if args.query else memory.view()
    _facts(args, {"query": args.query, "chars": len(text), "text": text}, text)
    return 0


def _zoom(args: argparse.Namespace) -> int:
    from .commands.progress import Bars

    with Bars() as bars, _open(args, bars=bars) as memory:
        text = memory.zoom(_address(args.address), page=args.page)
    _facts(args, {"address": _address(args.address), "page": args.page, "text": text}, text)
    return 0


def _date(args: argparse.Namespace) -> int:
    from .base.address import parse_address
    from .commands.output import date_facts
    from .commands.progress import Bars

    address = _address(args.address)
    with Bars() as bars, _open(args, bars=bars) as memory:
        text = memory.date(address)
        place = parse_address(address, total=memory.status()["messages"])
        ends = {id_: memory.message(id_) for id_ in (place.first, place.end - 1)}
    _facts(args, date_facts(address, ends), text)
    return 0


def _address(text: str) -> str:
    """``40+8``, also as copied from the view with the bar and the line after it."""
    return text.partition("|")[0].strip()


def _search(args: argparse.Namespace) -> int:
    from .commands.output import hits_facts, hits_text
    from .commands.progress import Bars

    query = " ".join(args.query)
    with Bars() as bars, _open(args, bars=bars) as memory:
        hits = memory.search(query, limit=args.limit, newest=args.newest)
        behind = memory.status()["full_text_behind"]
    if behind:
        _complain(
            f"{behind:,} of the newest messages cannot be found yet. To make them "
            f"searchable: {_typed(args)('compact')}"
        )
    _facts(args, hits_facts(query, hits), hits_text(query, hits))
    return 0


def _import(args: argparse.Namespace) -> int:
    from .commands.progress import Bars
    from .imports.merge import import_source
    from .imports.sources import open_source

    source = open_source(Path(args.file).expanduser())
    with Bars() as bars, _open(args, bars=bars, create=True) as memory:
        report = import_source(memory, source, bars)
    _facts(args, report.facts(), report.text(_typed(args)))
    return 0 if report.usable else EXIT_ERROR


def _compact(args: argparse.Namespace) -> int:
    from .commands.output import compacted_facts, compacted_text
    from .commands.progress import Bars

    # Without the thread: it would begin before the lines there were are counted.
    with Bars() as bars, _open(args, bars=bars) as memory:
        before = memory.status()
        done = memory.settle(progress=bars)
        after = memory.status()
    facts = compacted_facts(before, after, complete=done)
    _facts(args, facts, compacted_text(facts, _typed(args)))
    return 0 if done else EXIT_ERROR


def _check(args: argparse.Namespace) -> int:
    from .commands.output import check_text
    from .commands.progress import Bars

    with Bars() as bars, _open(args, bars=bars) as memory:
        report = memory.check(progress=bars)
    _facts(args, report, check_text(report, _typed(args)))
    return EXIT_ERROR if report["damage"] or report["disagreements"] else 0


def _copies(args: argparse.Namespace) -> int:
    from .commands.copies import copies_text, hidden_text, shown_text, span_of
    from .commands.progress import Bars

    with Bars() as bars, _open(args, bars=bars) as memory:
        typed = _typed(args)
        if args.show is not None:
            shown = memory.copies.show(*span_of(args.show))
            _facts(args, shown, shown_text(shown, typed))
        elif args.hide is not None:
            span = span_of(args.hide) if args.hide else (None, None)
            hidden = memory.copies.hide(*span, progress=bars, force=args.force)
            _facts(args, hidden, hidden_text(hidden, typed))
        else:
            found = memory.copies.find(bars)
            _facts(args, {"copies": found}, copies_text(found, typed))
    return 0


def _redact(args: argparse.Namespace) -> int:
    from .base.address import parse_address
    from .commands.progress import Bars
    from .commands.redact_prompt import is_yes, question, redacted_text

    with Bars() as bars, _open(args, bars=bars) as memory:
        address = _address(args.address)
        if not args.yes:
            place = parse_address(address, total=memory.status()["messages"])
            if place.level == 0 and not is_yes(
                _answer(question(memory.message(place.index), place.index))
            ):
                _complain("nothing was changed. To redact without being asked: --yes")
                return EXIT_ERROR
        facts = memory.redact(address)
    _facts(args, facts, redacted_text(facts, _typed(args)))
    return EXIT_ERROR if facts["left_in"] else 0


def _answer(question: str) -> str:
    """What the user answers; nothing where there is nobody to ask.

    On stderr, because stdout may be read by a program.
    """
    print(question, end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline() if sys.stdin is not None else ""
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer


def _demo(args: argparse.Namespace) -> int:
    from .commands.demo import run_demo

    return run_demo(
        Path(args.home).expanduser() if args.home else None,
        keep=args.keep,
        out=print,
        program=_program(args),
    )


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "status": _status,
    "view": _view,
    "zoom": _zoom,
    "date": _date,
    "search": _search,
    "import": _import,
    "compact": _compact,
    "check": _check,
    "copies": _copies,
    "redact": _redact,
    "demo": _demo,
}
