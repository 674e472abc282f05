"""A Unitree A1 on a course of walls with gaps."""
