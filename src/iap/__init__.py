"""Tiny vision policies: linear-time attention ranks image patches, evolution strategies train the rest.

    policy = iap.load_policy("zoo:obstacle-course")
    env = iap.make_env(policy.env)
    observation, _ = env.reset(seed=0)
    action, state, attention = policy.act(policy.reset(), observation)

Names are imported when they are first used, so that `import iap` is light.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from iap._api import ablate as ablate
    from iap._api import attend as attend
    from iap._api import evaluate as evaluate
    from iap._api import load_policy as load_policy
    from iap._api import make_env as make_env
    from iap._api import record_video as record_video
    from iap._training_api import Run as Run
    from iap._training_api import distill as distill
    from iap._training_api import train as train
    from iap.envs.actions import to_action as to_action
    from iap.envs.core import EnvConfig as EnvConfig
    from iap.evaluation.evaluate import Evaluation as Evaluation
    from iap.policies import CONTROLLERS as CONTROLLERS
    from iap.policies import ENCODERS as ENCODERS
    from iap.policies import Attention as Attention
    from iap.policies import Policy as Policy
    from iap.policies import PolicyConfig as PolicyConfig
    from iap.training.config import TrainConfig as TrainConfig
    from iap.training.presets import PRESETS

    presets = PRESETS

# Public name → where it is defined.
_PUBLIC = {
    "Attention": "iap.policies",
    "CONTROLLERS": "iap.policies",
    "ENCODERS": "iap.policies",
    "EnvConfig": "iap.envs.core",
    "Evaluation": "iap.evaluation.evaluate",
    "Policy": "iap.policies",
    "PolicyConfig": "iap.policies",
    "Run": "iap._training_api",
    "TrainConfig": "iap.training.config",
    "ablate": "iap._api",
    "attend": "iap._api",
    "distill": "iap._training_api",
    "evaluate": "iap._api",
    "load_policy": "iap._api",
    "make_env": "iap._api",
    "presets": "iap.training.presets:PRESETS",
    "record_video": "iap._api",
    "to_action": "iap.envs.actions",
    "train": "iap._training_api",
}

__all__ = [
    "CONTROLLERS",
    "ENCODERS",
    "Attention",
    "EnvConfig",
    "Evaluation",
    "Policy",
    "PolicyConfig",
    "Run",
    "TrainConfig",
    "__version__",
    "ablate",
    "attend",
    "distill",
    "evaluate",
    "load_policy",
    "make_env",
    "presets",
    "record_video",
    "to_action",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'iap' has no attribute {name!r}")
    from iap._extras import explain_missing

    module, _, attribute = _PUBLIC[name].partition(":")
    with explain_missing(f"iap.{name}"):
        value = getattr(importlib.import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
