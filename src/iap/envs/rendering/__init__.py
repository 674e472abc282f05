"""Cameras: OpenGL rendering through MuJoCo, and depth images by ray casting."""
