"""Record the fusion definitions of a torch model's step through Lightning Thunder."""
