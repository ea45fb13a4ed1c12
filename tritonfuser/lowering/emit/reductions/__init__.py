"""Reductions and scans over the tiles of a kernel: in registers, or step by step in a loop."""
