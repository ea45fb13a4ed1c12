"""Measurements and demonstrations; they use the package's public names alone."""
