"""K(u, v) = E[φ(u)·φ(v)]: the mean over draws of ω is the softmax kernel, and wrong feature maps fail the test."""

import numpy as np
import pytest

from iap.attention import Softmax, draw_projections, featurise

DRAWS = 2000
M, D = 6, 4  # one complete block of orthogonal projections and a part of the next


def pairs(normalised):
    """Pairs of queries and keys, one a row: equal, opposite, orthogonal and others; and their softmax kernel."""
    u = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0.5, -1, 0.5, 1], [1, 0, 0, 0], [0.3, 0.2, -0.9, 0.6]], np.float32)
    v = np.array([[1, 0, 0, 0], [-1, -1, 0, 0], [1, 0.5, -0.2, 1], [0, 1, 0, 0], [0.4, -0.1, -1, 0.2]], np.float32)
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1) if normalised else 1
    factor = np.sqrt(D) / lengths if normalised else 1 / np.sqrt(D)
    return u, v, np.exp(factor * np.sum(u.astype(np.float64) * v, axis=1))


def error_in_standard_errors(estimates, truth):
    """The error of the mean estimate of each pair, in standard errors.

    Positive features are exact for opposite vectors, trigonometric ones for equal vectors: the only error is then that
    of float32.
    """
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates)) + 1e-6 * truth
    return np.abs(estimates.mean(axis=0) - truth) / error


def library_estimates(features, normalised):
    """φ(u)·φ(v) of every pair, one draw of ω a row."""
    u, v, _ = pairs(normalised)
    estimates = []
    for seed in range(DRAWS):
        phi_u, phi_v = featurise(Softmax(features, M, normalised, seed), u, v)
        estimates.append(np.sum(phi_u.true().astype(np.float64) * phi_v.true(), axis=-1))
    return np.array(estimates)


@pytest.mark.parametrize("normalised", [False, True], ids=["plain", "normalised"])
@pytest.mark.parametrize("features", ["positive", "trigonometric", "hyperbolic", "favor++"])
def test_the_mean_over_projections_is_the_softmax_kernel(features, normalised):
    truth = pairs(normalised)[-1]
    assert error_in_standard_errors(library_estimates(features, normalised), truth).max() < 4


def exponential(z, omega):
    return np.exp(z @ omega.T) / np.sqrt(len(omega))


def shrinking(z):
    return np.exp(-np.sum(z * z, axis=-1, keepdims=True) / 2)


def waves(z, omega):
    return np.concatenate([np.sin(z @ omega.T), np.cos(z @ omega.T)], axis=-1) / np.sqrt(len(omega))


def of_equal_length(omega):
    return np.sqrt(D) * omega / np.linalg.norm(omega, axis=1, keepdims=True)


def with_the_first_for_the_last_cosine(z, omega):
    printed = np.concatenate([omega[:-1], omega[:1]])
    return np.concatenate([np.sin(z @ omega.T), np.cos(z @ printed.T)], axis=-1) / np.sqrt(len(omega)) / shrinking(z)


RIGHT_MAPS = {
    "positive": lambda z, omega: shrinking(z) * exponential(z, omega),
    "trigonometric": lambda z, omega: waves(z, omega) / shrinking(z),
}
WRONG_MAPS = {
    "positive, without the norm": exponential,
    "positive, norm with the wrong sign": lambda z, omega: exponential(z, omega) / shrinking(z),
    "positive, projections of one norm": lambda z, omega: shrinking(z) * exponential(z, of_equal_length(omega)),
    "trigonometric, without the norm": waves,
    "trigonometric, norm with the wrong sign": lambda z, omega: waves(z, omega) * shrinking(z),
    "trigonometric, cosines only": lambda z, omega: waves(z, omega)[..., len(omega) :] / shrinking(z),
    "hyperbolic, without the root of a half": lambda z, omega: (
        shrinking(z) * np.concatenate([exponential(z, omega), exponential(z, -omega)], axis=-1)
    ),
}


def estimates_of(phi):
    """`library_estimates` without normalisation, for a feature map as a function of z and ω."""
    u, v, truth = pairs(normalised=False)
    x, y = (z.astype(np.float64) / D**0.25 for z in (u, v))
    omegas = [draw_projections(M, D, seed).astype(np.float64) for seed in range(DRAWS)]
    return np.array([np.sum(phi(x, omega) * phi(y, omega), axis=-1) for omega in omegas]), truth


@pytest.mark.parametrize("name", RIGHT_MAPS)
def test_the_formulas_of_this_file_pass_the_same_test(name):
    assert error_in_standard_errors(*estimates_of(RIGHT_MAPS[name])).max() < 4


@pytest.mark.parametrize("name", WRONG_MAPS)
def test_a_wrong_map_fails_the_same_test(name):
    assert error_in_standard_errors(*estimates_of(WRONG_MAPS[name])).max() > 4


def test_the_printed_map_is_unbiased_but_not_the_map_of_the_proofs():
    """The paper prints cos(ω₁·z) as the last entry of φ_trig, but its proof uses cos(ω_m·z).

    Each ω is standard normal, so both have the same mean. But only the latter has ‖φ(z)‖ = exp(‖z‖²/2), by which the
    lemma ranks normalised keys by angles, and the estimates of the former have a larger variance.
    """
    printed, truth = estimates_of(with_the_first_for_the_last_cosine)
    correct, _ = estimates_of(RIGHT_MAPS["trigonometric"])
    assert error_in_standard_errors(printed, truth).max() < 4
    assert np.all(printed.var(axis=0) > 1.05 * correct.var(axis=0))
    z = pairs(normalised=False)[0].astype(np.float64)
    lengths = np.exp(np.sum(z * z, axis=-1) / 2)
    omega = draw_projections(M, D, 0).astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(RIGHT_MAPS["trigonometric"](z, omega), axis=-1), lengths)
    assert np.abs(np.linalg.norm(with_the_first_for_the_last_cosine(z, omega), axis=-1) / lengths - 1).max() > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_normalised_trigonometric_features_of_the_library_have_one_norm(seed):
    """‖φ(z)‖ = exp(√d/2) for every key, as the proof of the lemma requires."""
    keys = np.random.default_rng(seed).normal(size=(50, D)).astype(np.float32)
    phi, _ = featurise(Softmax("trigonometric", M, normalised=True, seed=seed), keys, keys)
    np.testing.assert_allclose(np.linalg.norm(phi.true(), axis=-1), np.exp(np.sqrt(D) / 2), rtol=1e-5)
