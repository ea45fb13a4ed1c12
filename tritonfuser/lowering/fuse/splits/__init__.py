"""Groups in, the reductions to do in two steps out: for more programs, or to share rows."""
