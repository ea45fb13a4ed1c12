"""What a value reads and writes: read footprints, aliases, strides, bytes moved."""
