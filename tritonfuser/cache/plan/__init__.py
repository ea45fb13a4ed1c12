"""An execution plan: allocations, launches and views as one generated function."""
