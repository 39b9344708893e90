"""The version of this package. ``pyproject.toml`` reads it, and ``plugin.yaml`` repeats it."""

__version__ = "0.1.0"
