"""Environments, and the only room that knows the simulator.

Importing it registers `iap/Seek-v0` and `iap/DOMAIN-TASK-v0`, every task of dm_control's suite seen through a camera;
what an environment needs is loaded when it is made.
"""

import gymnasium

from iap.envs.suite_tasks import SUITE_TASKS

gymnasium.register("iap/Seek-v0", "iap.envs.seek:Seek", max_episode_steps=80)
for _task in SUITE_TASKS:
    gymnasium.register(f"iap/{_task}-v0", "iap.envs.suite:SuiteTask", kwargs={"task": _task})
