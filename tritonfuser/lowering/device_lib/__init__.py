"""`@triton.jit` functions that generated kernels call."""
