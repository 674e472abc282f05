"""A Laikago that chooses its footholds on step-stones, stone grids and stairs.

| module | content |
|---|---|
| `env.py`, `single_foot_env.py` | the environments: all footholds and the body, or one foothold at a time |
| `base.py` | what both have in common |
| `commands.py` | actions, sensors and symmetry of the first |
| `single_foot.py` | actions and sensors of the second |
| `ground_cameras.py` | depth images, windows and labels |
| `terrain.py`, `walking_robot.py`, `fall_limits.py` | terrains, the simulated walking robot, termination |
| `baselines.py` | an oracle that knows the terrain, and a policy that ignores it |
"""
