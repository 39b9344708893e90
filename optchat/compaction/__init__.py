"""How a node's text comes to be.

Free, by the local summarizer, or by a model; and the thread that builds what is due.
"""
