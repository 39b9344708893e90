"""What the command line does.

Reading files to import, importing them, the demonstration, and printing facts for people.
"""
