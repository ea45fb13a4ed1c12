"""Tensors pieced together: choices by an index, sums of padded tensors, slices side by side."""
