"""What the user touches: FusionDefinition, Fusion, handles, the printer, repro scripts."""
