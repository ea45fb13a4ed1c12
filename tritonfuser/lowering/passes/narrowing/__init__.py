"""Parts of values: which are needed, and reductions of no more than that."""
