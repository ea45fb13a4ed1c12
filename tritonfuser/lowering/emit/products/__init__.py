"""Bodies of matrix products: a loop over K for each tile, and tiles by tensor descriptors."""
