"""Legged locomotion on NumPy: how legs are moved, whatever simulates them or whatever they are made of."""
