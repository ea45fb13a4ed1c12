"""Schedules of random problems, each with the time of its kernels."""
