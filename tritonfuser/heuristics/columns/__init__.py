"""Reductions over columns: tiles, numbers of parts, pipeline stages."""
