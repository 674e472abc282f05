"""Policy files: a trained policy in a few kB of safetensors, written atomically; hostile files are refused.

A file holds the tensor `theta` (float32) and, if there is a normaliser, `normaliser.count`, `.mean` and `.m2`. The one
entry of its metadata, `policy`, is JSON: format, version, config, env_id, env_kwargs, facts of the training,
iap_version. A second entry is a checksum. Files of older versions are upgraded when they are read; those before version
5 have no checksum.

All sizes are compared as plain integers before anything of such a size is allocated.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from iap import __version__
from iap._files import open_regular, write_whole
from iap._tensor_files import BAD_CONTENT, pack, parse_object, read_header, read_tensors
from iap._tensor_files import Header as TensorHeader
from iap._validation import printable, require_type
from iap.attention.arrays import require_finite
from iap.policies.config import PolicyConfig
from iap.policies.format.kinds import from_json, to_json
from iap.policies.format.upgrades import UPGRADES, Header, upgrade_header
from iap.policies.normalization import Normaliser
from iap.policies.params import count_params

FORMAT = "iap-policy"
MOST_BYTES = 16 << 20
MOST_HEADER_BYTES = 1 << 20
MOST_INPUTS = MOST_BYTES // 4  # of a controller, whose statistics are vectors of that length
FIRST_WITH_CHECKSUM = 5
BYTES_OF_FLOAT = 4
LONGEST_PATH = 4096
PLAIN_FIELDS = ("env_id", "env_kwargs", "facts", "iap_version")  # of a policy file that are stored as plain JSON
DTYPES = {"theta": "F32", "normaliser.count": "I64", "normaliser.mean": "F64", "normaliser.m2": "F64"}

VERSION = 1 + len(UPGRADES)


class PolicyFileError(ValueError):
    """A file that is not a policy; the message has its name and the reason."""


class EnvReference(NamedTuple):
    """An environment by its id and options, as a policy file names it."""

    id: str
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class PolicyFile:
    """What a policy file holds.

    Attributes:
        config: what was chosen.
        theta: what was learnt, as many numbers as the config asks for.
        normaliser: statistics of the controller's inputs, if there are any.
        env_id: the id of the environment it acts in.
        env_kwargs: the options of that environment, as JSON: tuples become lists.
        facts: of its training (seed, returns, the command …), as JSON.
        iap_version: the version that wrote it.
    """

    config: PolicyConfig
    theta: Float32[np.ndarray, " p"]
    normaliser: Normaliser | None
    env_id: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    iap_version: str = __version__

    def __post_init__(self) -> None:
        require_type("config", self.config, PolicyConfig)
        object.__setattr__(self, "theta", _checked_theta(self.theta, count_params(self.config)))
        _check_normaliser(self.normaliser, self.config.inputs_size)
        for name in ("env_id", "iap_version"):
            text = getattr(self, name)
            if not isinstance(text, str) or not text or not text.isprintable():
                raise ValueError(f"{name} must be a word, not {text!r}")
        for name in ("env_kwargs", "facts"):
            object.__setattr__(self, name, _plain(name, getattr(self, name)))


def save(path: str | Path, policy: PolicyFile) -> None:
    """Write a policy file atomically."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "config": to_json(policy.config),
        **{name: getattr(policy, name) for name in PLAIN_FIELDS},
    }
    tensors = {"theta": policy.theta}
    if policy.normaliser is not None:
        tensors |= {f"normaliser.{name}": x for name, x in policy.normaliser.to_arrays().items()}
    content = pack(tensors, {"policy": json.dumps(header, allow_nan=False)})
    length = sum(map(len, content))
    if len(content[0]) > MOST_HEADER_BYTES or length > MOST_BYTES:
        raise ValueError(f"policy is too large to be loaded again: {length} bytes")
    write_whole(path, *content)


def load(path: str | Path) -> PolicyFile:
    """Read a policy file; any defect is a PolicyFileError. Nothing in it is executed."""
    path = Path(path)
    try:
        with open_regular(path, MOST_BYTES) as (file, size):
            described = read_header(file, size, MOST_HEADER_BYTES)
            stored = _stored_header(described)
            header = upgrade_header(dict(stored))
            if missing := {"config", *PLAIN_FIELDS} - set(header):
                raise ValueError(f"its header lacks {', '.join(sorted(missing))}")
            config = from_json(header["config"])
            _check_sizes(config, described)
            if described.checksum is None and stored["version"] >= FIRST_WITH_CHECKSUM:
                raise ValueError("is damaged: it has no checksum")
            tensors = read_tensors(file, described)
        moments = {name.removeprefix("normaliser."): x for name, x in tensors.items() if name != "theta"}
        return PolicyFile(
            config=config,
            theta=tensors["theta"],
            normaliser=Normaliser.from_arrays(moments) if moments else None,
            **{name: header[name] for name in PLAIN_FIELDS},
        )
    except BAD_CONTENT as error:
        raise _refusal(path, error) from None


def file_version(path: str | Path) -> int:
    """The version of the format of a policy file."""
    path = Path(path)
    try:
        with open_regular(path, MOST_BYTES) as (file, size):
            version = _stored_header(read_header(file, size, MOST_HEADER_BYTES)).get("version")
        if isinstance(version, bool) or not isinstance(version, int):
            raise ValueError(f"its version must be a whole number, not {version!r}")
        return version
    except BAD_CONTENT as error:
        raise _refusal(path, error) from None


def _refusal(path: Path, reason: object) -> PolicyFileError:
    return PolicyFileError(f"{printable(path, LONGEST_PATH)}: {printable(reason)}")


def _stored_header(described: TensorHeader) -> Header:
    """The JSON of the metadata, if the file has the tensors of a policy."""
    if set(described.texts) != {"policy"}:
        raise ValueError("is a safetensors file, but not a policy")
    tensors = described.tensors
    if set(tensors) not in ({"theta"}, set(DTYPES)):
        raise ValueError(f"its tensors must be {', '.join(DTYPES)}, or theta alone, not {', '.join(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, dict) or tensor.get("dtype") != DTYPES[name]:
            raise ValueError(f"{name} must be {DTYPES[name]}, not {tensor}")
    header = parse_object("metadata", described.texts["policy"].encode())
    if header.get("format") != FORMAT:
        raise ValueError(f"its format must be {FORMAT!r}, not {header.get('format')!r}")
    return header


def _check_sizes(config: PolicyConfig, described: TensorHeader) -> None:
    """Refuse tensors of other sizes than the config asks for."""
    inputs, count = config.inputs_size, count_params(config)
    wanted = {"theta": [count], "normaliser.mean": [inputs], "normaliser.m2": [inputs]}
    for name, shape in wanted.items():
        found = described.tensors.get(name, {}).get("shape", shape)
        if found != shape:
            raise ValueError(f"{name} must be of shape ({shape[0]},) for its config, not {found}")
    if count * BYTES_OF_FLOAT > described.data_bytes:
        raise ValueError(f"theta must be of shape ({count},), but the file has {described.data_bytes} bytes of numbers")
    if inputs > MOST_INPUTS:
        raise ValueError(f"the controller must receive at most {MOST_INPUTS} inputs, not {inputs}")


def _checked_theta(theta: np.ndarray, count: int) -> np.ndarray:
    """A read-only copy of θ."""
    if not isinstance(theta, np.ndarray) or theta.dtype != np.float32:
        raise TypeError(f"theta must be a float32 array, not {getattr(theta, 'dtype', theta)}")
    if theta.shape != (count,):
        raise ValueError(f"theta must be of shape ({count},) for its config, not {theta.shape}")
    frozen = require_finite("theta", theta.copy())
    frozen.flags.writeable = False
    return frozen


def _check_normaliser(normaliser: Normaliser | None, inputs: int) -> None:
    if not isinstance(normaliser, Normaliser | None):
        raise TypeError(f"normaliser must be a Normaliser or None, not {normaliser!r}")
    if normaliser is not None and len(normaliser.mean) != inputs:
        raise ValueError(f"normaliser is of {len(normaliser.mean)} numbers; the controller receives {inputs}")


def _plain(name: str, value: object) -> dict[str, Any]:
    """A copy of a mapping, as it is after a round trip through JSON."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {value!r}")
    try:
        return json.loads(json.dumps(dict(value), allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} must be what JSON can hold: {error}") from None
