"""Rows that lie across memory: tiles of columns, in how many parts columns are, pipeline stages."""
