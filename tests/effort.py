"""How much is tried.

What a normal run has time for, or all of it where OPTCHAT_TEST_FULL is set.
"""

import os

from hypothesis import settings

FULL = bool(os.environ.get("OPTCHAT_TEST_FULL"))


def effort(normal, full):
    """A number, or anything else, for the kind of run this is."""
    return full if FULL else normal


def share(count):
    """So many cases, or in a run that tries fewer examples the same share of them."""
    return max(1, count * min(settings.default.max_examples, 100) // 100)
