"""The kernel axes of a segment: tiles, loops, grids, alignment."""
