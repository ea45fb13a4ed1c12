"""A fusion cut into segments: the data that kernels are made of."""
