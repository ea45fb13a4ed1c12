"""Worker processes that compile in parallel and measure one at a time."""
