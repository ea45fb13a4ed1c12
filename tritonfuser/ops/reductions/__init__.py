"""Rows of reductions, statistics and scans."""
