"""Whole steps of models: through Thunder with tritonfuser, by torch.compile, and eager."""
