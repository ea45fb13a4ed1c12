"""A segmentation in, one of less time by the cost model out: what else could be in memory."""
