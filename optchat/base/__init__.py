"""What every room speaks: records and their lines, addresses, settings, errors, terms.

Pure: no files, clock, threads or logging.
"""
