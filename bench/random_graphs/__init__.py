"""Random definitions as users and tracers record them, at sizes that fill a GPU."""
