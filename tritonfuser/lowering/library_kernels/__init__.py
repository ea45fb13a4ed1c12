"""Kernels of library ops that torch has no fast ones of."""
