"""Other programs' conversations, one reader for each format."""
