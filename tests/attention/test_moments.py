import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.attention.moments import MOMENTS, weighted_moments


def moments_by_definition(weights, centres, divisor):
    """The moments of one head, from their definition in float64."""
    if not weights.any():
        return np.zeros(MOMENTS)
    weights, centres = weights.astype(np.float64), centres.astype(np.float64)
    mean = np.average(centres, axis=0, weights=weights)
    (rows, both), (_, columns) = np.cov(centres.T, aweights=weights, ddof=0)
    return np.array([*mean, rows, both, columns, weights.sum() / divisor])


@given(patches=st.integers(2, 30), batch=st.sampled_from([(), (3,), (2, 1)]), seed=st.integers(0, 1000))
def test_moments_equal_their_definition(patches, batch, seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0, 2, (*batch, 4, patches)) * (rng.random((*batch, 4, patches)) < 0.5)
    centres = rng.uniform(-1, 1, (patches, 2))
    moments = weighted_moments(weights, centres, 7.0)
    expected = [moments_by_definition(head, centres, 7.0) for head in weights.reshape(-1, patches)]
    np.testing.assert_allclose(moments, np.reshape(expected, (*batch, 4, MOMENTS)), atol=1e-12)


def test_moments_agree_between_libraries(library):
    rng = np.random.default_rng(0)
    weights = rng.uniform(0, 1, (2, 3, 50)).astype(np.float32)
    weights[1, 2] = 0
    centres = rng.uniform(-1, 1, (50, 2)).astype(np.float32)
    moments = library.numpy(weighted_moments(library.array(weights), library.array(centres), 10))
    assert moments.dtype == np.float32
    expected = [moments_by_definition(head, centres, 10) for head in weights.reshape(-1, 50)]
    np.testing.assert_allclose(moments.reshape(-1, MOMENTS), expected, atol=1e-5)
    np.testing.assert_array_equal(moments[1, 2], np.zeros(MOMENTS))


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_gradients_are_finite_even_for_a_head_without_mass(name, open_library):
    library = open_library(name)
    weights = np.array([[0, 0, 0], [1, 2, 0]], np.float32)
    centres = library.array(np.array([[0, 0], [1, 0], [0, 1]], np.float32))

    def total(x):
        return weighted_moments(x, centres, 1.0).sum()

    if name == "jax":
        import jax

        slope = np.asarray(jax.grad(total)(weights))
    else:
        x = library.array(weights).requires_grad_()
        total(x).backward()
        slope = x.grad.numpy()
    assert np.isfinite(slope).all()
    assert slope[1].any()


def test_centres_must_match_the_weights():
    with pytest.raises(ValueError, match=r"centres must be \(4, 2\) for these weights, not \(3, 2\)"):
        weighted_moments(np.ones((1, 4)), np.ones((3, 2)), 1.0)
    with pytest.raises(TypeError, match="share one dtype"):
        weighted_moments(np.ones((1, 3), np.float32), np.ones((3, 2)), 1.0)
