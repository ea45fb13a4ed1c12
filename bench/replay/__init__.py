"""``python -m bench.replay --base REV``: compare the kernels of two revisions."""
