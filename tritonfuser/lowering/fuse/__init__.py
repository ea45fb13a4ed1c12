"""A simplified fusion -> scheduled segments: grouping, splits, problem facts."""
