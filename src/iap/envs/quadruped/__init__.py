"""Legged robots on terrain made of boxes; the tasks know the seam in `simulator.py`, not who simulates."""
