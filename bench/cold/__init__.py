"""First runs with every cache empty, each in a process of its own."""
