"""Gymnasium environments; the only package that uses a simulator.

| id | task |
|---|---|
| `iap/Seek-v0` | move to a target that jumps |
| `iap/DOMAIN-TASK-v0` | every task of dm_control's suite from images, with optional distractions |
| `iap/ObstacleCourse-v0` | an A1 walks through gaps in walls |
| `iap/StepStones-v0`, `iap/StoneGrid-v0`, `iap/Stairs-v0` | a Laikago chooses footholds and body motion |
| `iap/StepStonesSingleFoot-v0` and so on | the same with one foothold at a time |
| `iap/PointNav-v0` | a rolling base, or an A1, goes to a goal in an unknown apartment |
| `iap/IndoorCourse-v0` | an A1 walks on through rooms, doors and narrow gates |

Importing this package registers the ids. Simulators are imported when an environment is made.
"""

import gymnasium

from iap.envs.control_suite.tasks import SUITE_TASKS

gymnasium.register("iap/Seek-v0", "iap.envs.seek:Seek", max_episode_steps=80)
gymnasium.register(
    "iap/ObstacleCourse-v0", "iap.envs.quadruped.obstacle_course.env:ObstacleCourse", max_episode_steps=500
)
for _name, _terrain in (("StepStones", "step-stones"), ("StoneGrid", "stone-grid"), ("Stairs", "stairs")):
    for _suffix, _class in (("", "env:Footsteps"), ("SingleFoot", "single_foot_env:SingleFootsteps")):
        gymnasium.register(
            f"iap/{_name}{_suffix}-v0",
            f"iap.envs.quadruped.footsteps.{_class}",
            max_episode_steps=160,
            kwargs={"terrain": _terrain},
        )
gymnasium.register("iap/PointNav-v0", "iap.envs.indoor.point_nav:PointNav", max_episode_steps=300)
gymnasium.register("iap/IndoorCourse-v0", "iap.envs.indoor.indoor_course:IndoorCourse", max_episode_steps=500)
for _task in SUITE_TASKS:
    gymnasium.register(f"iap/{_task}-v0", "iap.envs.control_suite.task:SuiteTask", kwargs={"task": _task})
