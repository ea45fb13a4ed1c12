"""What is known already: keys of calls, compiled plans, ways into them."""
