"""Graph rewrites: Fusion in, Fusion out."""
