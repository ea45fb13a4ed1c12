"""Rows of the op table that compute each element by itself."""
