"""Benchmarks and demonstrations of tritonfuser."""

import os

# What is measured is the heuristics, not what somebody tuned on this machine.
os.environ.setdefault("TRITONFUSER_TUNED", "0")
