"""Looking at a definition and its runs: printers, reports, references, profiles."""
