"""Loads and stores as text: masks, what is loaded once, cache hints, loads a step ahead."""
