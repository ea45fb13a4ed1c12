"""Micro-benchmarks of a GPU: what is measured, the kernels that are timed, the results."""
