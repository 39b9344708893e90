"""Facts as text for people: status, search hits, what check found, what compact did.

Pure: prints and reads nothing.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .copies import copies_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..base.record import Message
    from ..compaction.usage import ModelReport
    from ..memory.reports import CheckReport, Status
    from ..recall.search import Hit


def status_text(facts: Status, typed: Callable[[str], str]) -> str:
    """The status as aligned rows, then one line for each thing that is not as it should be, with
    what to do.

    ``typed`` makes of a command what the user has to type for it, here as everywhere in this file.
    """
    rows = [
        ("memory", str(facts["root"])),
        ("messages", _messages(facts)),
        ("last append", _moment(facts["last_append"]) or "never"),
        ("lines", _lines(facts)),
        (
            "view",
            (
                f"{facts['view_chars']:,} of {facts['view_budget_chars']:,} characters, "
                f"{count(facts['view_lines'], 'line')}"
            ),
        ),
        ("full text", _full_text(facts["full_text_behind"])),
        ("summarizer", str(facts["summarizer"])),
        *model_rows(facts["model"]),
        ("compactor", str(facts["compactor"])),
        ("on disk", _disk(facts["bytes_on_disk"])),
    ]
    if _is_over(facts):
        rows.append(("last error", str(facts["last_error"])))
    advice = list(_advice(facts, typed))
    text = "\n".join(f"{name:<12} {value}" for name, value in rows)
    return text + ("\n\n" + "\n".join(f"! {line}" for line in advice) if advice else "")


def model_rows(model: ModelReport) -> list[tuple[str, str]]:
    """What the model that writes lines has cost and has still to do, as label and text.

    Nothing where there never was one.
    """
    if not (model.get("name") or model.get("paused")):
        return []
    today = _tokens(
        model["tokens_in_today"], model["tokens_cached_today"], model["tokens_out_today"]
    )
    ever = _tokens(model["tokens_in"], model["tokens_cached"], model["tokens_out"])
    rows = [
        ("model", f"paused: {model['paused']}" if model["paused"] else "ready"),
        ("calls", f"{model['calls_today']:,} today, {model['calls']:,} in all"),
        ("tokens today", today),
        ("tokens ever", f"{ever}; {model['tokens_per_message']:,} per message"),
        ("backlog", _backlog(model["backlog"], model["seconds_left"])),
    ]
    if model["retained"] or model["not_retained"]:
        rows.append(
            (
                "turns judged",
                f"{model['retained']:,} worth its lines, {model['not_retained']:,} not",
            )
        )
    return rows


def remedy(model: ModelReport) -> str:
    """What a user can do where lines wait for a model that is paused; empty where none do."""
    if not (model.get("backlog") and model.get("paused")):
        return ""
    if "compact_tokens_per_day" in model["paused"]:
        # No fault of the model's: asking it again would not help today.
        return (
            "To have more written today, raise it in config.json; a session begun after that "
            "goes on"
        )
    return (
        "Hermes asks it again now and then. To ask it now: hermes optchat compact. It is "
        "named under auxiliary.optchat_compact in "
        'Hermes\' config.yaml; to do without it, set "summarizer": "local" in config.json'
    )


def _tokens(sent: int, cached: int, received: int) -> str:
    return f"{sent:,} in ({cached:,} from a cache), {received:,} out"


def _backlog(lines: int, seconds: float | None) -> str:
    if not lines:
        return "no line for the model"
    return f"{count(lines, 'line')} to write" + (
        f", for about {_span(seconds)}" if seconds is not None else ""
    )


def _span(seconds: float) -> str:
    """A time to wait, as coarse as it is guessed."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return count(round(seconds / size), unit)
    return count(max(1, round(seconds)), "second")


def _messages(facts: Status) -> str:
    if not facts["messages"]:
        return "none yet"
    first, last = _day(facts["first_date"]), _day(facts["last_append"])
    since = f", since {first}" if first and first != last else f", on {first}" if first else ""
    return f"{facts['messages']:,} in {count(facts['sessions'], 'session')}{since}"


def _lines(facts: Status) -> str:
    waiting = facts["lines_ready"]
    return (
        f"{facts['lines_built']:,} built, "
        f"{f'{waiting:,} ready to build' if waiting else 'none waiting'}"
    )


def _full_text(behind: int) -> str:
    return f"{count(behind, 'message')} behind" if behind else "up to date"


def _disk(sizes: dict[str, int]) -> str:
    parts = ", ".join(f"{name} {bytes_text(size)}" for name, size in sizes.items())
    return f"{bytes_text(sum(sizes.values()))} ({parts})"


def _is_over(facts: Status) -> bool:
    """Whether the last error is one of a model that has been asked again since.

    History, and no reason to do anything.
    """
    model = facts["model"]
    return (
        bool(facts["last_error"])
        and facts["last_error"] == model["last_error"]
        and not model["paused"]
    )


def _advice(facts: Status, typed: Callable[[str], str]) -> Iterable[str]:
    yield from facts["warnings"]
    if facts["last_error"] and not _is_over(facts):
        yield f"last error: {facts['last_error']}"
    working = facts["compactor"] in ("this process", "another process")
    for_model = facts["model"]["backlog"]
    if todo := remedy(facts["model"]):
        yield (
            f"{count(for_model, 'line')} still to be written by a model that is paused, for the "
            f"reason above. {todo}"
        )
    elif for_model and for_model == facts["lines_ready"]:
        if not working:
            yield (
                f"{count(for_model, 'line')} can be written by the model while Hermes runs. To "
                "do it now: hermes optchat compact"
            )
    elif facts["lines_ready"] and not working:
        yield (
            f"{count(facts['lines_ready'], 'line')} can be built: Hermes does it while it runs. "
            f"To do it now: {typed('compact')}"
        )
    elif facts["full_text_behind"] and not working:
        yield (
            "search does not know the newest messages yet. To bring it up to date: "
            f"{typed('compact')}"
        )


def compacted_facts(before: Status, after: Status, *, complete: bool) -> dict[str, Any]:
    """What one run of the compactor did, from the status before and after it.

    And why lines still wait, where that is known.
    """
    why = "" if complete else after["model"]["paused"] or after["last_error"]
    built = after["lines_built"] - before["lines_built"]
    return {
        "built": built,
        "complete": complete,
        "lines": after["lines_built"],
        "waiting": after["lines_ready"],
        "reason": why,
    }


def compacted_text(facts: dict[str, Any], typed: Callable[[str], str]) -> str:
    """The same for people."""
    built = f"built {count(facts['built'], 'line')}"
    if facts["complete"]:
        return f"{built}; all {facts['lines']:,} lines are there"
    why = f": {facts['reason']}" if facts["reason"] else ""
    return f"{built}; {facts['waiting']:,} still wait{why}. What to do: {typed('status')}"


def check_text(report: CheckReport, typed: Callable[[str], str]) -> str:
    """What a check found: damage first, and what it means; last what is there twice."""
    lines = [f"{count(report['messages'], 'message')} and {count(report['nodes'], 'line')} read"]
    lines += [f"damage: {fault}" for fault in report["damage"]]
    lines += [f"disagreement: {fault}" for fault in report["disagreements"]]
    lines += [f"note: {note}" for note in report["notes"]]
    if report["damage"]:
        lines.append(
            "Damaged lines are stepped over and the rest is in use; a copy of the files from "
            "a backup would bring them back."
        )
    elif report["disagreements"]:
        lines.append("The messages are whole; what disagrees is derived from them.")
    else:
        lines.append("no damage")
    if report["copies"]:
        lines.append(copies_text(report["copies"], typed))
    return "\n".join(lines)


def hits_text(query: str, hits: Sequence[Hit]) -> str:
    """One line a hit, its address first, so that it can be given to zoom."""
    return "\n".join(hit.line for hit in hits) if hits else f"nothing found for: {query}"


def hits_facts(query: str, hits: Sequence[Hit]) -> dict[str, Any]:
    """The hits with their lines and whole texts."""
    return {"query": query, "hits": [asdict(hit) for hit in hits]}


def date_facts(address: str, ends: Mapping[int, Message | None]) -> dict[str, Any]:
    """Of the first and the last message under an address, which may be one.

    When each was said, by whom and where. Null is not known.
    """
    names = ("date", "kind", "session", "author", "platform", "tool")
    said = [
        {"id": id_, **{name: getattr(message, name, None) or None for name in names}}
        for id_, message in ends.items()
    ]
    return {"address": address, "messages": said}


def bytes_text(size: int) -> str:
    """Bytes for people: 1,234 B, 56.7 KB, 1.2 MB."""
    if size < 10_000:
        return f"{size:,} B"
    value = float(size)
    for unit in ("KB", "MB", "GB"):
        value /= 1000
        if value < 1000 or unit == "GB":
            break
    return f"{value:.1f} {unit}"


def count(number: int, noun: str) -> str:
    """A number with its noun: 1 line, 1,234 lines."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _moment(date: str | None) -> str:
    return (date or "").replace("T", " ")[:16]


def _day(date: str | None) -> str:
    return (date or "")[:10]
