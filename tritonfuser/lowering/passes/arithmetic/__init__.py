"""Ops in the place of others: cheaper ones, approximations, products that are rounded."""
