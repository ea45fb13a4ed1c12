"""Kernel text to a compiled kernel and its launch."""
