"""Pure logic: records, tree, view, rendering, settings, errors.

No files, clock, threads or logging.
"""
