"""Training configurations by name."""
