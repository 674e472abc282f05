"""A key database for cross-attention: exact lookup, sign hashing, sampling tree."""
