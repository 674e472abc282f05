"""The loss of imitation, and the differentiable step beside the acting policy."""

from typing import Any

import numpy as np
import pytest

from iap.attention import Positions, Softmax
from iap.distillation.dagger.imitation import act, imitation_loss
from iap.policies import MLP, Normaliser, Policy, PolicyConfig, Rank, SeparableFilters, flatten, init

torch = pytest.importorskip("torch")
AXES = ((0, 1, 2),)
RANK = Rank(
    2, 2, top_k=8, kernel=Softmax("positive", 8), features=SeparableFilters(4), positions=Positions("concat"), bias=True
)


def labels(actions: Any, costs: Any = None) -> dict[str, np.ndarray]:
    """One labelled step; without a map, every entry has an error of its own."""
    step = {"actions": np.array([actions], np.float32), "weights": np.ones((1, len(actions)), np.float32)}
    if costs is not None:
        step |= {
            "costs": np.array([[costs]], np.float16),
            "dependent": np.full((1, 1, *np.shape(costs)), 0.5, np.float16),
        }
    return step


def test_without_maps_the_loss_is_the_weighted_squared_error():
    step = labels([0.5, -0.5]) | {"weights": np.array([[1, 0.5]], np.float32)}
    outputs = torch.tensor([[0.0, 0.5]])
    assert float(imitation_loss(outputs, step, ())) == pytest.approx(0.25 + 0.5)


def test_a_good_pair_that_is_not_the_teachers_costs_less_than_a_bad_one():
    costs = [[0.0, 2.0, 0.0]] * 2  # good at both ends of the columns, bad between them
    step = labels([0.0, -0.9, 0.5], costs)
    teachers, other, between = (
        float(imitation_loss(torch.tensor([[0.0, column, 0.5]]), step, AXES)) for column in (-0.9, 0.9, 0.0)
    )
    assert teachers < other < between


def test_the_dependent_entry_follows_the_pair_that_was_chosen():
    step = labels([0.0, -0.9, 0.5], np.zeros((2, 2)))
    step["dependent"] = np.array([[[[0.5, -0.5], [0.5, -0.5]]]], np.float16)
    right, wrong = (float(imitation_loss(torch.tensor([[0.0, 0.9, third]]), step, AXES)) for third in (-0.5, 0.5))
    assert right < wrong


def test_the_hard_selection_gives_the_actions_of_the_acting_policy():
    config = PolicyConfig((8, 8, 1), 2, 3, encoder=RANK, controller=MLP((5,)))
    rng = np.random.default_rng(0)
    images, sensors = rng.random((6, 8, 8, 1), np.float32), rng.standard_normal((6, 2), np.float32)
    normaliser = Normaliser.of(rng.standard_normal((20, config.inputs_size)))
    policy = Policy(config, init(config, 0), normaliser, compiled=False)
    theta = torch.from_numpy(flatten(policy.params))
    outputs = act(config, normaliser, theta, {"images": images, "sensors": sensors}, softness=0.0).numpy()
    for row in range(6):
        action, _, _ = policy.act(policy.reset(), {"image": images[row], "sensors": sensors[row]})
        np.testing.assert_allclose(outputs[row], action, atol=1e-5)


def test_a_soft_selection_tends_to_the_hard_one():
    config = PolicyConfig((8, 8, 1), 0, 2, encoder=RANK)
    batch = {"images": np.random.default_rng(1).random((6, 8, 8, 1), np.float32), "sensors": np.zeros((6, 0))}
    theta = torch.from_numpy(flatten(init(config, 1)) * 3)
    hard, *soft = (
        act(config, Normaliser.none(config.inputs_size), theta, batch, softness).numpy()
        for softness in (0.0, 1.0, 1e-4)
    )
    assert np.abs(soft[1] - hard).mean() < 0.2 * np.abs(soft[0] - hard).mean()


def test_the_soft_selection_has_gradients_in_queries_and_keys():
    config = PolicyConfig((8, 8, 1), 0, 2, encoder=RANK)
    theta = torch.tensor(flatten(init(config, 1)), requires_grad=True)
    batch = {"images": np.random.default_rng(1).random((6, 8, 8, 1), np.float32), "sensors": np.zeros((6, 0))}
    act(config, Normaliser.none(config.inputs_size), theta, batch, softness=0.3).sum().backward()
    attention = theta.grad[: 2 * (4 + 4 * 8)]  # biases and weights of queries and keys
    assert (attention != 0).float().mean() > 0.5
