"""How much a short tune finds of what a long one does, and how much the heuristics had already."""
