"""What could be tried for a kernel: the legal params of each scheduler, as data."""
