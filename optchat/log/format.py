"""The format of a memory directory: a number in its file ``format``, and which version wrote it.

``{"format":1,"by":"optchat 0.1.0","crc":…}``, one line as all others (``base/json_line.py``). A
directory without it was written before format 1 or by another program: it is read as it is, and is
of format 1 from the first opening on. One of a later format is read and never written to.

From format 1 on: messages in ``main/``, lines of the tree in ``tree/`` and notes in ``capture/``,
day files of lines whose checksum covers all of them, and ``usage.jsonl``. All else in the directory
is derived from these, but for ``config.json``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..base.errors import StoreError
from ..base.json_line import BadLineError, encode_line, is_whole, load_line
from ..base.version import __version__
from . import files, reads

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 1
"""The format this version writes, and the latest it knows."""
NAME: Final = "format"
UPGRADE: Final = "Upgrade optchat: bring in the newest one the way this one came"
"""What to do with a memory of a later format."""

logger = logging.getLogger(__name__)


def why_only_read(root: Path) -> str:
    """That this directory was written in a later format than we know, and by whom; else empty.

    Raises:
        StoreError: the file cannot be read.
    """
    found = _read(root)
    if found is None or found[0] <= FORMAT:
        return ""
    number, by = found
    return (
        f"it was written by {by} in format {number}, and this version knows formats up to {FORMAT}"
    )


def keep_format(root: Path) -> None:
    """Write the file where it is missing or damaged.

    A disk that refuses is no reason not to read; whoever writes next is told.
    """
    if _read(root) is None:
        by = f"optchat {__version__}"
        try:
            files.replace_file(root / NAME, encode_line({"format": FORMAT, "by": by}))
        except StoreError as error:
            logger.warning("optchat: %s", error)


def _read(root: Path) -> tuple[int, str] | None:
    """The number and the writer; None where there is no such file, or it is damaged.

    A damaged one is written anew: to refuse what is said from then on would cost more.
    """
    data = reads.read_file(root / NAME)
    if data is None:
        return None
    try:
        fields = load_line(data)
    except BadLineError:
        fields = {}
    number = fields.get("format")
    if not isinstance(number, int) or not is_whole(data, fields):
        logger.warning("optchat: %s is damaged and is written anew", root / NAME)
        return None
    return number, str(fields.get("by", ""))
