"""Running a definition: executors, bound plans, validation."""
