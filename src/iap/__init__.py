"""Tiny encoder policies that look at every pixel."""

__version__ = "0.1.0"
