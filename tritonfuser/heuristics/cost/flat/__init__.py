"""Flat kernels: how threads access tensors, and the traffic of their tiles."""
