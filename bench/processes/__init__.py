"""Jobs shared out over processes, one at a time on the GPU."""
