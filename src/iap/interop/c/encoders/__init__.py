"""The encoders in C: one file each, and what they share."""
