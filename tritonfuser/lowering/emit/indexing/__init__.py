"""Positions as text: index expressions, masks, addresses, block shapes; the bounds of all terms."""
