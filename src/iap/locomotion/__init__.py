"""Legged locomotion without a simulator: robots, kinematics, gaits, and a walking controller."""
