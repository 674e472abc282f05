"""dm_control's suite from pixels, with the distractions of the Distracting Control Suite.

| module | what |
|---|---|
| `task.py` | the environment |
| `tasks.py` | which tasks there are |
| `loading.py`, `stepping.py`, `rewards.py` | dm_control's environments, their steps and rewards without its overhead |
| `view.py` | the camera's image before a sky, and which part of it is robot, floor, background |
| `distractions.py` | what changes the look: `background.py`, `camera.py`, `colour.py` |
| `sources.py` | where backgrounds come from: `files.py`, `davis.py`, `procedural.py`; kept in `cache.py` |
| `frames.py` | a few pictures of a task, as dm_control draws them |
"""

from iap.envs.control_suite.tasks import DISTRACTING_TASKS, SUITE_TASKS

__all__ = ["DISTRACTING_TASKS", "SUITE_TASKS"]
