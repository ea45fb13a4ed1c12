"""Bounds: what kernels count, and take, at least, whatever their tiles touch of memory."""
