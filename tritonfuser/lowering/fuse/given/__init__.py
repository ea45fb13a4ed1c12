"""A given schedule -> its segments: nothing is chosen, and what is illegal is refused."""
