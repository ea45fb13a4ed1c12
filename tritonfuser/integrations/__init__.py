"""Other projects' ways into a definition; each by the public names alone."""
