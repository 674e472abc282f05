import contextlib
import math
import random

import numpy as np
import pytest

from iap.attention import draw_projections
from iap.envs.core import action_count, make_env, to_action
from iap.interop.attention_agent import import_attention_agent
from iap.policies import Policy
from iap.policies.serialization import load, save

COUNT = 3667
CENTRES = np.array([(3 + 4 * i, 3 + 4 * j) for i in range(23) for j in range(23)]) / 96


def vector(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.3, COUNT).astype(np.float32)


@pytest.fixture
def published(tmp_path):
    """An .npz file in the published format."""
    np.savez(tmp_path / "model.npz", params=vector())
    return tmp_path / "model.npz"


class Reference:
    """The published forward pass in float64, with its parameters sliced from the vector by hand."""

    def __init__(self, params: np.ndarray) -> None:
        rest = params.astype(np.float64)
        sizes = [(4,), (4, 147), (4,), (4, 147), (64,), (64,), (64, 16), (64, 20), (3,), (3, 16)]
        parts = []
        for shape in sizes:
            parts.append(rest[: math.prod(shape)].reshape(shape))
            rest = rest[math.prod(shape) :]
        assert rest.size == 0
        self.b_q, self.w_q, self.b_k, self.w_k, self.b_hh, self.b_ih, self.w_hh, self.w_ih, self.b_o, self.w_o = parts
        self.h, self.c = np.zeros(16), np.zeros(16)

    def queries_and_keys(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pixels = image / 255
        patches = [pixels[4 * i : 4 * i + 7, 4 * j : 4 * j + 7].ravel() for i in range(23) for j in range(23)]
        return np.array(patches) @ self.w_q.T + self.b_q, np.array(patches) @ self.w_k.T + self.b_k

    def importances(self, image: np.ndarray) -> np.ndarray:
        queries, keys = self.queries_and_keys(image)
        logits = queries @ keys.T / math.sqrt(147)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True)).sum(axis=0)

    def linear_importances(self, image: np.ndarray) -> np.ndarray:
        """The same with 256 features of FAVOR++, Likhosherstov et al.'s formulas."""
        x, y = (u / 147**0.25 for u in self.queries_and_keys(image))
        omega = draw_projections(256, 4, 0).astype(np.float64)
        s = (x**2).sum(axis=1).mean() + (y**2).sum(axis=1).mean() + 2 * x.mean(axis=0) @ y.mean(axis=0)
        rho = (math.sqrt((2 * s + 4) ** 2 + 32 * s) - 2 * s - 4) / (4 * s)
        a = (1 - 1 / rho) / 8
        phi_q, phi_k = (
            np.exp(a * (omega**2).sum(axis=1) + math.sqrt(1 - 4 * a) * u @ omega.T - (u**2).sum(axis=1)[:, None] / 2)
            for u in (x, y)
        )
        weights = phi_q @ phi_k.T
        return (weights / weights.sum(axis=1, keepdims=True)).sum(axis=0)

    def act(self, best: np.ndarray) -> np.ndarray:
        gates = self.w_ih @ CENTRES[best].ravel() + self.b_ih + self.w_hh @ self.h + self.b_hh
        i, f, g, o = gates.reshape(4, 16)
        self.c = sigmoid(f) * self.c + sigmoid(i) * np.tanh(g)
        self.h = sigmoid(o) * np.tanh(self.c)
        return np.tanh(self.w_o @ self.h + self.b_o)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def policy_from(path, **options) -> Policy:
    return Policy.of(import_attention_agent(path, **options))


def shares(scores: np.ndarray) -> np.ndarray:
    return scores.astype(np.float64) / scores.sum(dtype=np.float64)


def test_the_policy_acts_as_the_published_forward_pass_over_several_steps(published):
    policy, reference = policy_from(published), Reference(vector())
    rng = np.random.default_rng(1)
    state = policy.reset()
    for _ in range(5):
        image = rng.integers(0, 256, (96, 96, 3), dtype=np.uint8)
        action, state, attention = policy.act(state, {"image": image, "sensors": np.empty(0, np.float32)})
        importances = reference.importances(image)
        best = np.argsort(-importances, kind="stable")[:10]
        assert attention is not None
        np.testing.assert_allclose(shares(attention.scores), shares(importances), rtol=1e-4)
        np.testing.assert_array_equal(attention.selected, best)
        assert action.dtype == np.float32
        np.testing.assert_allclose(action, reference.act(best), atol=1e-5)


def test_linear_row_normalised_attention_approximates_the_exact_one(published):
    policy, reference = policy_from(published, linear=True), Reference(vector())
    image = np.random.default_rng(2).integers(0, 256, (96, 96, 3), dtype=np.uint8)
    _, _, attention = policy.act(policy.reset(), {"image": image, "sensors": np.empty(0, np.float32)})
    wanted = reference.linear_importances(image)
    assert attention is not None
    np.testing.assert_allclose(shares(attention.scores), shares(wanted), rtol=1e-3)
    exact = reference.importances(image)
    assert exact[attention.selected].sum() > 0.9 * np.sort(exact)[-10:].sum()


@pytest.mark.parametrize("linear", [False, True])
def test_the_policy_acts_in_car_racing_after_a_round_trip_through_its_file(linear, published, tmp_path, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    save(tmp_path / "agent.policy", import_attention_agent(published, linear=linear))
    content = load(tmp_path / "agent.policy")
    policy = Policy.of(content)
    reference = Reference(vector())
    env = make_env(content.env_id, **content.env_kwargs)
    try:
        assert action_count(env.action_space) == content.config.actions
        observation, _ = env.reset(seed=3)
        state = policy.reset()
        for _ in range(4):
            raw, state, attention = policy.act(state, observation)
            assert attention is not None
            if not linear:  # grass has many equal patches, whose order depends on the last bit
                importances = shares(reference.importances(observation["image"]))
                np.testing.assert_allclose(shares(attention.scores), importances, rtol=1e-4)
                best = np.sort(importances)[::-1][:10]
                np.testing.assert_allclose(importances[attention.selected], best, rtol=1e-5)
            np.testing.assert_allclose(raw, reference.act(attention.selected), atol=1e-5)
            action = to_action(env.action_space, raw)
            np.testing.assert_allclose(action, [raw[0], (raw[1] + 1) / 2, (raw[2] + 1) / 2], atol=1e-6)
            observation, reward, *_ = env.step(action)
            assert math.isfinite(float(reward))
    finally:
        env.close()


def test_the_policy_file_holds_the_unchanged_vector_and_the_environment(published):
    content = import_attention_agent(published, "CarRacing-v3")
    np.testing.assert_array_equal(content.theta, vector())
    assert (content.env_id, content.env_kwargs, content.normaliser) == ("CarRacing-v3", {}, None)
    assert content.facts == {"imported": "AttentionAgent"}


def write_npy(path):
    with path.open("wb") as file:
        np.save(file, vector())


def write_pickled(path):
    np.savez(path, params=np.array([{"a": 1}], object))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: np.savez(path, params=vector()[:-1]), r"must be of shape \(3667,\), not \(3666,\)"),
        (lambda path: np.savez(path, params=vector()[None]), r"must be of shape \(3667,\), not \(1, 3667\)"),
        (lambda path: np.savez(path, params=vector().astype(np.float64)), "must be float32, not float64"),
        (lambda path: np.savez(path, params=np.arange(COUNT)), "must be float32, not int64"),
        (
            lambda path: np.savez(path, params=np.where(np.arange(COUNT) == 7, np.float32("nan"), vector())),
            "must be finite, but number 7 is not",
        ),
        (lambda path: np.savez(path, weights=vector()), "with the array params"),
        (lambda path: np.savez_compressed(path, params=np.zeros(10**7, np.float32)), "params has 40000128 bytes"),
        (write_pickled, "with the array params"),
        (lambda path: path.write_bytes(b""), "must be an .npz file"),
        (lambda path: path.write_text("text"), "must be an .npz file"),
        (write_npy, "must be an .npz file"),
    ],
)
def test_an_invalid_file_is_refused_with_its_name_and_the_reason(write, message, tmp_path):
    write(tmp_path / "model.npz")
    with pytest.raises(ValueError, match=message) as caught:
        import_attention_agent(tmp_path / "model.npz")
    assert str(tmp_path / "model.npz") in str(caught.value)


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        import_attention_agent(tmp_path / "none.npz")


def test_damaged_files_are_refused_or_give_a_complete_vector(published):
    rng = random.Random(0)
    whole = published.read_bytes()
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 3])):
            near_an_end = rng.randrange(200) * rng.choice([1, -1])
            data[near_an_end] = rng.randrange(256)
        published.unlink()
        published.write_bytes(data[: rng.randrange(len(data))] if rng.random() < 0.1 else data)
        with contextlib.suppress(ValueError):
            assert import_attention_agent(published).theta.shape == (COUNT,)
