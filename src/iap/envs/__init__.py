"""Environments, and the only room that knows the simulator."""
