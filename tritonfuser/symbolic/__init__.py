"""Sizes that vary between runs, shape guards, and integer index expressions."""
