"""What was said, on disk: day files, their index, full text and the notes of sessions.

The only room that writes.
"""
