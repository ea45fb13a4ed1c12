"""A recorded fusion -> compiled kernels: passes, fusing, tiles, kernel text, backends."""
