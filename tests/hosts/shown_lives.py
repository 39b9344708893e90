"""A life in which a host keeps, drops and compresses what the memory has put in front of the model,
and what a request then holds.
"""

import re
from itertools import pairwise

from model_server import memory_blocks

UNBUILT = "(not summarized yet"

TURN = """talk.say(f"tell me of qu{chr(97 + n % 26) * 3}{'z' * (n // 26)}x " + "lorem ipsum dolor " * 300)"""

FORTY_TURNS = (
    f"""
talk = Talk("s1")
for n in range(24):
    {TURN}
    if n in (3, 10, 17):
        talk.compress()
talk.end()
""",
    f"""
talk = Talk("s1", resume=True)
for n in range(24, 40):
    {TURN}
    if n in (27, 33):
        talk.compress()
talk.end()
""",
)
"""Forty turns with five compressions, the last sixteen in another process."""


def memory_chars(body):
    """Characters of memory in one request, what the host puts around the blocks included."""
    return sum(
        len(f"\n\n<memory-context>{block}</memory-context>") for block in memory_blocks(body)
    )


def lines(body):
    """The lines of all blocks in a request that are not indented, as (first, end), in the order of
    the log.

    A line that only says that it is not summarized yet counts unless a text of it stands there as
    well.
    """
    found = [
        re.findall(r"^(\d+)\+(\d+)\|(.*)$", block, re.MULTILINE) for block in memory_blocks(body)
    ]
    rows = [
        ((int(first), int(first) + int(count)), text.startswith(UNBUILT))
        for block in found
        for first, count, text in block
    ]
    told = [span for span, unbuilt in rows if not unbuilt]
    named = [
        span
        for span, unbuilt in rows
        if unbuilt and not any(span[0] < end and first < span[1] for first, end in told)
    ]
    return sorted(told + named)


def told_twice(body):
    """Lines of a request that say what another of its lines says."""
    return [(before, after) for before, after in pairwise(lines(body)) if after[0] < before[1]]


def fill(home, budget, **settings):
    """A memory with more in it than the view can show."""
    home.settings(view_budget_chars=budget, **settings)
    return home.seed(
        *(
            (("user", "talk")[n % 2], f"message {n} of the past: " + f"word{n} " * 12)
            for n in range(budget // 13)
        )
    )
