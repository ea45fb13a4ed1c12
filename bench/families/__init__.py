"""Families of models whose steps are recorded: small modules that do what the real ones do.

Each is built on the meta device from a table of sizes. A third of the families, chosen by a hash of
the name, is held out: it is run and reported, and nothing is made after it.
"""
