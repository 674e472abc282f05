"""The loss of imitation: a student's actions compared with a teacher's labels, in PyTorch."""

from typing import Any

import numpy as np

from iap.distillation.dagger.batches import Axes
from iap.distillation.labelling import Arrays
from iap.distillation.optimisation import load_torch
from iap.policies import Normaliser, PolicyConfig
from iap.policies.params import split

ACTION_SHARE = 0.3  # of the error to the teacher's own pair of values, where a cost map says which others are as good


def act(config: PolicyConfig, normaliser: Normaliser, theta: Any, batch: Arrays, softness: float) -> Any:
    """The actions of a policy without memory on a batch, differentiable in θ, a tensor.

    Args:
        config: of the policy.
        normaliser: of the controller's inputs.
        theta: the parameters.
        batch: encoder inputs and sensors.
        softness: of the selection of patches, see `Encoder.forward_soft`; 0 for that of the acting policy.
    """
    torch = load_torch()
    params = split(config, theta)
    images = torch.from_numpy(np.ascontiguousarray(_floats(batch["images"])))
    features = config.encoder.forward_soft(params["encoder"], images, softness).features
    inputs = torch.cat([features, torch.from_numpy(np.asarray(batch["sensors"], np.float32))], dim=1)
    outputs, _ = config.controller.step(params["controller"], inputs[:, :0], normalised(config, normaliser, inputs))
    return outputs


def normalised(config: PolicyConfig, normaliser: Normaliser, inputs: Any) -> Any:
    """The controller's inputs as the acting policy normalises them."""
    torch = load_torch()
    if not config.normalise:
        return inputs
    mean, scale, clip = normaliser.coefficients
    centred = (inputs - torch.tensor(mean, dtype=torch.float32)) * torch.tensor(scale, dtype=torch.float32)
    return torch.clip(centred, -clip, clip)


def imitation_loss(outputs: Any, batch: Arrays, axes: Axes) -> Any:
    """The mean error of actions over a batch.

    Entries without a cost map have a weighted squared error. A pair with a cost map has its cost, and a share of the
    smooth absolute error to the teacher's pair; the entry that depends on the pair has a smooth absolute error to the
    right value at the pair that the student chose.
    """
    torch = load_torch()
    targets, weights = (torch.from_numpy(np.asarray(batch[name], np.float32)) for name in ("actions", "weights"))
    covered = sorted({entry for entries in axes for entry in entries if entry is not None})
    rest = [entry for entry in range(outputs.shape[1]) if entry not in covered]
    loss = torch.mean(torch.sum(weights[:, rest] * (outputs - targets)[:, rest] ** 2, dim=1))
    if not axes:
        return loss
    costs, dependent = (torch.from_numpy(np.asarray(batch[name], np.float32)) for name in ("costs", "dependent"))
    smooth = torch.nn.functional.smooth_l1_loss
    for number, (row, column, third) in enumerate(axes):
        weight, pair = weights[:, row], [row, column]
        error = _interpolated(costs[:, number], outputs[:, row], outputs[:, column])
        error = error + ACTION_SHARE * smooth(outputs[:, pair], targets[:, pair], reduction="none", beta=0.1).sum(dim=1)
        if third is not None:
            right = _nearest(dependent[:, number], outputs[:, row], outputs[:, column])
            error = error + smooth(outputs[:, third], right, reduction="none", beta=0.1)
        loss = loss + torch.mean(weight * error)
    return loss


def _interpolated(maps: Any, row: Any, column: Any) -> Any:
    """The bilinear interpolation of each map (n, rows, columns) at a pair of values in [−1, 1]."""
    torch = load_torch()
    places = torch.stack([column, row], dim=-1)[:, None, None]  # grid_sample takes (x, y)
    sampled = torch.nn.functional.grid_sample(
        maps[:, None], places, mode="bilinear", padding_mode="border", align_corners=False
    )
    return sampled.reshape(-1)


def _nearest(maps: Any, row: Any, column: Any) -> Any:
    """The value of the cell at each pair."""
    torch = load_torch()
    rows, columns = maps.shape[1:]
    i = torch.clip(((row.detach() + 1) / 2 * rows).long(), 0, rows - 1)
    j = torch.clip(((column.detach() + 1) / 2 * columns).long(), 0, columns - 1)
    return maps[torch.arange(len(maps)), i, j]


def _floats(images: np.ndarray) -> np.ndarray:
    return images if images.dtype == np.uint8 else images.astype(np.float32)
