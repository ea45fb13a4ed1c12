"""Lower bounds of counts and of predicted times, found without the footprints of tiles."""
