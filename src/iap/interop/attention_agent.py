"""AttentionAgent's published parameters (Tang et al. 2020) as a policy file."""

import io
import zipfile
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from iap.policies import LSTM, AttentionAgent, PolicyConfig, PolicyFile, count_params

IMAGE_SHAPE = (96, 96, 3)
ACTIONS = 3  # steering, gas, brake
MOST_BYTES = 1 << 20  # when unpacked; the published vector has 15 kB


def import_attention_agent(path: str | Path, env_id: str = "CarRacing-v3", *, linear: bool = False) -> PolicyFile:
    """The policy whose θ is the array `params` of an .npz file.

    The published order is that of θ: bias, then weight, of the query and the key layer; bias_hh, bias_ih, weight_hh and
    weight_ih of the LSTM, gates i, f, g, o; bias and weight of the output.

    Args:
        path: the .npz file.
        env_id: the environment to act in, with images of 96×96×3 and three actions.
        linear: whether linear, row-normalised attention replaces the exact one.
    """
    config = PolicyConfig(IMAGE_SHAPE, 0, ACTIONS, AttentionAgent(linear=linear), LSTM(), normalise=False)
    theta = _read(Path(path), count_params(config))
    return PolicyFile(config, theta, None, env_id, facts={"imported": "AttentionAgent"})


def _read(path: Path, count: int) -> Float32[np.ndarray, " p"]:
    """The array `params`, checked; nothing is unpickled."""
    content = io.BytesIO(path.read_bytes())
    try:
        with zipfile.ZipFile(content) as archive:
            unpacked = archive.getinfo("params.npy").file_size
        if unpacked > MOST_BYTES:
            raise ValueError(f"params has {unpacked} bytes")
        content.seek(0)
        with np.load(content, allow_pickle=False) as arrays:
            params = arrays["params"]
    except Exception as error:  # zipfile, zlib, tokenize and NumPy raise different errors
        raise ValueError(f"{path} must be an .npz file with the array params ({error})") from None
    if params.dtype != np.float32:
        raise ValueError(f"params of {path} must be float32, not {params.dtype}")
    if params.shape != (count,):
        raise ValueError(f"params of {path} must be of shape ({count},), not {params.shape}")
    if not np.isfinite(params).all():
        raise ValueError(f"params of {path} must be finite, but number {np.isfinite(params).argmin()} is not")
    return params
