"""Reductions in two steps: factors of their dims, both steps, what is left behind equal parts."""
