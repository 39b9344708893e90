"""What the command line does: reading files to import, importing them, the demonstration, and printing facts for people."""
