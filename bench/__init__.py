"""Benchmarks and demonstrations of tritonfuser."""
