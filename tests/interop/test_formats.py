"""Every part of a policy, and every policy of the zoo, does the same in each format as in NumPy."""

import pytest
from export_cases import ZOO, built_cases, distilled_case, image_type_of_zoo, recorded, worst_difference, zoo_policy

from iap.interop.native import NativePolicy
from iap.interop.onnx import OnnxPolicy, policy_to_onnx
from iap.interop.torch import Policy as Module
from iap.interop.torch.policy import Actor
from iap.policies import Policy

QUICK = ("-O1", "-Werror")
BUILT = built_cases()
ROUNDING = 5e-4  # of float32 on synthetic images; on recorded steps of their environments all agree to 1e-4
FORMATS = {
    "torch": lambda policy, image_type: Actor(Module.of(policy)),
    "onnx": lambda policy, image_type: OnnxPolicy(policy_to_onnx(policy, "policy", image_type).SerializeToString()),
    "c": lambda policy, image_type: NativePolicy(policy, image_type, flags=QUICK),
}


def require_agreement(policy: Policy, image_type: str, tolerance: float) -> None:
    """All formats against the same steps of the policy itself."""
    steps = recorded(policy, image_type)
    worst = {name: worst_difference(make(policy, image_type), steps) for name, make in FORMATS.items()}
    assert max(worst.values()) < tolerance, worst


@pytest.mark.parametrize("name", ZOO)
def test_a_zoo_policy_in_every_format_does_what_it_does_in_numpy(name: str) -> None:
    require_agreement(zoo_policy(name), image_type_of_zoo(name), ROUNDING)


@pytest.mark.parametrize("image_type", ["uint8", "float32"])
@pytest.mark.parametrize("name", BUILT)
def test_every_part_in_every_format_does_what_it_does_in_numpy(name: str, image_type: str) -> None:
    require_agreement(BUILT[name], image_type, 1e-4)


def test_an_untrained_policy_of_a_distilled_preset_in_every_format_does_what_it_does_in_numpy() -> None:
    require_agreement(distilled_case(), "uint8", 1e-4)
