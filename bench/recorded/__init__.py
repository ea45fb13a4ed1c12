"""Fusion definitions recorded from real models, as recorded and at other sizes."""
