"""Rows that make tensors from scalars: constants, ranges, random numbers."""
