"""Clocks, kernel times, errors and bytes: how a figure is taken."""
