"""``python -m optchat``. Does nothing when the host merely executes the plugin's files at load."""

from __future__ import annotations

if __name__ == "__main__":
    from .cli import main

    raise SystemExit(main())
