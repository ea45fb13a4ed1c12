"""Caches: keys of calls, compiled plans, fast calls of plans, tuned schedules."""
