"""Exchange with other libraries and formats."""
