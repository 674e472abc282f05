"""The image contract: one picture gives one action in every format, and another format is refused with the fix."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from iap.policies import AttentionAgent, Policy, PolicyConfig, PooledMoments, Rank, init, to_json
from iap.policies.image_format import ImageFormat
from iap.policies.serialization import VERSION, load, save
from iap.zoo import zoo_file

RNG = np.random.default_rng(0)
PICTURE = RNG.integers(0, 256, (12, 12, 3), dtype=np.uint8)
BYTES = ImageFormat()
CONFIG = PolicyConfig(
    (12, 12, 3), sensors=0, actions=2, encoder=Rank(patch=2, stride=2, top_k=4, features=PooledMoments())
)
FORMATS = {
    "float32 from 0 to 1": (ImageFormat("float32", 0.0, 1.0), (PICTURE / 255).astype(np.float32)),
    "float64 from 0 to 1": (ImageFormat("float32", 0.0, 1.0), PICTURE / 255),
    "float32 from 0 to 255": (ImageFormat("float32", 0.0, 255.0), PICTURE.astype(np.float32)),
    "float32 from -1 to 1": (ImageFormat("float32", -1.0, 1.0), (PICTURE / 127.5 - 1).astype(np.float32)),
    "uint16 from 0 to 65535": (ImageFormat("uint16", 0.0, 65535.0), PICTURE.astype(np.uint16) * 257),
}


def policy_for(image_format, config=CONFIG):
    config = replace(config, image_format=image_format)
    return Policy(config, init(config, 3))


def act(policy, image):
    return policy.act(policy.reset(), {"image": image, "sensors": np.zeros(0, np.float32)})[0]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("encoder", [CONFIG.encoder, AttentionAgent(3, 2, top_k=2)], ids=["rank", "attention-agent"])
def test_a_picture_gives_the_same_action_in_every_format(name, encoder):
    image_format, image = FORMATS[name]
    config = replace(CONFIG, encoder=encoder)
    wanted = act(policy_for(BYTES, config), PICTURE)
    np.testing.assert_allclose(act(policy_for(image_format, config), image), wanted, atol=1e-5)
    assert np.array_equal(act(policy_for(None, config), PICTURE), wanted)  # as files of format 3 act


@pytest.mark.parametrize("name", FORMATS)
def test_preprocessing_gives_the_same_action_in_every_format(name):
    image_format, image = FORMATS[name]
    config = replace(CONFIG, preprocessing=("image", "local_contrast_coarse"))
    wanted = act(policy_for(BYTES, config), PICTURE)
    assert np.array_equal(act(policy_for(image_format, config), image), wanted)


def test_physical_values_and_values_without_bounds_are_not_scaled():
    depth = (PICTURE / 100).astype(np.float32)
    wanted = act(policy_for(None), depth)
    metres = ImageFormat.of(np.dtype(np.float32), 0, 10, physical=True)
    unbounded = ImageFormat.of(np.dtype(np.float32), -np.inf, np.inf)
    for image_format in (metres, unbounded):
        assert not image_format.scaled
        assert np.array_equal(act(policy_for(image_format), depth), wanted)


UNIT = ImageFormat("float32", 0.0, 1.0)
REFUSED = {
    "floats for bytes": (
        BYTES,
        PICTURE / 255,
        TypeError,
        r"must be uint8 from 0 to 255, .* not float64: .*255 \* image",
    ),
    "int64 for bytes": (BYTES, PICTURE.astype(np.int64), TypeError, r"not int64: .* image\.astype\(numpy\.uint8\)"),
    "bytes for floats": (UNIT, PICTURE, TypeError, "must be float32 from 0 to 1, .* not uint8: pass image / 255"),
    "floats to 255 for floats to 1": (
        UNIT,
        PICTURE.astype(np.float32),
        ValueError,
        "is from 0 to 255: divide it by 255",
    ),
    "negative floats": (UNIT, PICTURE / 255 - 0.5, ValueError, "is from -0.5 to 0.5: scale it to that range"),
    "NaN": (UNIT, np.full((12, 12, 3), np.nan, np.float32), ValueError, "image must be finite"),
    "bytes for uint16": (ImageFormat("uint16", 0.0, 65535.0), PICTURE, TypeError, "must be uint16 from 0 to 65535"),
    "channels first": (BYTES, PICTURE[:, :6].transpose(2, 0, 1), ValueError, r"not \(3, 12, 6\)"),
    "another size": (BYTES, PICTURE[:8], ValueError, "resize it to that height and width"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_another_format_is_refused_with_the_fix(case):
    image_format, image, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        act(policy_for(image_format), image)


def test_channels_first_and_missing_channels_are_named():
    with pytest.raises(ValueError, match=r"channels come first, so pass image\.transpose\(1, 2, 0\)"):
        act(policy_for(BYTES), np.zeros((3, 12, 12), np.uint8))
    grey = replace(CONFIG, image_shape=(12, 12, 1))
    with pytest.raises(ValueError, match=r"pass image\[\.\.\., None\]"):
        act(policy_for(BYTES, grey), np.zeros((12, 12), np.uint8))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_sensors_that_are_not_finite_are_refused(value):
    policy = policy_for(BYTES, replace(CONFIG, sensors=2))
    with pytest.raises(ValueError, match="sensors must be finite"):
        policy.act(policy.reset(), {"image": PICTURE, "sensors": np.array([0, value], np.float32)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int32"}, "image_format.dtype must be one of uint8, uint16, float32, not 'int32'"),
        ({"low": 1.0, "high": 1.0}, "image_format.low must be less than high"),
        ({"high": None}, "image_format.scaled must be False without bounds"),
        ({"low": "0"}, "image_format.low must be a number"),
    ],
)
def test_an_invalid_format_is_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ImageFormat(**options)


def test_the_policy_file_keeps_the_format(tmp_path):
    config = replace(CONFIG, image_format=UNIT)
    policy = Policy(config, init(config, 0))
    policy.env = Policy.load(zoo_file("seek")).env
    policy.save(tmp_path / "a.policy")
    assert load(tmp_path / "a.policy").config.image_format == UNIT


def test_a_file_of_format_3_has_no_image_format_and_is_upgraded(tmp_path):
    file = tmp_path / "old.policy"
    config = to_json(CONFIG)
    del config["image_format"]
    header = {"format": "iap-policy", "version": 3, "config": config, "env_id": "iap/Seek-v0"}
    header |= {"env_kwargs": {}, "facts": {}, "iap_version": "0.0.9"}
    theta = Policy(CONFIG, init(CONFIG, 0)).theta
    save_file({"theta": theta}, file, metadata={"policy": json.dumps(header)})
    before = load(file)
    assert before.config.image_format is None
    save(file, before)
    assert VERSION >= 4
    assert load(file).config == before.config
