"""Rows that torch runs between kernels, with their torch sides."""
