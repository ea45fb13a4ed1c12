"""Measurements: times, kernel times, errors and bytes moved."""
