"""The time of a function's first run with empty caches, each in its own process."""
