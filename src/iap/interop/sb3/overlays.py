"""What an agent of Stable-Baselines3 attends to, as pictures, and a callback that writes them to TensorBoard."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.preprocessing import preprocess_obs

from iap._extras import explain_missing
from iap._validation import require_count
from iap.interop.sb3.extractor import OWN, AttentionExtractor, channels_first
from iap.policies import Attention
from iap.viz.overlays import heat_map, overlay

SHORTEST_SIDE = 120  # pixels of a picture


def extractor_of(model: Any) -> AttentionExtractor:
    """The attention extractor of an agent; an actor's own one where it is not shared."""
    policy = model.policy
    for owner in (policy, getattr(policy, "actor", None)):
        extractor = getattr(owner, "features_extractor", None)
        if isinstance(extractor, AttentionExtractor):
            return extractor
    raise TypeError("the model must have an AttentionExtractor: see features_extractor_class of its policy_kwargs")


def attended(model: Any, observation: Any) -> dict[str, tuple[np.ndarray, Attention]]:
    """For each image of the first of a batch of observations: the image (H, W, C), and what the agent attends to."""
    extractor, policy = extractor_of(model), model.policy
    tensors, _ = policy.obs_to_tensor(observation)
    prepared = preprocess_obs(tensors, policy.observation_space, normalize_images=policy.normalize_images)
    found = extractor.attention(prepared)
    entries = tensors if isinstance(tensors, dict) else {OWN: tensors}
    pictures = {}
    for key, attention in found.items():
        image: torch.Tensor = entries[key][0]
        if channels_first(tuple(image.shape)):
            image = image.permute(1, 2, 0)
        pictures[key] = image.cpu().numpy(), attention[0]
    return pictures


def picture(image: np.ndarray, attention: Attention) -> np.ndarray:
    """The selected patches on the image, and beside them the scores."""
    zoom = max(1, -(-SHORTEST_SIDE // min(image.shape[:2])))
    window = attention.grid, attention.patch, attention.stride
    scores = heat_map(image, attention.scores, *window, zoom=zoom)
    if len(attention.selected) == 0:
        return scores
    return np.concatenate([overlay(image, attention.selected, *window, zoom=zoom), scores], axis=1)


class AttentionCallback(BaseCallback):
    """Writes what the agent attends to in its first environment to TensorBoard, as images under "attention".

        model.learn(100_000, callback=AttentionCallback(every=5_000, folder="runs/attention"))

    Attributes:
        every: calls between two pictures; each is one step of every environment.
        folder: of the TensorBoard events; by default that of the model's logger.
    """

    def __init__(self, every: int = 5_000, folder: str | Path | None = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.every, self.folder = require_count("every", every), folder
        self._writer: Any = None

    def _on_training_start(self) -> None:
        extractor_of(self.model)  # an error before training rather than in it
        folder = self.folder or self.logger.dir
        if folder is None:
            raise ValueError("folder must be given: the model's logger writes to none")
        with explain_missing("AttentionCallback"):
            from tensorboardX import SummaryWriter
        self._writer = SummaryWriter(str(folder))

    def _on_step(self) -> bool:
        if self.n_calls % self.every == 0:
            for key, (image, attention) in attended(self.model, self.locals["new_obs"]).items():
                tag = f"attention/{key}" if key else "attention"
                self._writer.add_image(tag, picture(image, attention), self.num_timesteps, dataformats="HWC")
            self._writer.flush()
        return True

    def _on_training_end(self) -> None:
        self._writer.close()
