"""The simulator interface of the quadruped environments, and its MuJoCo implementation."""
