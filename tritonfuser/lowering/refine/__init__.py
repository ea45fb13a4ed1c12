"""Improves a segmentation by the cost model: other values in memory, other splits."""
