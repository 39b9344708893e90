"""The reports of subagents in one message of the host, one for each child.

Pure. A host that has told each child's report when it came files all of them once more, under the
user's name, when the last child is done: ``[ASYNC DELEGATION BATCH COMPLETE — …]``. Called by the
capture, which matches them with what it was told.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..base.host_phrases import (
    CUT_SHORT,
    NOTIFICATION_END,
    ONE_GOAL,
    ONE_RESULT,
    PARTIAL,
    REPORTS,
    TASK_HEAD,
    TRANSCRIPT,
)

_BLOCK: Final = re.compile(r"(?:\A|\n\n)(?=\[ASYNC DELEGATION )")
_ID: Final = re.compile(
    "|".join(rf"{re.escape(one.words)}(?: — )?([^\]\n]*)\]" for one in REPORTS[:2])
)
_TASK: Final = re.compile(
    rf"\n\n--- [✓✗⚠]{re.escape(TASK_HEAD.words)}(?P<at>\d+)/(?P<of>\d+)(?:: (?P<task>.*?))?"
    r"  \(status=(?P<status>[^,)\n]*)[^\n]*\) ---\n",
    re.DOTALL,
)
_GOAL: Final = re.compile(
    rf"^{re.escape(ONE_GOAL.words)}(.*?)\n(?:Context you provided: |Toolsets: |Role: )",
    re.DOTALL | re.MULTILINE,
)
_STATUS: Final = re.compile(r"^Status: (\S+)", re.MULTILINE)
_ERROR: Final = re.compile(r"^--- ERROR ---\n", re.MULTILINE)
_PROCESSES: Final = re.compile(
    r"^(?:Handed off to you: |Child left \d+ |Child's process )", re.MULTILINE
)
"""What host B tells of a child's processes after its report: _process_accounting_lines."""
_FAILED: Final = re.compile(
    r"\((?:no summary — status=|\w+: )[^\n]*\)\s*\Z"
    r"|The (?:subagent|batch) (?:was interrupted|did not complete)"
)


class Report(NamedTuple):
    """What one child reports. ``text`` is empty where it has none; ``trouble``: why, as told."""

    task: str
    text: str
    trouble: str = ""
    status: str = ""
    number: int = 1
    of: int = 1
    delegation: str = ""


def split_reports(text: str) -> list[Report]:
    """Each child's report, in the order of the tasks; none where the text is no such message."""
    text = text.partition(f"\n\n{NOTIFICATION_END.words}")[0]
    blocks = [block for block in _BLOCK.split(text) if _ID.match(block)]
    return [report for block in blocks for report in _reports(block)]


def _reports(block: str) -> list[Report]:
    found = _ID.match(block)
    name = next((part for part in found.groups() if part is not None), "") if found else ""
    if not block.startswith(REPORTS[0].words):
        return [_single(block, name)]
    heads = _in_order(list(_TASK.finditer(block)))
    if not heads:
        _, _, trouble = block.partition(_first(_ERROR, block))
        return [Report("", "", trouble.strip(), delegation=name)]
    ends = [head.start() for head in heads[1:]] + [len(block)]
    return [
        Report(
            (head["task"] or "").strip(),
            *_parted(block[head.end() : end]),
            head["status"],
            int(head["at"]),
            int(head["of"]),
            name,
        )
        for head, end in zip(heads, ends, strict=True)
    ]


def _in_order(heads: list[re.Match[str]]) -> list[re.Match[str]]:
    """The heads whose numbers go up: a report may quote one."""
    kept: list[re.Match[str]] = []
    for head in heads:
        if not kept or (int(head["at"]) > int(kept[-1]["at"]) and head["of"] == kept[0]["of"]):
            kept.append(head)
    return kept


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else "\n"


def _single(block: str, name: str) -> Report:
    before, _, body = block.partition(f"\n{ONE_RESULT.words}\n")
    goal, status = _GOAL.search(before), _STATUS.search(before)
    task = goal[1].strip() if goal else ""
    return Report(task, *_parted(body), status[1] if status else "", delegation=name)


def _parted(body: str) -> tuple[str, str]:
    """The child's words, and what the host says of them where it failed."""
    body = body.rpartition(f"\n{TRANSCRIPT.words}")[0] or body
    if found := _PROCESSES.search(body):
        body = body[: found.start()]
    if body.startswith(CUT_SHORT.words):
        body = body.partition("\n")[2]
    trouble, partial, text = body.partition(f"{PARTIAL.words}\n")
    if partial and (not trouble or trouble.endswith("\n")) and _may_be_trouble(trouble):
        return text.strip(), trouble.strip()
    return ("", body.strip()) if _FAILED.match(body) else (body.strip(), "")


def _may_be_trouble(text: str) -> bool:
    """Whether a text is what a host puts before a partial report, and not the report itself."""
    return not text.strip() or text.startswith(("(", "The subagent "))
