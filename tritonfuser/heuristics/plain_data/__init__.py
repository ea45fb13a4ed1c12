"""Dataclasses as plain data: to it, strictly back, limits of fields, and the JSON Schema."""
