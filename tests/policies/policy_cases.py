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
    Blind,
    ExactRank,
    Linear,
    MultiRank,
    Normaliser,
    Policy,
    PolicySpec,
    Products,
    Rank,
    Trans,
    TwoLevel,
    blocks,
    unflatten,
)

VALUES = ["pixels", "centres", "projection"]
KERNELS = st.sampled_from([ReLU(), Softmax(projections=5), Softmax("hyperbolic", 4), Softmax("favor++", 4)])
POSITIONS = st.sampled_from([Positions(), Positions("concat", channels=3), Positions("none")])
STEMS = ((3, 3, 1),), ((2, 3, 1), (3, 2, 1))
CONTROLLERS = st.sampled_from([Linear(), MLP((3,)), MLP((4, 2)), LSTM(3), Products(), Products(changes=True)])


def patches() -> dict[str, Any]:
    return {"patch": st.integers(1, 3), "stride": st.integers(1, 3), "d": st.integers(1, 5)}


@st.composite
def ranks(draw: DrawFn) -> Rank:
    """Any rank vision; an image of 8×8 has patches enough."""
    order = draw(st.sampled_from(["score", "image", "pooled"]))
    values = ("centres",) if order == "pooled" else tuple(draw(st.permutations(VALUES))[: draw(st.integers(1, 3))])
    chosen: dict[str, Any] = {
        **{name: draw(strategy) for name, strategy in patches().items()},
        **{name: draw(st.booleans()) for name in ("learn_pooling", "normalise_rows", "bias")},
        **{name: draw(st.booleans()) for name in ("placed", "soft")},
        "keep": draw(st.integers(1, 4)),
        "kernel": draw(KERNELS),
        "positions": draw(POSITIONS),
        "heads": draw(st.integers(1, 3)),
        "masked": order == "image" and draw(st.booleans()),
        "select": draw(st.sampled_from(["top", "sample"])),
        "values": values,
        "order": order,
    }
    return Rank(**chosen)


def visions() -> st.SearchStrategy:
    """Any vision for images of 8×8 or more."""
    flags = {name: st.booleans() for name in ("residual", "layer_norm", "normalise_rows")}
    sizes = {"rows": st.integers(1, 3), "width": st.integers(2, 3)}
    return st.one_of(
        ranks(),
        st.builds(MultiRank, keep=st.integers(1, 4), heads=st.integers(1, 3), **patches()),
        st.sampled_from([MultiRank(patch=2, stride=1, keep=2, stem=stem) for stem in STEMS]),
        st.builds(Trans, kernel=KERNELS, positions=POSITIONS, **patches(), **flags, **sizes),
        st.builds(ExactRank, keep=st.integers(1, 4), linear=st.booleans(), kernel=KERNELS, **patches()),
        st.sampled_from([CNN(), CNN(((2, 3, 2), (3, 2, 1))), Blind()]),
    )


@st.composite
def specs(draw: DrawFn) -> PolicySpec:
    """Any policy of a small image."""
    vision = draw(visions())
    level = draw(
        st.sampled_from([None, TwoLevel(), TwoLevel(latent=1, longest_hold=3, low=MLP((2,))), TwoLevel(low=Products())])
    )
    frames, anchored = draw(st.integers(1, 3)), draw(st.booleans())
    return PolicySpec(
        image_shape=(draw(st.integers(8, 11)), draw(st.integers(8, 11)), draw(st.sampled_from([1, 3]))),
        sensors=draw(st.integers(0, 3)),
        actions=draw(st.integers(1, 3)),
        vision=vision,
        controller=draw(CONTROLLERS),
        frames=frames,
        sees=draw(st.sampled_from([("image",), ("changes",), ("contrast", "changes"), ("departures", "detail")])),
        anchored=anchored,
        recalls=frames == 1 and not anchored and draw(st.booleans()),
        normalise=draw(st.booleans()),
        look_every=draw(st.integers(1, 3)) if level is None else 1,
        keys_every=draw(st.integers(1, 3)) if isinstance(vision, Rank) else 1,
        level=level,
    )


def some_theta(spec: PolicySpec, seed: int = 0) -> np.ndarray:
    """A θ in which no part is asleep."""
    return np.random.default_rng(seed).standard_normal(blocks(spec)[-1].stop, np.float32) / 2


def some_policy(spec: PolicySpec, seed: int = 0, normaliser: Normaliser | None = None) -> Policy:
    return Policy(spec, unflatten(spec, some_theta(spec, seed)), normaliser)


def observations(spec: PolicySpec, count: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "image": rng.integers(0, 256, spec.image_shape, dtype=np.uint8),
            "sensors": rng.standard_normal(spec.sensors, np.float32),
        }
        for _ in range(count)
    ]
