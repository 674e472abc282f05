import copy
import json
import os
import pickle
import random
import re
import resource
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iap._tensor_files import CHECKSUM, checksum_of
from iap.policies import (
    CNN,
    CONTROLLERS,
    ENCODERS,
    LSTM,
    MLP,
    AttentionAgent,
    Blind,
    Hierarchy,
    Linear,
    Normaliser,
    PolicyConfig,
    PolicyFile,
    PolicyFileError,
    PooledMoments,
    Quadratic,
    Rank,
    SelectedPatches,
    Trans,
    count_params,
    flatten,
    from_json,
    init,
    to_json,
)
from iap.policies.format.upgrades import upgrade_header
from iap.policies.serialization import FORMAT, MOST_BYTES, VERSION, load, save

CONFIG = PolicyConfig((8, 8, 1), sensors=2, actions=2, encoder=Rank(patch=2, stride=2, top_k=3))
CONFIGS = [
    CONFIG,
    PolicyConfig((96, 96, 3), 0, 3, AttentionAgent(), LSTM(), normalise=False),
    PolicyConfig((12, 10, 3), 1, 2, Trans(), MLP((4, 3)), frames=2),
    PolicyConfig((16, 16, 1), 3, 1, CNN(((4, 3, 2),)), hierarchy=Hierarchy()),
    PolicyConfig((16, 16, 1), 3, 1, Blind(), image_every=2),
]
# The header of a file of version 1, with the names of that version: such files must stay readable.
VERSION_1 = (
    '{"format": "iap-policy", "version": 1, "spec": {"kind": "policy", "image_shape": [4, 4, 1], "sensors": 1, '
    '"actions": 1, "vision": {"kind": "blind"}, "controller": {"kind": "linear"}}, "env_id": "iap/Seek-v0", '
    '"env_kwargs": {"size": 4}, "facts": {"seed": 7}, "iap_version": "0.1.0"}'
)


def policy_file(config: PolicyConfig, /, *, seed: int = 0, **changes) -> PolicyFile:
    """A policy file with random parameters, in which some fields are changed."""
    rng = np.random.default_rng(seed)
    normaliser = Normaliser.of(rng.random((5, config.inputs_size))) if config.normalise else None
    content = {
        "config": config,
        "theta": flatten(init(config, seed)),
        "normaliser": normaliser,
        "env_id": "iap/Seek-v0",
        "env_kwargs": {"image_size": (8, 8), "text": "naïve"},
        "facts": {"returns": [1.5, -2], "none": None},
    }
    return PolicyFile(**(content | changes))


def raw_file(header: object, data: bytes = b"") -> bytes:
    """A safetensors file with exactly this header; bytes as they are, anything else as JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def sealed_file(header: object, data: bytes) -> bytes:
    """A file with this header and the checksum of its content, as somebody would write who wants it to be read."""
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if isinstance(header, dict) and isinstance(metadata, dict):
        texts = {name: text for name, text in metadata.items() if name != CHECKSUM}
        tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
        header = {**header, "__metadata__": texts | {CHECKSUM: checksum_of(tensors, texts, data)}}
    return raw_file(header, data)


def split_file(content: bytes) -> tuple[dict, bytes]:
    """The header and the data of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


@pytest.fixture
def written(tmp_path) -> bytes:
    """The bytes of a valid file."""
    save(tmp_path / "valid.policy", policy_file(CONFIG))
    return (tmp_path / "valid.policy").read_bytes()


def refused(path: Path, content: bytes) -> str:
    """The message with which this content is refused: with the path, short and printable."""
    path.write_bytes(content)
    with pytest.raises(PolicyFileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message) < len(str(path)) + 400
    assert message.isprintable()
    return message


def with_metadata(written: bytes, change) -> bytes:
    header, data = split_file(written)
    policy = json.loads(header["__metadata__"]["policy"])
    policy = change(policy) or policy
    header["__metadata__"]["policy"] = json.dumps(policy)
    return sealed_file(header, data)


def with_tensors(written: bytes, change) -> bytes:
    header, data = split_file(written)
    return sealed_file(change(header) or header, data)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config.encoder).__name__)
def test_a_saved_policy_is_loaded_unchanged(config, tmp_path):
    policy = policy_file(config, seed=3)
    save(tmp_path / "a.policy", policy)
    loaded = load(tmp_path / "a.policy")
    assert loaded.config == config
    assert loaded.theta.dtype == np.float32
    np.testing.assert_array_equal(loaded.theta, policy.theta)
    for name in ("env_id", "env_kwargs", "facts", "iap_version"):
        assert getattr(loaded, name) == getattr(policy, name)
    assert loaded.env_kwargs == {"image_size": [8, 8], "text": "naïve"}
    if policy.normaliser is None:
        assert loaded.normaliser is None
    else:
        assert loaded.normaliser is not None
        assert loaded.normaliser.to_json() == policy.normaliser.to_json()


def test_a_loaded_policy_is_saved_as_the_same_bytes_and_less_than_4_kb(tmp_path, written):
    save(tmp_path / "again.policy", load(tmp_path / "valid.policy"))
    assert (tmp_path / "again.policy").read_bytes() == written
    assert len(written) < 4096


def test_theta_of_a_policy_file_is_a_read_only_copy():
    theta = flatten(init(CONFIG, 0))
    policy = policy_file(CONFIG, theta=theta)
    first = float(theta[0])
    theta[0] += 1
    assert policy.theta[0] == first
    with pytest.raises(ValueError, match="read-only"):
        policy.theta[0] = 0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"config": to_json(CONFIG)}, TypeError, "config must be PolicyConfig"),
        ({"theta": np.zeros(5, np.float32)}, ValueError, r"theta must be of shape \(\d+,\) for its config, not \(5,\)"),
        (
            {"theta": flatten(init(CONFIG, 0)).astype(np.float64)},
            TypeError,
            "theta must be a float32 array, not float64",
        ),
        ({"theta": [0.0]}, TypeError, "theta must be a float32 array"),
        ({"theta": np.full_like(flatten(init(CONFIG, 0)), np.nan)}, ValueError, "theta must be finite"),
        ({"normaliser": Normaliser.none(3)}, ValueError, "normaliser is of 3 numbers; the controller receives 8"),
        ({"normaliser": {}}, TypeError, "normaliser must be"),
        ({"env_id": ""}, ValueError, "env_id must be"),
        ({"env_id": None}, ValueError, "env_id must be"),
        ({"env_kwargs": [1]}, TypeError, "env_kwargs must be a mapping"),
        ({"env_kwargs": {"a": object()}}, ValueError, "env_kwargs must be what JSON can hold"),
        ({"facts": {"a": float("nan")}}, ValueError, "facts must be what JSON can hold"),
        ({"facts": {"a": "\ud800"}}, ValueError, "facts must be what JSON can hold"),
    ],
)
def test_content_that_a_file_cannot_hold_is_refused_with_the_name_of_the_field(changes, error, message):
    with pytest.raises(error, match=message):
        policy_file(CONFIG, **changes)


def test_a_policy_too_large_to_be_loaded_again_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="too large to be loaded again"):
        save(tmp_path / "a.policy", policy_file(CONFIG, facts={"log": "x" * (1 << 20)}))
    assert list(tmp_path.iterdir()) == []


def test_the_error_survives_pickling(tmp_path):
    path = tmp_path / "missing.policy"
    with pytest.raises(PolicyFileError) as caught:
        load(path)
    assert str(pickle.loads(pickle.dumps(caught.value))) == f"{path}: cannot be read: No such file or directory"


def test_a_failed_write_leaves_the_old_file_unchanged_and_no_temporary_file(tmp_path, written):
    path = tmp_path / "valid.policy"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(path, policy_file(CONFIG, seed=1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == written
    assert [file.name for file in tmp_path.iterdir()] == ["valid.policy"]


def test_saving_to_the_path_of_a_folder_fails_and_leaves_the_folder(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        save(tmp_path / "taken", policy_file(CONFIG))
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_path_that_cannot_be_read_is_refused_with_the_reason(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    for path, reason in {
        tmp_path: "is a folder",
        tmp_path / "missing": "No such file",
        tmp_path / "huge" / "below": "Not a directory",
        tmp_path / ("n" * 300): "name too long",
        tmp_path / "pipe": "not a regular file",
        Path("/dev/zero"): "not a regular file",
        tmp_path / "huge": "larger than 16 MB",
    }.items():
        with pytest.raises(PolicyFileError, match=reason):
            load(path)


def write_old_file(path: Path, header: str, theta: tuple[float, ...] = (0.5, -1.25)) -> None:
    """A file with exactly this text as its header."""
    tensors = {"theta": {"dtype": "F32", "shape": [len(theta)], "data_offsets": [0, 4 * len(theta)]}}
    content = raw_file({"__metadata__": {"policy": header}, **tensors}, struct.pack(f"<{len(theta)}f", *theta))
    path.write_bytes(content)


def test_a_file_of_version_1_is_read(tmp_path):
    write_old_file(tmp_path / "old.policy", VERSION_1)
    policy = load(tmp_path / "old.policy")
    assert policy.theta.tolist() == [0.5, -1.25]
    assert policy.config == PolicyConfig((4, 4, 1), 1, 1, Blind())
    assert (policy.env_id, policy.env_kwargs, policy.facts) == ("iap/Seek-v0", {"size": 4}, {"seed": 7})


@pytest.mark.parametrize(("changes", "preprocessing"), [("true", ("frame_difference",)), ("false", ("image",))])
def test_the_flag_changes_of_version_1_becomes_preprocessing(tmp_path, changes, preprocessing):
    header = VERSION_1.replace('"actions": 1,', f'"actions": 1, "changes": {changes},')
    write_old_file(tmp_path / "old.policy", header)
    assert load(tmp_path / "old.policy").config.preprocessing == preprocessing


@pytest.mark.parametrize(
    ("vision", "encoder"),
    [
        (
            {"kind": "rank", "patch": 2, "stride": 2, "keep": 3, "order": "pooled", "heads": 2, "placed": True},
            Rank(2, 2, top_k=3, keys_every=2, features=PooledMoments(2, position_weighted=True)),
        ),
        (
            {"kind": "rank", "patch": 2, "stride": 2, "keep": 3, "order": "score", "values": ["projection"]},
            Rank(2, 2, top_k=3, keys_every=2, features=SelectedPatches(("projection",), order="score")),
        ),
    ],
)
def test_the_names_of_version_2_become_those_of_version_3(vision, encoder, tmp_path):
    config = PolicyConfig(
        (8, 8, 1),
        1,
        1,
        encoder,
        Quadratic(deltas=True),
        preprocessing=("first_frame_difference", "local_contrast_fine"),
        relative_to_first_frame=True,
        hierarchy=Hierarchy(3, 4, Linear(), high_level_sensors=False, command_gain=1.5),
    )
    spec = {
        "kind": "policy",
        "image_shape": [8, 8, 1],
        "sensors": 1,
        "actions": 1,
        "vision": vision,
        "controller": {"kind": "products", "changes": True},
        "sees": ["departures", "detail"],
        "anchored": True,
        "keys_every": 2,
        "level": {
            "kind": "two-level",
            "latent": 3,
            "longest_hold": 4,
            "low": {"kind": "linear"},
            "senses": False,
            "gain": 1.5,
        },
    }
    header = {
        "format": FORMAT,
        "version": 2,
        "spec": spec,
        "env_id": "iap/Stairs-v0",
        "env_kwargs": {"one_foot": True, "told": ["x"]},
        "facts": {"screened": 5, "strategy": "CMAES", "command": "iap train stairs --seed 1"},
        "iap_version": "0.1.0",
    }
    write_old_file(tmp_path / "old.policy", json.dumps(header), (0.5,) * count_params(config))
    policy = load(tmp_path / "old.policy")
    assert policy.config == config
    assert (policy.env_id, policy.env_kwargs) == ("iap/StairsSingleFoot-v0", {"keypoints": ["x"]})
    assert policy.facts == {
        "random_search": 5,
        "strategy": "cma-es",
        "command": "iap train stairs-single-foot --seed 1",
    }


def test_a_header_passes_through_the_upgrades_after_its_version():
    def note(name):
        return lambda header: header | {"passed": [*header["passed"], name]}

    upgrades = (note("1 to 2"), note("2 to 3"))
    assert upgrade_header({"version": 1, "passed": []}, upgrades)["passed"] == ["1 to 2", "2 to 3"]
    assert upgrade_header({"version": 2, "passed": []}, upgrades)["passed"] == ["2 to 3"]
    assert upgrade_header({"version": 3, "passed": []}, upgrades)["passed"] == []
    with pytest.raises(ValueError, match="newer version of iap"):
        upgrade_header({"version": 4, "passed": []}, upgrades)


def test_a_pickle_is_never_unpickled(tmp_path):
    class Payload:
        def __reduce__(self):
            return Path.touch, (tmp_path / "executed",)

    refused(tmp_path / "a.policy", pickle.dumps(Payload()))
    refused(tmp_path / "a.policy", raw_file(b"{}", pickle.dumps(Payload())))
    assert not (tmp_path / "executed").exists()


def test_a_truncated_file_and_one_with_extra_bytes_are_refused(tmp_path, written):
    for length in [*range(0, len(written), 7), len(written) - 1]:
        refused(tmp_path / "a.policy", written[:length])
    refused(tmp_path / "a.policy", written + b"\0")


def put(key, value):
    """A change of one field of a header."""
    return lambda header: header.update({key: value})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("version", VERSION + 1), "made by a newer version of iap"),
        (put("version", True), "version must be a whole number"),
        (put("version", 0), "version must be a whole number"),
        (put("version", None), "version must be a whole number"),
        (put("format", "other"), f"format must be '{FORMAT}', not 'other'"),
        (put("config", None), "config must be of kind policy"),
        (put("config", to_json(CONFIGS[1])), r"theta must be of shape \(3667,\)"),
        (put("config", to_json(CONFIG) | {"sensors": 10**400}), "theta must be|too large"),
        (
            put("config", to_json(CONFIG) | {"controller": {"kind": "mlp", "hidden": [10**400]}}),
            "theta must be|too large",
        ),
        (put("config", to_json(CONFIG) | {"extra": 1}), "has no field extra"),
        (put("env_id", "\x1b[2J"), "env_id must be"),
        (put("env_id", 3), "env_id must be"),
        (put("env_kwargs", "none"), "env_kwargs must be a mapping"),
        (put("facts", [1]), "facts must be a mapping"),
        (put("facts", {"a": float("inf")}), "facts must be what JSON can hold"),
        (put("facts", {"a": "\ud800"}), "facts must be what JSON can hold"),
        (lambda header: header.pop("env_id") and None, "lacks env_id"),
        (lambda header: [header], "must be a JSON object, not list"),
    ],
)
def test_a_wrong_header_is_refused_with_the_reason(change, reason, tmp_path, written):
    assert re.search(reason, refused(tmp_path / "a.policy", with_metadata(written, change)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("extra", {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}), "tensors must be theta"),
        (lambda header: header.pop("theta") and None, "tensors must be theta"),
        (lambda header: header.pop("__metadata__") and None, "not a policy"),
        (put("__metadata__", {"policy": None}), "metadata must be texts"),
        (put("__metadata__", []), "metadata must be texts"),
        (put("theta", None), "theta must be F32"),
        (lambda header: header["theta"].update(dtype="F64"), "theta must be F32"),
        (lambda header: header["theta"].update(dtype="I32"), "theta must be F32"),
        (lambda header: header["theta"].update(shape=[18, 2]), r"shape \(\d+,\)|Error"),
        (lambda header: header["theta"].update(shape=[2**62, 8]), "theta must be of shape"),
        (lambda header: header["theta"].update(data_offsets=[0, 2**63]), "Error"),
        (lambda header: header["theta"].update(data_offsets=header["normaliser.m2"]["data_offsets"]), "Error"),
        (lambda header: header["normaliser.mean"].update(dtype="F32"), "normaliser.mean must be F64"),
        (lambda header: header["normaliser.count"].update(dtype="U64"), "normaliser.count must be I64"),
    ],
)
def test_wrong_tensors_are_refused_with_the_reason(change, reason, tmp_path, written):
    assert re.search(reason, refused(tmp_path / "a.policy", with_tensors(written, change)))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "truncated"),
        (b"\xff" * 100, "truncated"),
        (raw_file(b" " * (2 << 20)), "its header has 2097152 bytes"),
        (raw_file(b"[]"), "must be a JSON object, not list"),
        (raw_file(b"\xff\xfe{}"), "is not JSON"),
        (raw_file(b'{"a": 1, "a": 2}'), "a key comes twice"),
        (raw_file(b"[" * 500_000), "recursion"),
        (raw_file(b'{"a":' * 100_000), "recursion"),
        (raw_file({"__metadata__": {"policy": "[" * 100_000}}), "theta"),
        (raw_file(b"9" * 100_000), "is not JSON"),
        (raw_file({f"tensor {i}": {} for i in range(20_000)}), "not a policy"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_hostile_file_is_refused_with_the_reason(content, reason, tmp_path):
    assert re.search(reason, refused(tmp_path / "a.policy", content))


def whole_numbers(tree: Any) -> Iterator[tuple[Any, Any]]:
    """All places of a tree of JSON that hold a whole number: parent and key."""
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        if isinstance(value, dict | list):
            yield from whole_numbers(value)
        elif type(value) is int:
            yield tree, key


PARTS = [{"encoder": to_json(cls())} for name, cls in ENCODERS.items() if name != "attention-agent"]
PARTS += [{"controller": to_json(cls())} for cls in CONTROLLERS.values()]
PARTS += [
    {"hierarchy": to_json(Hierarchy())},
    {"encoder": to_json(Blind()), "hierarchy": to_json(Hierarchy(low_level=MLP()))},
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: "-".join(x["kind"] for x in part.values()))
def test_a_header_that_asks_for_huge_arrays_is_refused_before_they_are_allocated(part, tmp_path, written):
    whole = to_json(PolicyConfig((64, 64, 3), 2, 2)) | part
    path, most_bytes = tmp_path / "a.policy", 0
    tracemalloc.start()
    try:
        for branch, key in whole_numbers(whole):
            usual = branch[key]
            for value in (10**6, 10**8, 10**12):
                branch[key] = value
                path.write_bytes(with_metadata(written, put("config", whole)))
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                with pytest.raises(PolicyFileError):
                    load(path)
                most_bytes = max(most_bytes, tracemalloc.get_traced_memory()[1] - before)
            branch[key] = usual
    finally:
        tracemalloc.stop()
    assert most_bytes < 5e6


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["theta", "normaliser.mean", "normaliser.m2"])
def test_numbers_that_are_not_finite_are_refused_with_the_name_of_the_array(name, value, tmp_path, written):
    header, data = split_file(written)
    start = header[name]["data_offsets"][0]
    bad = np.array(value, np.float32 if name == "theta" else np.float64).tobytes()
    message = refused(tmp_path / "a.policy", sealed_file(header, data[:start] + bad + data[start + len(bad) :]))
    assert re.search(f"{name.removeprefix('normaliser.')} must be .*finite", message)


HOSTILE = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "rank",
    "\ud800",
    "F64",
]
HOSTILE += [
    "x" * 5000,
    [],
    [[]],
    [0, 2**64],
    [-1],
    {},
    {"kind": "policy"},
    {"kind": []},
    [[[[[[[[1]]]]]]]],
    {"": {"": {}}},
]


def random_node(rng: random.Random, tree: Any) -> tuple[Any, str | int]:
    """A random node of a tree of JSON: its parent and its key."""
    while True:
        key = rng.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        if not isinstance(tree[key], dict | list) or not tree[key] or rng.random() < 0.1:
            return tree, key
        tree = tree[key]


def with_edited_header(rng: random.Random, content: bytes) -> bytes:
    """A few nodes of the header, or of the JSON in it, replaced or deleted; the lengths stay correct."""
    header, data = split_file(content)
    whole = {"header": header, "policy": json.loads(header["__metadata__"]["policy"])}
    for _ in range(rng.randint(1, 3)):
        branch, key = random_node(rng, whole)
        branch[key] = copy.deepcopy(rng.choice(HOSTILE))
        if rng.random() < 0.2 and branch is not whole:
            del branch[key]
    metadata = whole["header"].get("__metadata__") if isinstance(whole["header"], dict) else None
    if isinstance(metadata, dict) and rng.random() < 0.9:
        metadata["policy"] = json.dumps(whole["policy"])
    return sealed_file(whole["header"], data)


def with_edited_bytes(rng: random.Random, content: bytes) -> bytes:
    """A few bytes flipped, inserted, deleted or copied elsewhere; sometimes cut off."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        at = rng.randrange(len(data)) if rng.random() < 0.6 else rng.randrange(min(40, len(data)))
        match rng.randrange(5):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                data[at:at] = rng.randbytes(rng.randint(1, 9))
            case 3:
                del data[at : at + rng.randint(1, 9)]
            case _:
                data[at:at] = data[at : at + rng.randint(1, 64)]
        if not data:
            break
    edited = bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data)
    try:
        return sealed_file(*split_file(edited))
    except (ValueError, RecursionError):
        return edited


@pytest.mark.parametrize("mutate", [with_edited_bytes, with_edited_header])
@pytest.mark.parametrize("config", [CONFIG, CONFIGS[3]], ids=["rank", "hierarchy"])
def test_thousands_of_mutated_files_are_refused_or_hold_a_policy(mutate, config, tmp_path):
    rng = random.Random(0)
    path = tmp_path / "a.policy"
    save(path, policy_file(config))
    content = path.read_bytes()
    most_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reasons, accepted = set(), 0
    for _ in range(2500):
        path.unlink()  # a new file is not flushed to the disk, one that is written again is
        path.write_bytes(mutate(rng, content))
        try:
            policy = load(path)
        except PolicyFileError as error:
            reasons.add(str(error))
            continue
        accepted += 1
        assert policy.theta.shape == (count_params(policy.config),)
        assert np.isfinite(policy.theta).all()
        assert from_json(to_json(policy.config)) == policy.config
        json.dumps([policy.env_id, policy.env_kwargs, policy.facts], allow_nan=False)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most_before < 100_000  # kB
    assert len(reasons) > 30
    assert 0 < accepted < 2000
