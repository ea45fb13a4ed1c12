"""Calls of a plan: guards, bound plans, CUDA graphs, profiling."""
