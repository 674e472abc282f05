"""A small config, any config, random parameters, random observations and steps, for the tests of policies."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iap.attention import Positions, ReLU, Softmax
from iap.policies import (
    CNN,
    GRU,
    LSTM,
    MLP,
    Attention,
    AttentionAgent,
    Blind,
    Encoder,
    Hierarchy,
    Linear,
    MultiHeadRank,
    Normaliser,
    Policy,
    PolicyConfig,
    PooledMoments,
    Quadratic,
    Rank,
    ResidualRank,
    SelectedPatches,
    Trans,
    count_params,
    unflatten,
)
from iap.policies.encoders.selected_patches import Order, Value
from iap.policies.preprocessing import Channel

VALUES: list[Value] = ["pixels", "centres", "projection"]
ORDERS: list[Order] = ["score", "image"]
KERNELS = st.sampled_from([ReLU(), Softmax(projections=5), Softmax("hyperbolic", 4), Softmax("favor++", 4)])
POSITIONS = st.sampled_from([Positions(), Positions("concat", channels=3), Positions("none")])
STEMS = ((3, 3, 1),), ((2, 3, 1), (3, 2, 1))
CONTROLLERS = st.sampled_from([Linear(), MLP((3,)), MLP((4, 2)), LSTM(3), GRU(3), Quadratic(), Quadratic(deltas=True)])
HIERARCHIES = st.sampled_from(
    [
        None,
        Hierarchy(),
        Hierarchy(latent_size=1, max_command_steps=3, low_level=MLP((2,))),
        Hierarchy(low_level=LSTM(2), high_level_sensors=False),
        Hierarchy(low_level=Quadratic(deltas=True)),
    ]
)
PREPROCESSING: st.SearchStrategy[tuple[Channel, ...]] = st.sampled_from(
    [
        ("image",),
        ("frame_difference",),
        ("local_contrast_coarse", "frame_difference"),
        ("first_frame_difference", "local_contrast_fine"),
        ("centred_image", "signed_frame_difference"),
    ]
)


class Step(NamedTuple):
    """One step of a policy: the arguments that are not observations, and all results."""

    needs_image: bool
    action: np.ndarray
    state: Any
    attention: Attention | None


def small_config(**changes: Any) -> PolicyConfig:
    """IAP-rank with three patches (6 features), a linear controller, 2 sensors and 2 actions."""
    fields = {
        "image_shape": (12, 16, 3),
        "sensors": 2,
        "actions": 2,
        "encoder": Rank(patch=2, stride=2, top_k=3),
    }
    return PolicyConfig(**(fields | changes))


def random_theta(config: PolicyConfig, seed: int = 0) -> np.ndarray:
    """A random θ without zeros, biases included."""
    return np.random.default_rng(seed).standard_normal(count_params(config), np.float32) / 2


def random_policy(
    config: PolicyConfig, seed: int = 0, normaliser: Normaliser | None = None, *, compiled: bool = False
) -> Policy:
    """A policy with a random θ; its steps run in NumPy unless compiled ones are asked for, which take seconds."""
    return Policy(config, unflatten(config, random_theta(config, seed)), normaliser, compiled=compiled)


def random_normaliser(config: PolicyConfig, seed: int = 0) -> Normaliser:
    """The statistics of a few random inputs."""
    return Normaliser.of(np.random.default_rng(seed).standard_normal((9, config.inputs_size)))


def observations(config: PolicyConfig, count: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    """Random bytes as images, random normal sensors."""
    rng = np.random.default_rng(seed)
    return [
        {
            "image": rng.integers(0, 256, config.image_shape, dtype=np.uint8),
            "sensors": rng.standard_normal(config.sensors, np.float32),
        }
        for _ in range(count)
    ]


def run(policy: Policy, episode: Sequence[dict[str, Any]], seed: int = 0) -> list[Step]:
    """All steps of an episode with these observations."""
    state, steps = policy.reset(seed), []
    for observation in episode:
        needs_image = policy.needs_image(state)
        action, state, attention = policy.act(state, observation)
        steps.append(Step(needs_image, action, state, attention))
    return steps


def patches() -> dict[str, Any]:
    """Any size of patches, for images of 8×8 or more."""
    return {"patch": st.integers(1, 3), "stride": st.integers(1, 3), "d": st.integers(1, 5)}


@st.composite
def selected_patches(draw: DrawFn) -> SelectedPatches:
    """Any features of single patches."""
    order = draw(st.sampled_from(ORDERS))
    return SelectedPatches(
        values=tuple(draw(st.permutations(VALUES))[: draw(st.integers(1, 3))]),
        projection_size=draw(st.integers(1, 4)),
        order=order,
        masked=order == "image" and draw(st.booleans()),
    )


def ranks() -> st.SearchStrategy[Rank]:
    """Any IAP-rank encoder, for images of 8×8 or more."""
    flags = {name: st.booleans() for name in ("learn_pooling", "normalise_rows", "bias")}
    pooled = st.builds(
        PooledMoments, heads=st.integers(1, 3), position_weighted=st.booleans(), score_weighted=st.booleans()
    )
    return st.builds(
        Rank,
        **patches(),
        **flags,
        top_k=st.integers(1, 4),
        kernel=KERNELS,
        positions=POSITIONS,
        features=st.one_of(selected_patches(), pooled),
        pixel_offset=st.sampled_from([0.0, 0.4]),
        pixel_scale=st.sampled_from([1.0, 4.0]),
        select=st.sampled_from(["top", "sample"]),
        keys_every=st.integers(1, 3),
    )


def encoders() -> st.SearchStrategy[Encoder]:
    """Any encoder, for images of 8×8 or more."""
    flags = {name: st.booleans() for name in ("residual", "layer_norm", "normalise_rows", "bias")}
    sizes = {"rows": st.integers(1, 3), "value_size": st.integers(2, 3)}
    return st.one_of(
        ranks(),
        st.builds(MultiHeadRank, top_k=st.integers(1, 4), heads=st.integers(1, 3), **patches()),
        st.sampled_from([MultiHeadRank(patch=2, stride=1, top_k=2, stem=stem) for stem in STEMS]),
        st.builds(
            ResidualRank,
            stem=st.sampled_from([((2, 3, 2),), ((3, 1, 1), (2, 5, 3))]),
            dilations=st.sampled_from([(), (1,), (2, 1)]),
            d=st.integers(1, 4),
            heads=st.integers(1, 3),
            top_k=st.integers(1, 4),
            values=st.integers(0, 2),
        ),
        st.builds(Trans, kernel=KERNELS, positions=POSITIONS, **patches(), **flags, **sizes),
        st.builds(AttentionAgent, top_k=st.integers(1, 4), linear=st.booleans(), kernel=KERNELS, **patches()),
        st.sampled_from([CNN(), CNN(((2, 3, 2), (3, 2, 1))), Blind()]),
    )


@st.composite
def configs(draw: DrawFn) -> PolicyConfig:
    """Any config for small images."""
    hierarchy = draw(HIERARCHIES)
    frames, relative = draw(st.integers(1, 3)), draw(st.booleans())
    return PolicyConfig(
        image_shape=(draw(st.integers(8, 11)), draw(st.integers(8, 11)), draw(st.sampled_from([1, 3]))),
        sensors=draw(st.integers(0, 3)),
        actions=draw(st.integers(1, 3)),
        encoder=draw(encoders()),
        controller=draw(CONTROLLERS),
        frames=frames,
        preprocessing=draw(PREPROCESSING),
        relative_to_first_frame=relative,
        first_frame_features=frames == 1 and not relative and draw(st.booleans()),
        normalise=draw(st.booleans()),
        image_every=draw(st.integers(1, 3)) if hierarchy is None else 1,
        hierarchy=hierarchy,
    )
