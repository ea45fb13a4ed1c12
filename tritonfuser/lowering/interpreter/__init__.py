"""Kernels run on CPU tensors by Triton's interpreter."""
