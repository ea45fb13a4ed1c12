"""Fusion in, scheduled segments out: grouping, splits, problem facts."""
