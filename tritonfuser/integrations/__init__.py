"""Adapters for other projects. Each uses public names only."""
