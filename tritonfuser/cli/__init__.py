"""The command line, ``python -m tritonfuser``: a module for each subcommand."""
