"""Rules of shapes and index maps of views, which the op table names."""
