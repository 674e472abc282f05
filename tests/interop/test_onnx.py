"""Policies as ONNX graphs."""

import json
from pathlib import Path

import numpy as np
import pytest
from export_cases import with_random_numbers, zoo_policy

from iap.interop.onnx import OnnxPolicy, export_onnx, policy_to_onnx
from iap.policies import AttentionAgent, PolicyConfig, from_json


def in_onnxruntime(policy, image_type: str) -> OnnxPolicy:
    return OnnxPolicy(policy_to_onnx(policy, "policy", image_type).SerializeToString())


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    policy = zoo_policy("obstacle-course")
    path = export_onnx(policy, tmp_path / "course.onnx", image_type="uint8")
    metadata = OnnxPolicy(path).session.get_modelmeta().custom_metadata_map
    assert metadata["env"] == "iap/ObstacleCourse-v0"
    assert metadata["action_range"] == "[-1, 1]"
    assert from_json(json.loads(metadata["config"])) == policy.config


def test_state_is_explicit_and_a_held_command_ignores_the_image() -> None:
    policy = zoo_policy("obstacle-course")
    exported = in_onnxruntime(policy, "uint8")
    names = {value.name for value in exported.session.get_inputs()}
    assert names == {"image", "sensors", "state_features", "state_latent", "state_hold_steps"}
    held = exported.reset() | {"state_hold_steps": np.array(3)}
    sensors = np.ones(policy.config.sensors, np.float32)
    actions = [
        exported.session.run(["action"], {**held, "image": np.full((32, 32, 3), value, np.uint8), "sensors": sensors})[
            0
        ]
        for value in (0, 200)
    ]
    np.testing.assert_array_equal(actions[0], actions[1])


def test_parts_without_a_graph_are_refused_by_name() -> None:
    policy = with_random_numbers(PolicyConfig((8, 8, 1), 0, 1, AttentionAgent(3, 2, top_k=4)))
    with pytest.raises(
        ValueError, match="'attention-agent': this encoder cannot be exported as ONNX; those that can: rank"
    ):
        policy_to_onnx(policy)


def test_another_onnx_file_is_refused(tmp_path: Path) -> None:
    from onnx import helper

    model = policy_to_onnx(zoo_policy("seek"))
    helper.set_model_props(model, {"author": "another"})
    with pytest.raises(ValueError, match="not written by iap"):
        OnnxPolicy(model.SerializeToString())
