"""The memory that a tile touches: sectors, lines, runs, and what is moved more than once."""
