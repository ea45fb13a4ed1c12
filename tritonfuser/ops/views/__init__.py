"""Rows that are maps on indices: reshapes, slices, joins, gathers, scatters."""
