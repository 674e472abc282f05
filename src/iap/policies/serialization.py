"""Policy files: a trained policy in a few kB of safetensors, written atomically; hostile files are refused.

A file holds the tensor `theta` (float32) and, if there is a normaliser, `normaliser.count`, `.mean` and `.m2`. The one
entry of its metadata, `policy`, is JSON: format, version, config, env_id, env_kwargs, facts of the training,
iap_version. Files of older versions are upgraded when they are read.
"""

import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from jaxtyping import Float32

from iap import __version__
from iap._files import write_whole
from iap._validation import require_type
from iap.attention.arrays import require_finite
from iap.policies.config import PolicyConfig
from iap.policies.kinds import from_json, to_json
from iap.policies.normalization import Normaliser
from iap.policies.params import count_params
from iap.policies.upgrades import UPGRADES, Header, upgrade_header

FORMAT = "iap-policy"
MOST_BYTES = 64 << 20
MOST_HEADER_BYTES = 1 << 20
LENGTH_BYTES = 8  # of the header, which comes first in a safetensors file
LONGEST_REASON = 300
PLAIN_FIELDS = ("env_id", "env_kwargs", "facts", "iap_version")  # of a policy file that are stored as plain JSON
DTYPES = {"theta": "F32", "normaliser.count": "I64", "normaliser.mean": "F64", "normaliser.m2": "F64"}

# Sizes beyond the range of floats raise an OverflowError, JSON that is nested too deeply a RecursionError.
BAD_CONTENT = (ValueError, TypeError, OverflowError, RecursionError, safetensors.SafetensorError)

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
    content = safetensors.numpy.save(tensors, {"policy": json.dumps(header, allow_nan=False)})
    if _header_length(content) > MOST_HEADER_BYTES or len(content) > MOST_BYTES:
        raise ValueError(f"policy is too large to be loaded again: {len(content)} bytes")
    write_whole(path, content)


def load(path: str | Path) -> PolicyFile:
    """Read a policy file; any defect is a PolicyFileError. Nothing in it is executed."""
    path = Path(path)
    content = _read(path)
    try:
        header = upgrade_header(_header_of(content))
        if missing := {"config", *PLAIN_FIELDS} - set(header):
            raise ValueError(f"its header lacks {', '.join(sorted(missing))}")
        tensors = safetensors.numpy.load(content)
        moments = {name.removeprefix("normaliser."): x for name, x in tensors.items() if name != "theta"}
        return PolicyFile(
            config=from_json(header["config"]),
            theta=tensors["theta"],
            normaliser=Normaliser.from_arrays(moments) if moments else None,
            **{name: header[name] for name in PLAIN_FIELDS},
        )
    except BAD_CONTENT as error:
        raise _refusal(path, error) from None


def file_version(path: str | Path) -> int:
    """The version of the format of a policy file."""
    path = Path(path)
    content = _read(path)
    try:
        version = _header_of(content).get("version")
        if isinstance(version, bool) or not isinstance(version, int):
            raise ValueError(f"its version must be a whole number, not {version!r}")
        return version
    except BAD_CONTENT as error:
        raise _refusal(path, error) from None


def _refusal(path: Path, reason: object) -> PolicyFileError:
    text = f"{path}: {str(reason)[:LONGEST_REASON]}"
    return PolicyFileError("".join(c if c.isprintable() else "�" for c in text))  # no control sequences of terminals


def _read(path: Path) -> bytes:
    """The file's bytes, if it is a regular file and not too large."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _refusal(path, "is a folder, not a policy file")
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device may never end
            raise _refusal(path, "is not a regular file")
        if status.st_size > MOST_BYTES:
            raise _refusal(path, f"is larger than {MOST_BYTES >> 20} MB, which no policy is")
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise _refusal(path, f"cannot be read: {error.strerror}") from None


def _header_length(content: bytes) -> int:
    return int.from_bytes(content[:LENGTH_BYTES], "little")


def _header_of(content: bytes) -> Header:
    """The JSON of the metadata, if the file has the tensors of a policy."""
    length = _header_length(content)
    if len(content) < LENGTH_BYTES + length:
        raise ValueError("is truncated, or not a safetensors file")
    if length > MOST_HEADER_BYTES:
        raise ValueError(f"its header has {length} bytes, more than {MOST_HEADER_BYTES}")
    tensors = _parsed("header", content[LENGTH_BYTES : LENGTH_BYTES + length])
    metadata = tensors.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("policy"), str):
        raise ValueError("is a safetensors file, but not a policy")
    if set(tensors) not in ({"theta"}, set(DTYPES)):
        raise ValueError(f"its tensors must be {', '.join(DTYPES)}, or theta alone, not {', '.join(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, dict) or tensor.get("dtype") != DTYPES[name]:
            raise ValueError(f"{name} must be {DTYPES[name]}, not {tensor}")
    header = _parsed("metadata", metadata["policy"].encode())
    if header.get("format") != FORMAT:
        raise ValueError(f"its format must be {FORMAT!r}, not {header.get('format')!r}")
    return header


def _parsed(name: str, text: bytes) -> dict[str, Any]:
    """A JSON object in which no key occurs twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key comes twice")
        return dict(pairs)

    try:
        data = json.loads(text.decode("utf-8"), object_pairs_hook=once)
    except ValueError as error:
        raise ValueError(f"its {name} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"its {name} must be a JSON object, not {type(data).__name__}")
    return data


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
