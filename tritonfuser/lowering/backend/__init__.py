"""Kernel text -> compiled kernel -> launch."""
