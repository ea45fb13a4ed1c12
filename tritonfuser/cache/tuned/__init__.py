"""Schedules that a tuner found, kept on disk for later runs."""
