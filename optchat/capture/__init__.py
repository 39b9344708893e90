"""How the host's messages get into the log, each exactly once: one ``Capture`` for every agent."""
