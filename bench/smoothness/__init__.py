"""Whether sizes that are alike take alike: random points with two partners each."""
