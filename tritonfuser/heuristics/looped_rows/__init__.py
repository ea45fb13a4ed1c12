"""Programs that loop over rows and keep a partial result of each column."""
