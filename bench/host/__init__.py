"""Host time of calls."""
