"""What a video says about its task: name, goal, and the returns that an episode's return is compared with."""

import inspect
import re

import gymnasium
import numpy as np

from iap.envs.core import EnvConfig, action_count
from iap.envs.protocols import env_name
from iap.policies import PolicyFile, count_params
from iap.policies.serialization import load
from iap.rollouts import EVALUATION_SEEDS, run_episode
from iap.rollouts.random_actions import RandomActions
from iap.viz.composition import DEFAULT_TITLE, Film
from iap.viz.return_bar import Reference
from iap.zoo import zoo_file, zoo_names

RANDOM_EPISODES = 8
LONGEST_GOAL = 110  # characters of a first docstring line that is used as the goal
ALIKE = 0.02  # returns that differ by less than this share are one reference
WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def film_facts(policy: PolicyFile, config: EnvConfig, env: gymnasium.Env, max_steps: int | None = None) -> Film:
    """Task, goal, references and image of a video of a policy in an environment.

    Args:
        policy: the policy.
        config: of the environment.
        env: the environment.
        max_steps: at which the episode is cut; returns of whole episodes are then no references.
    """
    return Film(
        task=task_name(env),
        goal=goal_of(env),
        policy=f"{count_params(policy.config):,} parameters",
        references=references(policy, config, max_steps),
        image_title=env.metadata.get("image_title", DEFAULT_TITLE),
        image_unit=env.metadata.get("image_unit", ""),
        image_parts=tuple(env.metadata.get("image_parts", ())),
    )


def task_name(env: gymnasium.Env) -> str:
    """The words of the environment's id, without its namespace and its version: "iap/StepStones-v0" is Step Stones."""
    name = env_name(env).rpartition("/")[2].rpartition(":")[2]
    return WORD_ENDS.sub(" ", re.sub(r"-v\d+$", "", name))


def goal_of(env: gymnasium.Env) -> str:
    """The goal in the environment's metadata, else the first line of its docstring if that is a sentence."""
    if "goal" in env.metadata:
        return str(env.metadata["goal"])
    first = (inspect.getdoc(type(env.unwrapped)) or "").partition("\n")[0]
    return first if first.endswith(".") and len(first) <= LONGEST_GOAL else ""


def references(policy: PolicyFile, config: EnvConfig, max_steps: int | None = None) -> tuple[Reference, ...]:
    """The mean return of random actions, that of the policy if it was measured, and the best one in the zoo.

    If the episode is cut, random actions have as many steps; the others are returns of whole episodes.
    """
    found = []
    random = random_return(config, max_steps)
    if random is not None:
        found.append(Reference("random", random))
    own = policy.facts.get("measured", {}).get("mean")
    whole = "" if max_steps is None else ", whole episodes"
    if own is not None:
        found.append(Reference(f"mean of this policy{whole}", own))
    best = max(_measured_in(config.id), default=None)
    if best is not None and (own is None or best > own + ALIKE * abs(own)):
        found.append(Reference(f"best known{whole}", best))
    return tuple(found)


def random_return(config: EnvConfig, max_steps: int | None = None) -> float | None:
    """The mean return of random actions; None if they make the environment fail."""
    env = config.make()
    try:
        actor = RandomActions(action_count(env.action_space))
        seeds = range(EVALUATION_SEEDS, EVALUATION_SEEDS + RANDOM_EPISODES)
        return float(np.mean([run_episode(env, actor, seed, max_steps).total for seed in seeds]))
    except (ValueError, RuntimeError, ArithmeticError):
        return None
    finally:
        env.close()


def _measured_in(env_id: str) -> list[float]:
    """The mean returns of the zoo's policies of an environment."""
    policies = map(load, map(zoo_file, zoo_names()))
    return [policy.facts["measured"]["mean"] for policy in policies if policy.env_id == env_id]
