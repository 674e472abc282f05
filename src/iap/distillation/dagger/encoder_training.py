"""Training of an encoder on labelled images: action, state and keypoints, with batch norm that is folded in the end."""

from typing import Any

import numpy as np

from iap.attention.patches import Grid
from iap.distillation.bank import Bank
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.distillation.labelling import Arrays
from iap.distillation.optimisation import load_torch, one_cycle
from iap.policies import Normaliser, PolicyConfig
from iap.policies.params import split

STATISTICS_RATE = 0.05  # of the running statistics of batch norm
CENTROID_WEIGHT = 5.0  # of the keypoints' places, beside the cross-entropy of their cells
VALIDATION_SHARE = 20  # one episode in so many is held back
VALIDATED = 1024  # images
LARGEST_GRADIENT = 1.0

State = dict[str, Any]


class EncoderTraining:
    """The encoder's part of θ, the layers that read its features, and the optimiser.

    Attributes:
        done: updates so far.
    """

    def __init__(self, options: EncoderPretraining, policy: PolicyConfig, bank: Bank, theta: np.ndarray, seed: int):
        torch = self._torch = load_torch()
        self._options, self._policy, self._bank = options, policy, bank
        self._grid = _grid_of(policy)
        self._theta = np.asarray(theta, np.float32)
        params = split(policy, self._theta)["encoder"]
        self._encoder = {name: torch.tensor(array, requires_grad=True) for name, array in params.items()}
        self._state_scale = Normaliser.of(bank.column("state")) if "state" in bank.names else None
        self._readers = self._init_readers(seed)
        self._statistics: State = {}
        groups = [*self._encoder.values(), *self._readers.values()]
        self._optimiser = torch.optim.AdamW(groups, lr=options.learning_rate, weight_decay=options.weight_decay)
        self.done = 0
        episodes = bank.episodes()
        held_back = [range(*bounds) for number, bounds in enumerate(episodes) if number % VALIDATION_SHARE == 0]
        kept = [range(*bounds) for number, bounds in enumerate(episodes) if number % VALIDATION_SHARE != 0]
        self._validation = np.concatenate([np.array(steps) for steps in held_back])[:VALIDATED]
        self._training = np.concatenate([np.array(steps) for steps in kept])

    def step(self, rng: np.random.Generator) -> float:
        """One update; the loss."""
        for group in self._optimiser.param_groups:
            group["lr"] = self._options.learning_rate * one_cycle(self.done / self._options.updates)
        batch = self._bank.rows(rng.choice(self._training, self._options.batch))
        encoding, used = self._encode(batch, None)
        loss = self._loss(encoding, batch)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        everything = [*self._encoder.values(), *self._readers.values()]
        self._torch.nn.utils.clip_grad_norm_(everything, LARGEST_GRADIENT)
        self._optimiser.step()
        self._track(used)
        self.done += 1
        return float(loss.detach())

    def unexplained(self) -> float:
        """The share of the actions' variance on held-back episodes that the features do not explain."""
        return self.errors(self._bank, self._validation)["actions"]

    def errors(self, bank: Bank, rows: np.ndarray) -> dict[str, float]:
        """The errors on some rows of a dataset.

        Returns:
            actions: the unexplained share of their variance.
            state: the mean unexplained share of its numbers, if there is one.
            keypoints: the mean distance to those in view in pixels, if there are some.
        """
        errors: dict[str, list[np.ndarray]] = {}
        targets: dict[str, list[np.ndarray]] = {}
        with self._torch.no_grad():
            for part in np.array_split(rows, -(-len(rows) // 128)):
                batch = bank.rows(part)
                encoding, _ = self._encode(batch, self._statistics)
                for name, (estimate, target) in self._estimates(encoding, batch).items():
                    errors.setdefault(name, []).append(estimate.numpy() - target)
                    targets.setdefault(name, []).append(target)
        joined = {name: (np.concatenate(errors[name]), np.concatenate(targets[name])) for name in errors}
        squares = {name: (np.square(error).sum(axis=0), _spread(target)) for name, (error, target) in joined.items()}
        error, spread = squares["actions"]
        shares = {"actions": error.sum() / spread.sum()}
        if "state" in squares:
            error, spread = squares["state"]
            shares["state"] = np.mean(error[spread > 0] / spread[spread > 0])
        if "keypoints" in joined:
            half = np.array(self._policy.image_shape[:2]) / 2
            distances = np.linalg.norm(joined["keypoints"][0] * half, axis=-1)
            shares["keypoints"] = distances[(np.abs(joined["keypoints"][1]) <= 1).all(axis=-1)].mean()
        return {name: float(value) for name, value in shares.items()}

    def _estimates(self, encoding: Any, batch: Arrays) -> dict[str, tuple[Any, np.ndarray]]:
        """What the features estimate, and what is right."""
        found = {"actions": (self._action(encoding.features), batch["actions"])}
        if self._state_scale is not None:
            found["state"] = self._state(encoding.features), self._scaled_state(batch)
        if self._options.keypoints:
            heads = 2 * len(self._options.keypoints)
            places = batch["keypoints"].reshape(len(batch["keypoints"]), heads, 2)
            found["keypoints"] = self._centroids(encoding), places
        return found

    def vector(self) -> np.ndarray:
        """θ with the encoder's parameters, batch norm folded in."""
        theta = self._theta.copy()
        with self._torch.no_grad():
            params = self._policy.encoder.fold(self._encoder, self._statistics) if self._statistics else self._encoder
        stop = sum(int(np.prod(x.shape)) for x in self._encoder.values())
        theta[:stop] = np.concatenate([params[name].detach().numpy().ravel() for name in self._encoder])
        return theta

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a continued training needs."""
        arrays = {f"encoder.{name}": x.detach().numpy() for name, x in self._encoder.items()}
        arrays |= {f"reader.{name}": x.detach().numpy() for name, x in self._readers.items()}
        for name, pair in self._statistics.items():
            arrays |= {f"statistics.{name}.{k}": x.numpy() for k, x in enumerate(pair)}
        for number, tensor in enumerate([*self._encoder.values(), *self._readers.values()]):
            for name, value in self._optimiser.state[tensor].items():
                arrays[f"adam.{number}.{name}"] = np.atleast_1d(value.numpy())
        return {name: np.array(x) for name, x in arrays.items()}

    def restore(self, arrays: Arrays, done: int) -> None:
        """Continue from a checkpoint."""
        torch, self.done = self._torch, done
        with torch.no_grad():
            for prefix, tensors in (("encoder", self._encoder), ("reader", self._readers)):
                for name, tensor in tensors.items():
                    tensor.copy_(torch.from_numpy(arrays[f"{prefix}.{name}"]))
        names = {key.split(".", 1)[1].rpartition(".")[0] for key in arrays if key.startswith("statistics.")}
        for name in sorted(names):
            first, second = (torch.from_numpy(arrays[f"statistics.{name}.{k}"].copy()) for k in range(2))
            self._statistics[name] = first, second
        for number, tensor in enumerate([*self._encoder.values(), *self._readers.values()]):
            state = {}
            for name in ("step", "exp_avg", "exp_avg_sq"):
                value = torch.from_numpy(arrays[f"adam.{number}.{name}"].copy())
                state[name] = value.reshape(()) if name == "step" else value
            self._optimiser.state[tensor] = state

    def _init_readers(self, seed: int) -> dict[str, Any]:
        """Linear layers from features to hidden units, actions and state."""
        torch, options = self._torch, self._options
        generator = torch.Generator().manual_seed(seed)
        sizes = {
            "hidden": (options.hidden, self._policy.encoding_size),
            "action": (self._policy.actions, options.hidden),
        }
        if self._state_scale is not None:
            sizes["state"] = (len(self._state_scale.mean), self._policy.encoding_size)
        readers = {}
        for name, (rows, columns) in sizes.items():
            weight = torch.randn(rows, columns, generator=generator) / columns**0.5
            readers |= {
                f"{name}.weight": weight.requires_grad_(),
                f"{name}.bias": torch.zeros(rows, requires_grad=True),
            }
        return readers

    def _encode(self, batch: Arrays, statistics: State | None) -> tuple[Any, State]:
        images = self._torch.from_numpy(np.ascontiguousarray(batch["images"]))
        return self._policy.encoder.forward_normalised(self._encoder, images, statistics)

    def _action(self, features: Any) -> Any:
        readers, torch = self._readers, self._torch
        hidden = torch.tanh(features @ readers["hidden.weight"].T + readers["hidden.bias"])
        return torch.tanh(hidden @ readers["action.weight"].T + readers["action.bias"])

    def _state(self, features: Any) -> Any:
        return features @ self._readers["state.weight"].T + self._readers["state.bias"]

    def _scaled_state(self, batch: Arrays) -> np.ndarray:
        assert self._state_scale is not None
        mean, scale, _ = self._state_scale.coefficients
        return ((batch["state"] - mean) * scale).astype(np.float32)

    def _centroids(self, encoding: Any) -> Any:
        """Row and column of the heads that keypoints supervise, from −1 to 1."""
        heads = 2 * len(self._options.keypoints)
        features = encoding.features.reshape(len(encoding.features), -1, self._policy.encoding_size // self._heads)
        return features[:, :heads, :2]

    def _loss(self, encoding: Any, batch: Arrays) -> Any:
        torch, options = self._torch, self._options
        smooth = torch.nn.functional.smooth_l1_loss
        loss = torch.mean((self._action(encoding.features) - torch.from_numpy(batch["actions"])) ** 2)
        if self._state_scale is not None:
            target = torch.from_numpy(self._scaled_state(batch))
            loss = loss + options.state_weight * smooth(self._state(encoding.features), target)
        if options.keypoints:
            loss = loss + options.keypoint_weight * self._keypoint_loss(encoding, batch["keypoints"])
        return loss

    def _keypoint_loss(self, encoding: Any, keypoints: np.ndarray) -> Any:
        """Cross-entropy of each head's map at its keypoint's cell and error of its centroid, where it is in view."""
        torch, heads = self._torch, 2 * len(self._options.keypoints)
        places = torch.from_numpy(keypoints.reshape(len(keypoints), heads, 2))
        visible = (places.abs() <= 1).all(dim=-1).float()
        rows, columns = self._grid
        size = torch.tensor([rows, columns])
        cells = torch.clip(((places + 1) / 2 * size).long(), torch.zeros(2, dtype=torch.long), size - 1)
        index = (cells[..., 0] * columns + cells[..., 1])[..., None]
        entropy = -torch.gather(encoding.log_maps[:, :heads], 2, index)[..., 0]
        smooth = torch.nn.functional.smooth_l1_loss
        errors = smooth(self._centroids(encoding), places.clip(-1, 1), reduction="none").sum(dim=-1)
        return torch.sum(visible * (entropy + CENTROID_WEIGHT * errors)) / visible.sum().clip(1)

    @property
    def _heads(self) -> int:
        return self._policy.encoder.heads  # pyright: ignore[reportAttributeAccessIssue]

    def _track(self, used: State) -> None:
        """Running means of the statistics of batch norm."""
        for name, pair in used.items():
            now = tuple(x.detach().clone() for x in pair)
            before = self._statistics.get(name, now)
            first, second = (b + STATISTICS_RATE * (n - b) for b, n in zip(before, now, strict=True))
            self._statistics[name] = first, second


def _spread(target: np.ndarray) -> np.ndarray:
    """The sum of squares of each column around its mean."""
    return np.square(target - target.mean(axis=0)).sum(axis=0)


def _grid_of(policy: PolicyConfig) -> Grid:
    window = policy.encoder.window(policy.input_shape)
    return Grid(1, 1) if window is None else window.grid
