"""What decides which compiled plan serves a call."""
