"""Random changes of files, from a few bytes to consistent edits with a correct checksum, repeatable from a seed."""

import copy
import json
import random
import struct
from typing import Any

from iap._tensor_files import CHECKSUM, checksum_of

factor = 1.0  # times as many cases as in the normal tests; the option --fuzz

VALUES: list[Any] = [None, True, -1, 0, 1, 3, 10**5, 2**31, 2**63, 10**12, 10**400, 1e308, 0.5, -0.0, "", "rank", "F64"]
VALUES += [float("nan"), float("inf"), "\ud800", "\x1b[2J\x07", "x" * 100_000, [], [[]], [0, 2**64], [-1], {}]
VALUES += [
    {"kind": "policy"},
    {"kind": []},
    {"kind": "cma-es"},
    [[[[[[[[1]]]]]]]],
    {"": {"": {}}},
    "os:system",
    "../../x",
]


def cases(count: int) -> range:
    """The seeds of the cases of a test."""
    return range(max(1, round(factor * count)))


def edited_bytes(rng: random.Random, content: bytes) -> bytes:
    """A few bytes flipped, replaced, inserted, deleted or copied; sometimes cut off or empty."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        if not data:
            break
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
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data)


def edited_tree(rng: random.Random, tree: Any) -> Any:
    """JSON in which a few nodes are replaced, deleted, or moved to another place."""
    whole = {"tree": copy.deepcopy(tree)}
    for _ in range(rng.randint(1, 3)):
        branch, key = _random_node(rng, whole)
        branch[key] = copy.deepcopy(rng.choice(VALUES))
        if rng.random() < 0.2 and branch is not whole:
            del branch[key]
    return whole.get("tree")


def edited_tensors(rng: random.Random, content: bytes) -> bytes:
    """A safetensors file with changes in its header, in the JSON in it, or in its numbers, and a correct checksum."""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header["__metadata__"]
    [name] = set(metadata) - {CHECKSUM}
    match rng.randrange(3):
        case 0:
            metadata[name] = json.dumps(edited_tree(rng, json.loads(metadata[name])))
        case 1:
            tensors = edited_tree(rng, {key: value for key, value in header.items() if key != "__metadata__"})
            header = {"__metadata__": metadata} | (tensors if isinstance(tensors, dict) else {})
        case _:
            data = edited_bytes(rng, data)
    return sealed(header, data)


def sealed(header: dict[str, Any], data: bytes) -> bytes:
    """A safetensors file with the checksum of its content, as somebody would write who wants it to be read."""
    metadata = header.get("__metadata__")
    if isinstance(metadata, dict):
        texts = {name: text for name, text in metadata.items() if name != CHECKSUM}
        tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
        header = {**header, "__metadata__": texts | {CHECKSUM: checksum_of(tensors, texts, data)}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _random_node(rng: random.Random, tree: Any) -> tuple[Any, Any]:
    """A random node of a tree of JSON: its parent and its key."""
    while True:
        key = rng.choice(list(tree) if isinstance(tree, dict) else range(len(tree)))
        if not isinstance(tree[key], dict | list) or not tree[key] or rng.random() < 0.1:
            return tree, key
        tree = tree[key]
