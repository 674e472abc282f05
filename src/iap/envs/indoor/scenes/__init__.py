"""Scenes in the folder format of Gibson and iGibson: reading, compiling for MuJoCo, and a cache on disk."""
