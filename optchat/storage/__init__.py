"""Files and databases of one memory directory: the only room that writes."""
