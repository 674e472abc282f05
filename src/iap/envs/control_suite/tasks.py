"""The tasks of dm_control's suite by name, so that they are registered without loading the simulator."""

_TASKS_OF = {
    "acrobot": "swingup swingup_sparse",
    "ball_in_cup": "catch",
    "cartpole": "balance balance_sparse swingup swingup_sparse two_poles three_poles",
    "cheetah": "run",
    "dog": "stand walk trot run fetch",
    "finger": "spin turn_easy turn_hard",
    "fish": "upright swim",
    "hopper": "stand hop",
    "humanoid": "stand walk run run_pure_state",
    "humanoid_CMU": "stand walk run",
    "lqr": "lqr_2_1 lqr_6_2",
    "manipulator": "bring_ball bring_peg insert_ball insert_peg",
    "pendulum": "swingup",
    "point_mass": "easy hard",
    "quadruped": "walk run escape fetch",
    "reacher": "easy hard",
    "stacker": "stack_2 stack_4",
    "swimmer": "swimmer6 swimmer15",
    "walker": "stand walk run",
}

SUITE_TASKS = tuple(f"{domain}-{task}" for domain, tasks in _TASKS_OF.items() for task in tasks.split())

DISTRACTING_TASKS = (
    "ball_in_cup-catch",
    "cartpole-swingup",
    "cheetah-run",
    "finger-spin",
    "reacher-easy",
    "walker-walk",
)

# What a policy should do, and the parts to name in a video, by the name of their geom; of tasks with published results.
GOALS = {
    "ball_in_cup-catch": "Swing the ball into the cup.",
    "cartpole-swingup": "Swing the pole up and keep it upright.",
    "cheetah-run": "Run to the right as fast as possible.",
    "finger-spin": "Spin the hinged body with the finger.",
    "reacher-easy": "Move the end of the arm into the red target.",
    "walker-walk": "Stand up and walk to the right.",
}
LABELS = {
    "ball_in_cup": {"ball": "ball", "cup_part_0": "cup"},
    "cartpole": {"cart": "cart", "pole_1": "pole"},
    "cheetah": {"head": "head"},
    "finger": {"fingertip": "finger", "cap1": "spinner"},
    "point_mass": {"pointmass": "point", "target": "target"},
    "reacher": {"finger": "end of arm", "target": "target"},
    "walker": {"torso": "torso"},
}

REPEATS = {"ball_in_cup": 4, "cartpole": 8, "cheetah": 4, "finger": 2, "reacher": 4, "walker": 2}
DEFAULT_REPEAT = 2


def default_repeat(task: str) -> int:
    """The number of task steps per action that published benchmarks use."""
    return REPEATS.get(domain_of(task), DEFAULT_REPEAT)


def domain_of(task: str) -> str:
    """The domain of "domain-task"."""
    return task.partition("-")[0]
