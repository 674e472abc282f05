"""Legged robots on terrain made of boxes; the tasks use the simulator interface in `simulation/protocol.py` only."""
