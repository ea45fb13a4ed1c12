"""Results as records, tables, plots and files."""
