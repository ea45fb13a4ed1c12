"""Schedules tried on a GPU: candidates, a process that times them, a search, a report."""
