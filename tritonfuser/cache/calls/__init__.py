"""Ways into a plan: guards, bound calls, CUDA graphs, profiling."""
