"""The op table: one row an op, from which all that is said of it elsewhere is made."""
