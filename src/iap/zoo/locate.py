"""Policies by name: a file, a run's folder, or an entry of the zoo."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iap.envs.registration import find_env
from iap.policies.serialization import PolicyFile, load
from iap.zoo import zoo_file

ZOO = "zoo:"
BEST_FIRST = ("best.policy", "last.policy")  # of a run's folder


def locate_policy(
    name: str | Path, env: str | None = None, env_options: Mapping[str, Any] | None = None
) -> tuple[PolicyFile, str]:
    """A policy by its file, its run's folder (the best, else the last) or `zoo:NAME`; and where it was found.

    Args:
        name: the policy.
        env: the id of another environment than its own to act in; the module of "module:id" is imported.
        env_options: options of the environment, besides the policy's own.
    """
    path = policy_path(name)
    policy = load(path)
    policy = replace(policy, env_kwargs={**policy.env_kwargs, **(env_options or {})})
    return (policy if env is None else replace(policy, env_id=find_env(env))), str(path)


def policy_path(name: str | Path) -> Path:
    """The file of a policy."""
    if isinstance(name, str) and name.startswith(ZOO):
        return zoo_file(name.removeprefix(ZOO))
    path = Path(name)
    if not path.is_dir():
        return path
    found = [file for which in BEST_FIRST if (file := path / which).exists()]
    if not found:
        raise FileNotFoundError(f"{path} is a folder without {' or '.join(BEST_FIRST)} in it")
    return found[0]
