"""Rules of complex numbers as pairs of reals."""
