"""A recorded fusion in, compiled kernels out: passes, fusing, tiles, kernel text, backends."""
