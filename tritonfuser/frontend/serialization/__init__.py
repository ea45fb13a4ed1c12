"""A definition as plain data, which JSON and pickle carry, and back through the op table."""
