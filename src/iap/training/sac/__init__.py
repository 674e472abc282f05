"""Soft actor-critic on privileged sensors: policies that know the simulator's state, as teachers of pixel policies."""
