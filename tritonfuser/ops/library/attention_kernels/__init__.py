"""Ways in which torch computes attention: which tensors each takes, forward and backward."""
