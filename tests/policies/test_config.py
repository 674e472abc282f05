import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from config_cases import configs, small_config
from hypothesis import given

from iap.attention import Positions, Softmax
from iap.attention.search import HashLookup
from iap.policies import (
    CNN,
    LSTM,
    MLP,
    AttentionAgent,
    Blind,
    Hierarchy,
    PolicyConfig,
    PooledMoments,
    Rank,
    SelectedPatches,
    Trans,
    from_json,
    to_json,
)

CONFIG = small_config(image_shape=(8, 8, 3))


@given(configs())
def test_any_config_survives_json(config):
    assert from_json(json.loads(json.dumps(to_json(config)))) == config


@given(configs())
def test_a_config_is_hashable_and_its_fields_can_be_replaced(config):
    assert hash(replace(config, sensors=7)) == hash(replace(config, sensors=7))


def test_fields_missing_in_json_take_their_defaults():
    data = {"kind": "policy", "image_shape": [40, 40, 3], "sensors": 0, "actions": 1}
    assert from_json(data) == PolicyConfig((40, 40, 3), 0, 1)


def test_a_part_of_a_config_survives_json():
    assert from_json(to_json(MLP((5, 3))), MLP) == MLP((5, 3))


def json_with(path: str, value: object) -> dict[str, Any]:
    """The JSON of a config in which one field has another value."""
    data = to_json(replace(CONFIG, encoder=Rank(patch=2, stride=2, top_k=3, kernel=Softmax()), hierarchy=Hierarchy()))
    *parts, last = path.split(".")
    inner = data
    for part in parts:
        inner = inner[part]
    inner[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("sensors", "2", "sensors must be int"),
        ("sensors", True, "sensors must be int"),
        ("sensors", -1, "sensors must be at least 0"),
        ("normalise", 1, "normalise must be bool"),
        ("image_shape", [8, 8], "image_shape must be a list of 3"),
        ("image_shape", [8, 8, 3.0], "image_shape must be int"),
        ("image_shape", [1 << 20, 1 << 20, 3], "image_shape must have at most"),
        ("image_shape", 8, "image_shape must be a list"),
        ("preprocessing", ["image", "depth"], "preprocessing must be one of image"),
        ("colour", 1, "no field colour"),
        ("encoder", None, "encoder must be of kind rank"),
        ("encoder", {"kind": "linear"}, "encoder must be of kind rank"),
        ("encoder", {"kind": ["rank"]}, "encoder must be of kind rank"),
        ("encoder.kernel.projections", 1 << 40, "projections must be between"),
        ("encoder.kernel.features", "cosine", "features must be one of positive"),
        ("encoder.features", {"kind": "relu"}, "features must be of kind selected-patches, pooled-moments"),
        ("encoder.features.values", ["centres", "smell"], "values must be one of pixels"),
        ("encoder.features.values", "centres", "values must be a list"),
        ("encoder.positions.scale", 10**400, "scale must be float"),
        ("encoder.positions.scale", float("nan"), "scale must be float"),
        ("encoder.d", 10**9, "d must be between"),
        ("hierarchy.low_level", {"kind": "blind"}, "low_level must be of kind linear, mlp"),
        ("kind", "rank", "config must be of kind policy"),
        ("kind", None, "config must be of kind policy"),
    ],
)
def test_wrong_json_is_a_value_error_that_names_the_field(path, value, message):
    with pytest.raises(ValueError, match=message):
        from_json(json_with(path, value))


def test_missing_fields_are_named():
    with pytest.raises(ValueError, match="lacks sensors, actions"):
        from_json({"kind": "policy", "image_shape": [8, 8, 3]})


def test_json_of_something_else_is_refused():
    with pytest.raises(ValueError, match="kind"):
        from_json([1, 2])
    with pytest.raises(TypeError, match="HashLookup"):
        to_json(HashLookup(np.zeros((1, 1), np.uint64), np.zeros((1, 1), np.float32), 0.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rank(patch=0), "patch must be at least 1, not 0"),
        (lambda: Rank(stride=0), "stride must be at least 1, not 0"),
        (lambda: Rank(top_k=0), "top_k must be at least 1, not 0"),
        (lambda: Rank(keys_every=0), "keys_every must be at least 1, not 0"),
        (lambda: Rank(select="all"), "select must be one of top, sample, not 'all'"),  # pyright: ignore
        (lambda: Rank(select="sample", kernel=Softmax("trigonometric")), "trigonometric"),
        (lambda: SelectedPatches(order="random"), "order must be one of score, image, not 'random'"),  # pyright: ignore
        (lambda: SelectedPatches(order="pooled"), "order must be one of score, image, not 'pooled'"),  # pyright: ignore
        (lambda: SelectedPatches(values=()), "values must be a tuple"),
        (lambda: SelectedPatches(values=("pixels", "pixels")), "values must name each at most once"),
        (lambda: SelectedPatches(masked=True, order="score"), 'order must be "image" with masked'),
        (lambda: PooledMoments(heads=0), "heads must be at least 1"),
        (lambda: AttentionAgent(scale_by="l"), "scale_by must be one of input, d, not 'l'"),  # pyright: ignore
        (lambda: Trans(rows=0), "rows must be at least 1"),
        (lambda: CNN(()), "layers must be a tuple"),
        (lambda: CNN(((1, 2),)), "layers must hold"),  # pyright: ignore
        (lambda: CNN(((1, 2, 0),)), "stride of layers must be at least 1"),
        (lambda: MLP(()), "hidden must be a tuple"),
        (lambda: MLP((4, 0)), "hidden must be at least 1"),
        (lambda: LSTM(0), "units must be at least 1"),
        (lambda: Hierarchy(latent_size=0), "latent_size must be at least 1"),
        (lambda: Hierarchy(max_command_steps=0), "max_command_steps must be at least 1"),
        (lambda: Hierarchy(command_gain=0.0), "command_gain must be positive and finite, not 0.0"),
        (lambda: Hierarchy(command_gain=float("nan")), "command_gain must be positive and finite, not nan"),
        (lambda: replace(CONFIG, actions=0), "actions must be at least 1"),
        (lambda: replace(CONFIG, frames=0), "frames must be at least 1"),
        (lambda: replace(CONFIG, image_shape=(8, 8)), "image_shape must be"),
        (lambda: replace(CONFIG, encoder=Rank(top_k=5)), "top_k must be between 1 and 4 .*, not 5"),
        (lambda: replace(CONFIG, encoder=Rank(patch=9)), "patch must be between 1 and 8"),
        (lambda: replace(CONFIG, encoder=AttentionAgent(top_k=2)), "top_k must be between 1 and 1"),
        (lambda: replace(CONFIG, encoder=CNN(((1, 9, 1),))), "size of layers must be between 1 and 8"),
        (lambda: replace(CONFIG, image_every=2, hierarchy=Hierarchy()), "image_every must be 1"),
        (lambda: replace(CONFIG, first_frame_features=True, frames=2), "first_frame_features must be False"),
    ],
)
def test_an_option_that_cannot_work_is_refused_when_the_config_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rank(kernel="relu"), "kernel must be ReLU, Softmax"),  # pyright: ignore
        (lambda: Rank(positions=None), "positions must be Positions"),  # pyright: ignore
        (lambda: Rank(patch=2.0), "patch must be a whole number"),  # pyright: ignore
        (lambda: SelectedPatches(masked=1), "masked must be bool"),  # pyright: ignore
        (lambda: PooledMoments(values=("pixels",)), "values"),  # pyright: ignore
        (lambda: PooledMoments(masked=True), "masked"),  # pyright: ignore
        (lambda: Trans(keys_every=2), "keys_every"),  # pyright: ignore
        (lambda: replace(CONFIG, encoder=Positions()), "encoder must be Encoder"),
        (lambda: replace(CONFIG, controller=Blind()), "controller must be Controller"),
        (lambda: replace(CONFIG, hierarchy=Blind()), "hierarchy must be Hierarchy, None"),
        (lambda: Hierarchy(low_level=Blind()), "low_level must be Controller"),  # pyright: ignore
    ],
)
def test_an_option_of_the_wrong_type_is_refused_when_the_config_is_made(make, message):
    with pytest.raises(TypeError, match=message):
        make()
