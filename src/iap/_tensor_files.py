"""Safetensors files with a checksum over their content: policies and checkpoints.

The checksum, SHA-256 of the tensors and of the text beside them, is an entry of the metadata. It finds damage, such as
flipped bits and edited numbers; it does not say who wrote the file.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import safetensors.numpy

CHECKSUM = "sha256"
METADATA = "__metadata__"
LENGTH_BYTES = 8  # of the header, which comes first
ALIGNMENT = 8

# Sizes beyond the range of floats raise an OverflowError, JSON that is nested too deeply a RecursionError.
BAD_CONTENT = (ValueError, TypeError, KeyError, OverflowError, RecursionError, safetensors.SafetensorError)


class Header(NamedTuple):
    """What comes before the numbers.

    Attributes:
        tensors: the name of each tensor and its dtype, shape and data_offsets, not checked yet.
        texts: the metadata without the checksum.
        checksum: None in files of versions that had none.
        data_bytes: the size of what follows.
    """

    tensors: dict[str, Any]
    texts: dict[str, str]
    checksum: str | None
    data_bytes: int


def pack(arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> tuple[bytes, memoryview]:
    """The header and the data of a file; the same content always gives the same bytes."""
    packed = memoryview(safetensors.numpy.save(dict(arrays)))
    start = LENGTH_BYTES + int.from_bytes(packed[:LENGTH_BYTES], "little")
    tensors = json.loads(bytes(packed[LENGTH_BYTES:start]))
    data = packed[start:]
    metadata = {**texts, CHECKSUM: checksum_of(tensors, texts, data)}
    text = json.dumps({METADATA: metadata, **tensors}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text, data


def read_header(file: BinaryIO, size: int, most_bytes: int) -> Header:
    """The header of an open file, if it has one of at most so many bytes."""
    length = int.from_bytes(file.read(LENGTH_BYTES), "little")
    if size < LENGTH_BYTES + length:
        raise ValueError("is truncated, or not a safetensors file")
    if length > most_bytes:
        raise ValueError(f"its header has {length} bytes, more than {most_bytes}")
    tensors = parse_object("header", file.read(length))
    metadata = tensors.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("its metadata must be texts")
    checksum = metadata.pop(CHECKSUM, None)
    return Header(tensors, metadata, checksum, size - LENGTH_BYTES - length)


def read_tensors(file: BinaryIO, header: Header) -> dict[str, np.ndarray]:
    """The tensors of the file that the header was read from, if they have its checksum."""
    file.seek(0)
    content = file.read()
    data = memoryview(content)[len(content) - header.data_bytes :]
    if header.checksum is not None and header.checksum != checksum_of(header.tensors, header.texts, data):
        raise ValueError("is damaged: its content does not have its checksum")
    return safetensors.numpy.load(content)


def parse_object(name: str, text: bytes) -> dict[str, Any]:
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


def checksum_of(tensors: Mapping[str, Any], texts: Mapping[str, str], data: bytes | memoryview) -> str:
    """SHA-256 of the description of the tensors, the texts beside them, and the numbers."""
    described = json.dumps([tensors, texts], sort_keys=True).encode()
    return hashlib.sha256(described + b"\n" + hashlib.sha256(data).digest()).hexdigest()
