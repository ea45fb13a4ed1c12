"""What a call costs on the host."""
