"""Protocols are found through wrappers, and only if an environment has all of their members."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from iap.envs import protocols
from iap.envs.core import make_env
from iap.envs.protocols import (
    Keypoints,
    LazyRendering,
    PrivilegedSensors,
    PrivilegedState,
    PrivilegedTeacher,
    RandomizableState,
    Segmentation,
    Symmetry,
    env_name,
    find_protocol,
    require_protocol,
)

ALL = (
    Keypoints,
    LazyRendering,
    PrivilegedSensors,
    PrivilegedState,
    PrivilegedTeacher,
    RandomizableState,
    Segmentation,
    Symmetry,
)
OFFERED = {
    "iap/Seek-v0": {PrivilegedState, PrivilegedTeacher},
    "iap/ObstacleCourse-v0": {LazyRendering, PrivilegedState, PrivilegedTeacher, Segmentation, Symmetry},
    "iap/StepStones-v0": {LazyRendering, PrivilegedState, PrivilegedTeacher, Segmentation, Symmetry},
    "iap/StepStonesSingleFoot-v0": {LazyRendering, PrivilegedState, Segmentation},
    "iap/cheetah-run-v0": {
        Keypoints,
        LazyRendering,
        PrivilegedSensors,
        PrivilegedState,
        RandomizableState,
        Segmentation,
    },
}


class Foreign(gymnasium.Env):
    """An environment of another package with similar names."""

    observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = spaces.Box(-1, 1, (2,), np.float32)
    segment_names = ("sky",)
    keypoints = 3

    def look(self, wanted: bool) -> None:
        raise AssertionError

    def set_rendering(self, mode: str, enabled: bool) -> None:
        raise AssertionError

    def keypoints_visible(self, names: Any) -> bool:
        raise AssertionError


class Pausing(gymnasium.Wrapper):
    """A wrapper that implements a protocol itself."""

    def set_rendering(self, enabled: bool) -> None:
        self.enabled = enabled


@pytest.mark.parametrize("id", OFFERED)
def test_the_environments_offer_their_protocols_through_wrappers(id):
    env = make_env(id)
    wrapped = gymnasium.wrappers.TimeLimit(env, 3)
    offered = {protocol for protocol in ALL if find_protocol(wrapped, protocol) is not None}
    assert offered == OFFERED[id]
    assert all(find_protocol(wrapped, protocol) is env.unwrapped for protocol in offered)
    env.close()


def test_an_environment_with_only_a_part_of_a_protocol_does_not_offer_it():
    assert not [protocol for protocol in ALL if find_protocol(Foreign(), protocol) is not None]


def test_the_outermost_layer_that_implements_a_protocol_is_found():
    env = make_env("iap/ObstacleCourse-v0")
    pausing = Pausing(env)
    assert find_protocol(gymnasium.wrappers.TimeLimit(pausing, 3), LazyRendering) is pausing
    assert find_protocol(pausing, Segmentation) is env.unwrapped
    env.close()


@pytest.mark.parametrize(
    ("protocol", "missing"),
    [
        (LazyRendering, r"set_rendering\(enabled\)"),
        (Segmentation, r"segmentation\(\)"),
        (Keypoints, r"keypoints\(names\)"),
        (Symmetry, "symmetry"),
    ],
)
def test_a_required_protocol_names_the_environment_and_the_missing_members(protocol, missing):
    with pytest.raises(ValueError, match=f"Foreign does not implement {protocol.__name__}: it lacks {missing}$"):
        require_protocol(Foreign(), protocol)


def test_a_registered_environment_is_named_by_its_id():
    env = make_env("iap/Seek-v0")
    assert env_name(env) == "iap/Seek-v0"
    assert require_protocol(env, PrivilegedState).privileged_state is not None
    with pytest.raises(ValueError, match="iap/Seek-v0 does not implement LazyRendering"):
        require_protocol(env, LazyRendering)


def test_every_protocol_is_documented():
    assert protocols.__doc__ is not None
    assert all(f"`{protocol.__name__}`" in protocols.__doc__ for protocol in ALL)
