"""How far a right kernel may be from exact arithmetic: a bound for each element of each value."""
