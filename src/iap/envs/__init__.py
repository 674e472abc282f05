"""Environments, and the only room that knows the simulator.

Importing it registers `iap/Seek-v0`; `iap/DOMAIN-TASK-v0`, every task of dm_control's suite seen through a camera;
`iap/ObstacleCourse-v0`, an A1 between walls; and `iap/StepStones-v0`, `iap/StoneGrid-v0`, `iap/Stairs-v0`, a Laikago on
uneven terrain. What an environment needs is loaded when it is made.
"""

import gymnasium

from iap.envs.control_suite.tasks import SUITE_TASKS

gymnasium.register("iap/Seek-v0", "iap.envs.seek:Seek", max_episode_steps=80)
gymnasium.register(
    "iap/ObstacleCourse-v0", "iap.envs.quadruped.obstacle_course.env:ObstacleCourse", max_episode_steps=500
)
for _id, _terrain in (("StepStones", "step-stones"), ("StoneGrid", "stone-grid"), ("Stairs", "stairs")):
    gymnasium.register(
        f"iap/{_id}-v0",
        "iap.envs.quadruped.footsteps.env:FootstepTask",
        max_episode_steps=160,
        kwargs={"terrain": _terrain},
    )
for _task in SUITE_TASKS:
    gymnasium.register(f"iap/{_task}-v0", "iap.envs.control_suite.task:SuiteTask", kwargs={"task": _task})
