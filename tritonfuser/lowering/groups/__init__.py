"""What grouping works on: anchors, fusion groups, and the graph of what runs before what."""
