"""What the functions of the public API take: policies and environments in any form."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iap.policies import EnvReference, Policy, PolicyFile
from iap.policies.serialization import load

if TYPE_CHECKING:
    from iap.envs.core import EnvConfig
    from iap.rollouts import Job, Pool


def policy_file(policy: Policy | PolicyFile | str | Path) -> PolicyFile:
    """A policy as the content of its file."""
    if isinstance(policy, PolicyFile):
        return policy
    return policy.to_file() if isinstance(policy, Policy) else load(_path(policy))


def _path(name: str | Path) -> Path:
    from iap.zoo.locate import policy_path

    return policy_path(name)


def policy_job_anywhere(policy: PolicyFile) -> "Job":
    """The policy's job, with an environment that is replaced by the caller."""
    from iap.envs.core import EnvConfig
    from iap.rollouts import Job

    return Job(EnvConfig(policy.env_id), policy.config)


def env_config(env: Any) -> "EnvConfig":
    """Anything that `make_env` takes, as an `EnvConfig`."""
    from iap.envs.core import EnvConfig

    if isinstance(env, EnvConfig):
        return env
    if isinstance(env, str):
        return EnvConfig.of(env)
    if isinstance(env, EnvReference):
        return EnvConfig.of(env.id, **dict(env.kwargs))
    return EnvConfig.from_factory(env)


@contextmanager
def open_pool(job: "Job", workers: int | None) -> "Iterator[Pool]":
    """Local worker processes, or none."""
    from iap.rollouts import InlinePool, LocalPool

    with InlinePool(job) if workers == 0 else LocalPool(job, workers) as pool:
        yield pool
