"""Configs and checkpoints of older versions → the newest version. A config.json without a version is version 1."""

from collections.abc import Callable, Mapping
from typing import Any

from iap.policies.format.upgrades import ZOO, rename_config, rename_env, rename_facts

Data = dict[str, Any]

FIELDS = {
    "scales": "sigma_multipliers",
    "screen": "random_search",
    "teach": "pretraining",
    "start_from": "warm_start",
    "keep_statistics": "freeze_normaliser",
}
PRETRAINING: dict[str, tuple[str, dict[str, str]]] = {
    "teach": (
        "es-pretraining",
        {"lessons": "samples", "an_episode": "samples_per_episode", "draws": "random_encoders"},
    ),
    "teach-by-gradient": (
        "distillation",
        {
            "parts": "keypoints",
            "lessons": "samples",
            "an_episode": "samples_per_episode",
            "own": "student_rounds",
            "rate": "learning_rate",
            "low_from": "teacher",
            "rounds": "dagger_rounds",
            "round_episodes": "dagger_episodes",
            "round_steps": "dagger_steps",
        },
    ),
}
PARTS = {"vision": "encoder", "controller": "controller", "low": "low_level"}


def upgrade_config(data: Data) -> Data:
    """A config of any version as one of the newest."""
    version = data.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"version must be a whole number from 1 on, not {version!r}")
    if version > VERSION:
        raise ValueError(f"made by a newer version of iap: its format is {version}, this iap reads up to {VERSION}")
    for upgrade in UPGRADES[version - 1 :]:
        data = upgrade(data)
    return data | {"version": VERSION}


def use_new_names(data: Data) -> Data:
    """Version 2: the names of the redesign."""
    data = {FIELDS.get(key, key): value for key, value in data.items()}
    if isinstance(data.get("policy"), Mapping):
        data["policy"] = rename_config(data["policy"])
    if isinstance(data.get("env"), Mapping):
        data["env"] = _renamed_env(dict(data["env"]))
    if isinstance(data.get("sigma_multipliers"), Mapping):
        multipliers = data["sigma_multipliers"]
        renamed = {PARTS.get(key, key): value for key, value in multipliers.items()}
        data["sigma_multipliers"] = renamed | {"kind": "sigma-multipliers"}
    if isinstance(data.get("pretraining"), Mapping):
        data["pretraining"] = _renamed_pretraining(data["pretraining"])
    if isinstance(data.get("warm_start"), str):
        data["warm_start"] = ZOO.get(data["warm_start"], data["warm_start"])
    return data


def _renamed_env(env: Data) -> Data:
    pairs = env.get("kwargs", [])
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):  # noqa: PLR2004
        return env
    env["id"], options = rename_env(env.get("id"), dict(pairs))
    return env | {"kwargs": [[name, options[name]] for name in sorted(options)]}


def _renamed_pretraining(data: Mapping[str, Any]) -> Data:
    kind, names = PRETRAINING.get(str(data.get("kind")), (data.get("kind"), {}))
    renamed = {names.get(key, key): value for key, value in data.items()} | {"kind": kind}
    teacher = renamed.get("teacher")
    return renamed | {"teacher": ZOO.get(teacher, teacher)} if isinstance(teacher, str) else renamed


def upgrade_checkpoint(facts: Data) -> Data:
    """The facts of a checkpoint of any version as those of the newest; one without a version is version 1."""
    version = facts.get("version", 1)
    if type(version) is not int or version < 1:
        raise ValueError(f"its version must be a whole number from 1 on, not {version!r}")
    if version > CHECKPOINT_VERSION:
        raise ValueError(
            f"made by a newer version of iap: its format is {version}, this iap reads up to {CHECKPOINT_VERSION}"
        )
    start = facts.pop("begun", None) if version == 1 else facts.get("start")
    if isinstance(start, Mapping) and version == 1:
        start = rename_facts(start)
    return facts | {"start": start, "version": CHECKPOINT_VERSION}  # version 3: with a checksum beside the facts


# The n-th makes a config of version n + 1 out of one of version n. Fields added with a default need none.
UPGRADES: tuple[Callable[[Data], Data], ...] = (use_new_names,)
VERSION = 1 + len(UPGRADES)
CHECKPOINT_VERSION = 3
