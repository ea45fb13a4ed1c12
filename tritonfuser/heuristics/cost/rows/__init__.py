"""What tiles of rows load and store, and what that touches of memory."""
