"""`forward` of every encoder: the same in NumPy, JAX and PyTorch, with gradients of all parameters."""

from typing import Any

import numpy as np
import pytest
from config_cases import random_theta

from iap.attention import Softmax
from iap.policies import (
    CNN,
    ENCODERS,
    AttentionAgent,
    Blind,
    Encoder,
    MultiHeadRank,
    PolicyConfig,
    PooledMoments,
    Rank,
    ResidualRank,
    SelectedPatches,
    SeparableFilters,
    Trans,
    unflatten,
)

SHAPE, COUNT = (12, 16, 2), 3
ALL_VALUES = SelectedPatches(("pixels", "centres", "projection"))
ALL_WEIGHTS = PooledMoments(3, position_weighted=True, score_weighted=True)
CASES: dict[str, Encoder] = {
    "rank": Rank(2, 2, top_k=4, features=ALL_VALUES, learn_pooling=True, bias=True),
    "rank, masked": Rank(2, 2, top_k=4, features=SelectedPatches(("pixels",), masked=True), normalise_rows=True),
    "rank, by score": Rank(2, 2, top_k=4, features=SelectedPatches(("centres",), order="score")),
    "rank, filters": Rank(2, 2, top_k=9, features=SeparableFilters(3), bias=True, pixel_offset=0.1, pixel_scale=2.0),
    "rank, softmax": Rank(2, 2, top_k=4, kernel=Softmax("favor++", 5)),
    "rank, sampled": Rank(2, 2, top_k=4, select="sample"),
    "rank, pooled": Rank(2, 2, top_k=9, features=PooledMoments(3)),
    "rank, pooled by score": Rank(2, 2, top_k=9, features=ALL_WEIGHTS),
    "multi-head-rank": MultiHeadRank(2, 2, d=3, heads=2, top_k=9),
    "multi-head-rank, stem": MultiHeadRank(2, 1, d=3, heads=2, top_k=9, stem=((4, 3, 1),)),
    "residual-rank": ResidualRank(((4, 3, 2),), (1, 2), d=3, heads=2, top_k=5, values=3),
    "residual-rank, no values": ResidualRank(((3, 5, 1), (4, 3, 2)), (), d=3, heads=2, top_k=5, values=0),
    "trans": Trans(2, 2, rows=2, value_size=3),
    "trans, scaled": Trans(2, 2, rows=2, value_size=3, bias=True, pixel_offset=0.1, pixel_scale=2.0),
    "trans, plain": Trans(2, 2, rows=2, value_size=3, residual=False, layer_norm=False, normalise_rows=False),
    "attention-agent": AttentionAgent(2, 2, top_k=4),
    "attention-agent, linear": AttentionAgent(2, 2, top_k=4, linear=True, kernel=Softmax(projections=5)),
    "cnn": CNN(((3, 4, 2), (2, 3, 1))),
    "blind": Blind(),
}
WITHOUT_ATTENTION_GRADIENTS = ("rank, pooled", "cnn", "blind")


def arguments_of(encoder: Encoder, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray | None]:
    """Random parameters, images, and uniform numbers for an encoder that samples."""
    config = PolicyConfig(SHAPE, 0, 1, encoder=encoder)
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (COUNT, *SHAPE), np.uint8)
    window = encoder.window(SHAPE)
    uniforms = rng.random((COUNT, window.grid.patches), np.float32) if encoder.samples and window else None
    return unflatten(config, random_theta(config, seed))["encoder"], images, uniforms


def loss_weights(encoder: Encoder) -> np.ndarray:
    return np.random.default_rng(9).standard_normal((COUNT, encoder.feature_size(SHAPE)), np.float32)


def jax_gradients(encoder: Encoder) -> dict[str, np.ndarray]:
    jax = pytest.importorskip("jax")
    params, images, uniforms = arguments_of(encoder)
    weights, asarray = jax.numpy.asarray(loss_weights(encoder)), jax.numpy.asarray
    drawn = None if uniforms is None else asarray(uniforms)

    def loss(given: Any) -> Any:
        return jax.numpy.sum(encoder.forward(given, asarray(images), drawn).features * weights)

    gradients = jax.grad(loss)({name: asarray(array) for name, array in params.items()})
    return {name: np.asarray(gradient) for name, gradient in gradients.items()}


def torch_gradients(encoder: Encoder) -> dict[str, np.ndarray]:
    torch = pytest.importorskip("torch")
    params, images, uniforms = arguments_of(encoder)
    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in params.items()}
    drawn = None if uniforms is None else torch.tensor(uniforms)
    loss = (encoder.forward(tensors, torch.tensor(images), drawn).features * torch.tensor(loss_weights(encoder))).sum()
    if loss.requires_grad:
        loss.backward()
    return {
        name: np.zeros_like(params[name]) if tensor.grad is None else tensor.grad.numpy()
        for name, tensor in tensors.items()
    }


def test_all_registered_encoders_have_a_case():
    assert {type(encoder) for encoder in CASES.values()} == set(ENCODERS.values())


@pytest.mark.parametrize("name", CASES)
def test_forward_is_the_same_in_every_array_library(name: str, library):
    encoder = CASES[name]
    params, images, uniforms = arguments_of(encoder)
    wanted = encoder.forward(params, images, uniforms)
    drawn = None if uniforms is None else library.array(uniforms)
    converted = {key: library.array(array) for key, array in params.items()}
    encoding = encoder.forward(converted, library.array(images), drawn)
    features = library.numpy(encoding.features)
    assert features.shape == (COUNT, encoder.feature_size(SHAPE))
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, wanted.features, rtol=1e-5, atol=1e-5)
    assert (encoding.scores is None) == (encoder.window(SHAPE) is None)
    if wanted.scores is not None:
        scores, expected = library.numpy(encoding.scores), np.asarray(wanted.scores)
        largest = np.abs(expected).max(axis=1, keepdims=True)
        np.testing.assert_allclose(scores / largest, expected / largest, atol=1e-5)
    if wanted.selected is not None:
        np.testing.assert_array_equal(library.numpy(encoding.selected), wanted.selected)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_jax_and_pytorch_are_finite_and_agree(name: str):
    encoder = CASES[name]
    by_jax, by_torch = jax_gradients(encoder), torch_gradients(encoder)
    assert by_jax.keys() == by_torch.keys() == arguments_of(encoder)[0].keys()
    for key, gradient in by_jax.items():
        assert np.isfinite(gradient).all()
        assert np.isfinite(by_torch[key]).all()
        scale = max(1.0, float(np.abs(gradient).max()))
        np.testing.assert_allclose(gradient / scale, by_torch[key] / scale, atol=1e-4, err_msg=key)


@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_ATTENTION_GRADIENTS])
def test_queries_and_keys_have_gradients(name: str):
    gradients = torch_gradients(CASES[name])
    for side in ("query.weight", "key.weight"):
        assert np.abs(gradients[side]).max() > 1e-6, side


def test_hard_pooled_moments_have_no_gradient_of_queries_and_keys():
    gradients = torch_gradients(CASES["rank, pooled"])
    assert not gradients["query.weight"].any()
    assert gradients["heads.weight"].any()
