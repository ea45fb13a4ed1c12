"""Scheduled segment in, kernel text out."""
