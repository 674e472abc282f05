"""What tests of policies share: any spec, any observation, and a policy of some spec with lively parameters."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iap.attention import Positions, ReLU, Softmax
from iap.policies import (
    CNN,
    LSTM,
    MLP,
    AttentionAgent,
    Blind,
    Hierarchy,
    Linear,
    MultiHeadRank,
    Normaliser,
    Policy,
    PolicyConfig,
    Quadratic,
    Rank,
    Trans,
    blocks,
    unflatten,
)

VALUES = ["pixels", "centres", "projection"]
KERNELS = st.sampled_from([ReLU(), Softmax(projections=5), Softmax("hyperbolic", 4), Softmax("favor++", 4)])
POSITIONS = st.sampled_from([Positions(), Positions("concat", channels=3), Positions("none")])
STEMS = ((3, 3, 1),), ((2, 3, 1), (3, 2, 1))
CONTROLLERS = st.sampled_from([Linear(), MLP((3,)), MLP((4, 2)), LSTM(3), Quadratic(), Quadratic(changes=True)])


def patches() -> dict[str, Any]:
    return {"patch": st.integers(1, 3), "stride": st.integers(1, 3), "d": st.integers(1, 5)}


@st.composite
def ranks(draw: DrawFn) -> Rank:
    """Any rank encoder; an image of 8×8 has patches enough."""
    order = draw(st.sampled_from(["score", "image", "pooled"]))
    values = ("centres",) if order == "pooled" else tuple(draw(st.permutations(VALUES))[: draw(st.integers(1, 3))])
    chosen: dict[str, Any] = {
        **{name: draw(strategy) for name, strategy in patches().items()},
        **{name: draw(st.booleans()) for name in ("learn_pooling", "normalise_rows", "bias")},
        **{name: draw(st.booleans()) for name in ("placed", "soft")},
        "top_k": draw(st.integers(1, 4)),
        "kernel": draw(KERNELS),
        "positions": draw(POSITIONS),
        "heads": draw(st.integers(1, 3)),
        "masked": order == "image" and draw(st.booleans()),
        "select": draw(st.sampled_from(["top", "sample"])),
        "values": values,
        "order": order,
    }
    return Rank(**chosen)


def encoders() -> st.SearchStrategy:
    """Any encoder for images of 8×8 or more."""
    flags = {name: st.booleans() for name in ("residual", "layer_norm", "normalise_rows")}
    sizes = {"rows": st.integers(1, 3), "width": st.integers(2, 3)}
    return st.one_of(
        ranks(),
        st.builds(MultiHeadRank, top_k=st.integers(1, 4), heads=st.integers(1, 3), **patches()),
        st.sampled_from([MultiHeadRank(patch=2, stride=1, top_k=2, stem=stem) for stem in STEMS]),
        st.builds(Trans, kernel=KERNELS, positions=POSITIONS, **patches(), **flags, **sizes),
        st.builds(AttentionAgent, top_k=st.integers(1, 4), linear=st.booleans(), kernel=KERNELS, **patches()),
        st.sampled_from([CNN(), CNN(((2, 3, 2), (3, 2, 1))), Blind()]),
    )


@st.composite
def specs(draw: DrawFn) -> PolicyConfig:
    """Any policy of a small image."""
    encoder = draw(encoders())
    level = draw(
        st.sampled_from([None, Hierarchy(), Hierarchy(latent_size=1, max_command_steps=3, low=MLP((2,))), Hierarchy(low=Quadratic())])
    )
    frames, relative_to_first_frame = draw(st.integers(1, 3)), draw(st.booleans())
    return PolicyConfig(
        image_shape=(draw(st.integers(8, 11)), draw(st.integers(8, 11)), draw(st.sampled_from([1, 3]))),
        sensors=draw(st.integers(0, 3)),
        actions=draw(st.integers(1, 3)),
        encoder=encoder,
        controller=draw(CONTROLLERS),
        frames=frames,
        preprocessing=draw(st.sampled_from([("image",), ("frame_difference",), ("local_contrast_coarse", "frame_difference"), ("first_frame_difference", "local_contrast_fine")])),
        relative_to_first_frame=relative_to_first_frame,
        first_frame_features=frames == 1 and not relative_to_first_frame and draw(st.booleans()),
        normalise=draw(st.booleans()),
        image_every=draw(st.integers(1, 3)) if level is None else 1,
        keys_every=draw(st.integers(1, 3)) if isinstance(encoder, Rank) else 1,
        hierarchy=level,
    )


def some_theta(spec: PolicyConfig, seed: int = 0) -> np.ndarray:
    """A θ in which no part is asleep."""
    return np.random.default_rng(seed).standard_normal(blocks(spec)[-1].stop, np.float32) / 2


def some_policy(spec: PolicyConfig, seed: int = 0, normaliser: Normaliser | None = None) -> Policy:
    return Policy(spec, unflatten(spec, some_theta(spec, seed)), normaliser)


def observations(spec: PolicyConfig, count: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "image": rng.integers(0, 256, spec.image_shape, dtype=np.uint8),
            "sensors": rng.standard_normal(spec.sensors, np.float32),
        }
        for _ in range(count)
    ]
