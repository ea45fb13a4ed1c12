"""``python -m bench.replay --base REV``: the kernels of two trees, side by side."""
