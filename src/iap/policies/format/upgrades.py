"""Headers of older policy files → the newest version.

Version 1 → 2: `changes` became `sees`. Version 2 → 3: the names of the redesign. Version 3 → 4: the format of images.
Version 4 → 5: a checksum beside the header, which itself is the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Header = dict[str, Any]
Upgrade = Callable[[Header], Header]

KINDS = {
    "multi-rank": "multi-head-rank",
    "exact-rank": "attention-agent",
    "products": "quadratic",
    "two-level": "hierarchy",
    "mirror": "symmetry",
}
FIELDS: dict[str, dict[str, str]] = {
    "policy": {
        "vision": "encoder",
        "sees": "preprocessing",
        "anchored": "relative_to_first_frame",
        "recalls": "first_frame_features",
        "look_every": "image_every",
        "level": "hierarchy",
        "mirror": "symmetry",
    },
    "multi-rank": {"keep": "top_k"},
    "exact-rank": {"keep": "top_k"},
    "trans": {"width": "value_size"},
    "products": {"changes": "deltas"},
    "two-level": {
        "latent": "latent_size",
        "longest_hold": "max_command_steps",
        "low": "low_level",
        "senses": "high_level_sensors",
        "gain": "command_gain",
    },
}
CHANNELS = {
    "image": "image",
    "changes": "frame_difference",
    "departures": "first_frame_difference",
    "contrast": "local_contrast_coarse",
    "detail": "local_contrast_fine",
}
FACTS = {"screened": "random_search", "taught": "pretrained", "started_from": "warm_start"}
PRETRAINED_FACTS = {"r2_drawn": "r2_initial", "r2_taught": "r2_pretrained"}
STRATEGIES = {"OpenES": "open-es", "ARS": "ars", "PGPE": "pgpe", "CMAES": "cma-es", "SNES": "snes"}
PRESETS = {
    "ball_in_cup-catch-distracted": "ball_in_cup-catch",
    "cartpole-swingup-distracted": "cartpole-swingup-es-pretraining",
    "cartpole-swingup-taught": "cartpole-swingup",
    "cartpole-swingup-told": "cartpole-swingup-teacher",
    "cartpole-swingup-told-roughly": "cartpole-swingup-noisy-teacher",
    "cheetah-run": "cheetah-run-plain",
    "cheetah-run-distracted": "cheetah-run-no-pretraining",
    "cheetah-run-taught": "cheetah-run",
    "finger-spin-distracted": "finger-spin",
    "reacher-easy-distracted": "reacher-easy",
    "reacher-easy-told": "reacher-easy-teacher",
    "stairs": "stairs-single-foot",
    "step-stones": "step-stones-single-foot",
    "stone-grid": "stone-grid-single-foot",
    "walker-walk-distracted": "walker-walk",
}
# The zoo had names of its own: zoo:cheetah-run was the policy of the preset cheetah-run-taught, and still is.
ZOO = {
    "zoo:cartpole-swingup-told": "zoo:cartpole-swingup-teacher",
    "zoo:cartpole-swingup-told-roughly": "zoo:cartpole-swingup-noisy-teacher",
    "zoo:reacher-easy-told": "zoo:reacher-easy-teacher",
    "zoo:stairs": "zoo:stairs-single-foot",
    "zoo:step-stones": "zoo:step-stones-single-foot",
    "zoo:stone-grid": "zoo:stone-grid-single-foot",
}
SINGLE_FOOT = {
    "iap/StepStones-v0": "iap/StepStonesSingleFoot-v0",
    "iap/StoneGrid-v0": "iap/StoneGridSingleFoot-v0",
    "iap/Stairs-v0": "iap/StairsSingleFoot-v0",
}
ENV_OPTIONS = {"told": "keypoints", "told_error": "keypoint_noise"}
POOLED = {"heads": "heads", "placed": "position_weighted", "soft": "score_weighted"}
SELECTED = {"values": "values", "projected": "projection_size", "order": "order", "masked": "masked"}


def upgrade_header(header: Header, upgrades: Sequence[Upgrade] | None = None) -> Header:
    """A header of any version so far as one of the newest."""
    upgrades = UPGRADES if upgrades is None else upgrades
    version, newest = header.get("version"), 1 + len(upgrades)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"its version must be a whole number from 1 on, not {version!r}")
    if version > newest:
        raise ValueError(f"made by a newer version of iap: its format is {version}, this iap reads up to {newest}")
    for upgrade in upgrades[version - 1 :]:
        header = upgrade(header)
    return header


def name_channels(header: Header) -> Header:
    """Version 2: the encoder's input channels have names; before, there were the image or its changes."""
    match header:
        case {"spec": {"changes": bool(changes), **others}}:
            return header | {"spec": others | {"sees": ["changes"] if changes else ["image"]}}
    return header


def use_new_names(header: Header) -> Header:
    """Version 3: the names of the redesign."""
    header = dict(header)
    if "spec" in header:
        header["config"] = rename_config(header.pop("spec"))
    if isinstance(header.get("env_kwargs"), Mapping):
        header["env_id"], header["env_kwargs"] = rename_env(header.get("env_id"), header["env_kwargs"])
    if isinstance(header.get("facts"), Mapping):
        header["facts"] = rename_facts(header["facts"])
    return header


def name_image_format(header: Header) -> Header:
    """Version 4: the format of the images; before, it was not stored, and images of any format were taken."""
    config = header.get("config")
    return header | {"config": {"image_format": None, **config}} if isinstance(config, dict) else header


def keep_header(header: Header) -> Header:
    """Version 5: the checksum, which is no part of the header."""
    return header


def rename_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a training, and those of the policy that it started from."""
    renamed = {FACTS.get(name, name): fact for name, fact in facts.items()}
    if isinstance(renamed.get("pretrained"), Mapping):
        renamed["pretrained"] = {PRETRAINED_FACTS.get(key, key): fact for key, fact in renamed["pretrained"].items()}
    if isinstance(renamed.get("strategy"), str):
        renamed["strategy"] = STRATEGIES.get(renamed["strategy"], renamed["strategy"])
    if isinstance(renamed.get("command"), str):
        renamed["command"] = _renamed_command(renamed["command"])
    if isinstance(renamed.get("warm_start"), Mapping):
        start = dict(renamed["warm_start"])
        if isinstance(start.get("policy"), str):
            start["policy"] = ZOO.get(start["policy"], start["policy"])
        if isinstance(start.get("facts"), Mapping):
            start["facts"] = rename_facts(start["facts"])
        renamed["warm_start"] = start
    return renamed


def _renamed_command(command: str) -> str:
    """`iap train PRESET …` with the preset's new name."""
    words = command.split(" ")
    if words[:2] == ["iap", "train"] and len(words) > 2:  # noqa: PLR2004
        words[2] = PRESETS.get(words[2], words[2])
    return " ".join(words)


def rename_config(data: Any) -> Any:
    """The config of a policy, or a part of it, with new kinds and fields; unknown content stays unchanged."""
    if isinstance(data, list):
        return [rename_config(x) for x in data]
    if not isinstance(data, dict):
        return data
    kind: Any = data.get("kind")
    if not isinstance(kind, str):
        kind = ""
    names = FIELDS.get(kind, {})
    renamed: dict[str, Any] = {names.get(str(key), str(key)): rename_config(value) for key, value in data.items()}
    if kind in KINDS:
        renamed["kind"] = KINDS[kind]
    if kind == "rank":
        return _with_features(renamed)
    if kind == "policy":
        return _with_channels(renamed)
    return renamed


def _with_features(rank: dict[str, Any]) -> dict[str, Any]:
    """IAP-rank, whose fields that depend on `order` became a config of their own."""
    old = {name: rank.pop(name) for name in {*POOLED, *SELECTED} if name in rank}
    if "keep" in rank:
        rank["top_k"] = rank.pop("keep")
    if old.get("order") == "pooled":
        kind, names = "pooled-moments", POOLED
    else:
        kind, names = "selected-patches", SELECTED
    return rank | {"features": {"kind": kind} | {new: old[name] for name, new in names.items() if name in old}}


def _with_channels(policy: dict[str, Any]) -> dict[str, Any]:
    """The policy with new names of channels, and with `keys_every` as an option of its encoder."""
    if isinstance(policy.get("preprocessing"), list):
        channels = policy["preprocessing"]
        policy["preprocessing"] = [CHANNELS.get(x, x) if isinstance(x, str) else x for x in channels]
    keys_every = policy.pop("keys_every", 1)
    encoder = policy.get("encoder")
    if isinstance(encoder, dict) and encoder.get("kind") == "rank":
        policy["encoder"] = encoder | {"keys_every": keys_every}
    elif keys_every != 1:
        policy["keys_every"] = keys_every  # refused as an unknown field
    return policy


def rename_env(env_id: Any, kwargs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The environment's id and options."""
    options = {ENV_OPTIONS.get(name, name): value for name, value in kwargs.items()}
    if options.pop("one_foot", False) and isinstance(env_id, str):
        env_id = SINGLE_FOOT.get(env_id, env_id)
    return env_id, options


# The n-th makes a header of version n + 1 out of one of version n. Fields added with a default need none.
UPGRADES: tuple[Upgrade, ...] = (name_channels, use_new_names, name_image_format, keep_header)
