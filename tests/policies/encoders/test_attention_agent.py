"""The encoder of AttentionAgent, against a plain re-implementation of the published agent."""

import math

import numpy as np
import pytest
from config_cases import observations, random_policy, random_theta

from iap.attention import Kernel, ReLU, Softmax
from iap.policies import LSTM, AttentionAgent, Policy, PolicyConfig, blocks, unflatten
from iap.policies.encoders.attention_agent import ScaleBy

CONFIG = PolicyConfig((96, 96, 3), sensors=0, actions=3, encoder=AttentionAgent(), controller=LSTM(16), normalise=False)


class PlainAttentionAgent:
    """The published agent in float64, its parameters split from the published vector by hand."""

    def __init__(self, theta: np.ndarray, scale: float) -> None:
        sizes = [(4,), (4, 147), (4,), (4, 147), (64,), (64,), (64, 16), (64, 20), (3,), (3, 16)]
        ends = np.cumsum([math.prod(size) for size in sizes])
        assert ends[-1] == len(theta) == 3667
        parts = [part.reshape(size) for part, size in zip(np.split(theta, ends[:-1]), sizes, strict=True)]
        self.bq, self.wq, self.bk, self.wk, self.bhh, self.bih, self.whh, self.wih, self.bo, self.wo = parts
        self.scale = scale
        self.h = self.c = np.zeros(16)

    def act(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
        patches, centres = [], []
        for i in range(23):
            for j in range(23):
                patches.append(image[4 * i : 4 * i + 7, 4 * j : 4 * j + 7].reshape(-1) / 255.0)
                centres.append(((3 + 4 * i) / 96, (3 + 4 * j) / 96))
        x = np.array(patches)
        logits = (x @ self.wq.T + self.bq) @ (x @ self.wk.T + self.bk).T / math.sqrt(self.scale)
        attention = np.exp(logits - logits.max(axis=1, keepdims=True))
        attention /= attention.sum(axis=1, keepdims=True)
        importances = attention.sum(axis=0)
        best = np.argsort(-importances)[:10].tolist()
        features = np.array([centres[b] for b in best]).ravel()
        gates = self.wih @ features + self.bih + self.whh @ self.h + self.bhh
        i, f, g, o = np.split(gates, 4)

        def sigmoid(z: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-z))

        self.c = sigmoid(f) * self.c + sigmoid(i) * np.tanh(g)
        self.h = sigmoid(o) * np.tanh(self.c)
        return np.tanh(self.wo @ self.h + self.bo), importances, best


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("scale_by", "scale"), [("input", 147), ("d", 4)])
def test_the_agent_acts_as_the_published_one(scale_by: ScaleBy, scale: float, compiled: bool):
    encoder = AttentionAgent(scale_by=scale_by)
    config = PolicyConfig((96, 96, 3), 0, 3, encoder=encoder, controller=LSTM(16), normalise=False)
    theta = random_theta(config)
    policy = Policy(config, unflatten(config, theta), compiled=compiled)
    plain = PlainAttentionAgent(theta.astype(np.float64), scale)
    state = policy.reset()
    for observation in observations(config, 3):
        action, state, attention = policy.act(state, observation)
        wanted, importances, best = plain.act(observation["image"])
        assert attention is not None
        np.testing.assert_allclose(attention.scores, importances / importances.max(), rtol=1e-3, atol=1e-4)
        assert attention.selected.tolist() == best
        np.testing.assert_allclose(action, wanted, atol=1e-5)


def test_the_agent_for_car_racing_has_3667_parameters():
    listed = blocks(CONFIG)
    assert listed[-1].stop == 3667
    assert [block.stop - block.start for block in listed] == [4, 588, 4, 588, 64, 64, 1024, 1280, 3, 48]


@pytest.mark.parametrize("kernel", [Softmax(projections=4096), Softmax("trigonometric", 2048)])
def test_linear_attention_with_many_features_ranks_as_the_exact_one(kernel: Kernel):
    small = unflatten(CONFIG, random_theta(CONFIG) / 4)
    exact = Policy(CONFIG, small)
    config = PolicyConfig((96, 96, 3), 0, 3, AttentionAgent(linear=True, kernel=kernel), LSTM(16), normalise=False)
    linear = Policy(config, small)
    (observation,) = observations(CONFIG, 1)
    _, _, wanted = exact.act(exact.reset(), observation)
    _, _, attention = linear.act(linear.reset(), observation)
    assert wanted is not None
    assert attention is not None
    assert np.corrcoef(attention.scores, wanted.scores)[0, 1] > 0.99
    assert len(set(attention.selected) & set(wanted.selected)) >= 8


def test_linear_attention_takes_any_kernel_and_has_as_many_parameters():
    config = PolicyConfig((96, 96, 3), 0, 3, AttentionAgent(linear=True, kernel=ReLU()), LSTM(16), normalise=False)
    assert blocks(config) == blocks(CONFIG)
    policy = random_policy(config, compiled=True)
    action, _, attention = policy.act(policy.reset(), observations(config, 1)[0])
    assert attention is not None
    assert np.isfinite(action).all()
