"""Values that no tensor has: positions, constants, random numbers."""
