"""Policies as PyTorch modules."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from export_cases import IMAGE, built_cases, observations, zoo_policy

from iap.interop.torch import Encoder, Policy
from iap.interop.torch.policy import Actor
from iap.policies import ENCODERS, AttentionAgent, MultiHeadRank, PolicyConfig, Rank

BUILT = built_cases()


def test_a_batch_of_episodes_is_many_episodes() -> None:
    policy = BUILT["hierarchy"]
    module, actor = Policy.of(policy), Actor(Policy.of(policy))
    seen = list(observations(policy.config, "uint8", 12))
    state, single = module.initial_state(2), [actor.reset(), actor.reset()]
    for i in range(6):
        rows = seen[i], seen[i + 6]
        images = torch.tensor(np.stack([row["image"] for row in rows]))
        sensors = torch.tensor(np.stack([row["sensors"] for row in rows]))
        actions, state, _ = module(images, sensors, state)
        for j, row in enumerate(rows):
            action, single[j], _ = actor.act(single[j], row)
            np.testing.assert_allclose(actions[j].detach(), action, atol=1e-5)


@pytest.mark.parametrize("name", list(ENCODERS))
def test_every_registered_encoder_is_a_module_with_gradients(name: str) -> None:
    config = {"rank": Rank(2, 2), "multi-head-rank": MultiHeadRank(2, 2), "attention-agent": AttentionAgent(3, 2)}
    encoder = Encoder(config.get(name, ENCODERS[name]()), IMAGE)
    images = torch.rand(3, *IMAGE)
    features = encoder(images).features
    assert features.shape == (3, encoder.feature_size)
    if not list(encoder.parameters()):
        return
    (features**2).sum().backward()
    with_gradient = [p.grad is not None and bool(p.grad.abs().sum() > 0) for p in encoder.parameters()]
    assert any(with_gradient)


def test_gradients_reach_every_parameter_of_a_policy_through_time() -> None:
    policy = BUILT["relative frames"]
    module = Policy.of(policy)
    state = module.initial_state(1)
    total = torch.zeros(())
    for observation in observations(policy.config, "float32", 4):
        image, sensors = (torch.tensor(observation[key])[None] for key in ("image", "sensors"))
        action, state, _ = module(image, sensors, state)
        total = total + action.sum()
    total.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())


def test_a_policy_comes_back_from_its_state_dict() -> None:
    policy = zoo_policy("obstacle-course")
    other = Policy(policy.config)
    other.load_state_dict(Policy.of(policy).state_dict())
    back = other.to_policy(like=policy)
    np.testing.assert_array_equal(back.theta, policy.theta)
    np.testing.assert_array_equal(back.normaliser.mean, policy.normaliser.mean)
    assert back.to_file().env_id == policy.to_file().env_id
    assert "encoder.params.query.weight" in other.state_dict()


def test_images_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="images must be of shape"):
        Encoder(Rank(), (32, 32, 3))(torch.rand(1, 32, 31, 3))


def test_stored_keys_are_refused() -> None:
    config = PolicyConfig(IMAGE, 0, 1, replace(Rank(2, 2), keys_every=2))
    with pytest.raises(ValueError, match="keys_every must be 1"):
        Policy(config)
