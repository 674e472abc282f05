"""Robots that move through indoor scenes."""
