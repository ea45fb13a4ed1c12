"""Materializes loop invariants: values that kernels compute several times for each element."""
