"""dm_control's suite from images, with the distractions of the Distracting Control Suite.

| module | content |
|---|---|
| `task.py` | the environment |
| `tasks.py` | the list of tasks |
| `loading.py`, `stepping.py`, `rewards.py` | dm_control's environments; their steps and rewards without its overhead |
| `view.py` | the camera: images, and segmentation into robot, floor and background |
| `keypoints.py` | positions of body parts by name; random states |
| `distractions/` | changes of background, camera pose and colours |
| `frames.py` | images of a task in dm_control's full quality |
"""

from iap.envs.control_suite.tasks import DISTRACTING_TASKS, SUITE_TASKS

__all__ = ["DISTRACTING_TASKS", "SUITE_TASKS"]
