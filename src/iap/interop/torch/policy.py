"""A policy as a PyTorch module: one differentiable step of a batch of episodes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from iap._observations import sensors_of
from iap.interop.image_formats import require_exported_format
from iap.interop.torch.arrays import Arrays
from iap.interop.torch.encoder import Encoder
from iap.interop.torch.preprocessing import preprocess
from iap.policies import Attention, Normaliser
from iap.policies import Policy as NumpyPolicy
from iap.policies.config import PolicyConfig
from iap.policies.encoders.base import Encoding
from iap.policies.symmetry import SignedPermutation


class State(NamedTuple):
    """The memory of n episodes; the fields of `iap.policies.State` with a leading axis.

    A symmetric policy has 2n rows: those of the images, then those of their mirror images. `image` and `first_image`
    have n rows; they are None until the first step, and where preprocessing does not use them.
    """

    features: torch.Tensor
    previous: torch.Tensor
    first: torch.Tensor
    hidden: torch.Tensor
    low_hidden: torch.Tensor
    latent: torch.Tensor
    frames: torch.Tensor
    hold_steps: torch.Tensor
    image: torch.Tensor | None = None
    first_image: torch.Tensor | None = None


class Policy(nn.Module):
    """Observation and state → action and next state.

    Example:
        >>> import iap, torch
        >>> from iap.interop.torch import Policy
        >>> policy = Policy.of(iap.load_policy("zoo:seek"))
        >>> images = torch.zeros(4, 32, 32, 3, dtype=torch.uint8)
        >>> action, state, encoding = policy(images, torch.zeros(4, 0), policy.initial_state(4))
        >>> action.shape, encoding.scores.shape
        (torch.Size([4, 2]), torch.Size([4, 256]))
    """

    def __init__(self, config: PolicyConfig, params: Any = None, normaliser: Normaliser | None = None) -> None:
        """A module for a config.

        Args:
            config: of the policy.
            params: its named arrays; random ones by default.
            normaliser: statistics of the controller's inputs; none by default.
        """
        from iap.policies import init

        super().__init__()
        if getattr(config.encoder, "keys_every", 1) > 1:
            raise ValueError("encoder.keys_every must be 1: this module computes keys of every image")
        params = init(config, 0) if params is None else params
        self.config = config
        self.encoder = Encoder(config.encoder, config.input_shape, params["encoder"])
        self.controller = Arrays(params["controller"])
        self.low_level = Arrays(params.get("low_level", {}))
        statistics = Normaliser.none(config.inputs_size) if normaliser is None else normaliser
        for name, value in statistics.to_arrays().items():
            self.register_buffer(f"normaliser_{name}", torch.tensor(value))

    @classmethod
    def of(cls, policy: NumpyPolicy) -> "Policy":
        """The module of a policy."""
        require_exported_format(policy.config, "PyTorch module")
        return cls(policy.config, policy.params, policy.normaliser)

    def to_policy(self, like: NumpyPolicy | None = None) -> NumpyPolicy:
        """The policy with the parameters of this module, with the environment and the facts of another one."""
        params: Any = {"encoder": self.encoder.params.arrays(), "controller": self.controller.arrays()}
        if self.config.hierarchy is not None:
            params["low_level"] = self.low_level.arrays()
        env, facts = (None, None) if like is None else (like.env, like.facts)
        return NumpyPolicy(self.config, params, self.normaliser(), env=env, facts=facts)

    def normaliser(self) -> Normaliser:
        """The statistics, which are buffers of this module."""
        names = ("count", "mean", "m2")
        return Normaliser.from_arrays({name: self.get_buffer(f"normaliser_{name}").cpu().numpy() for name in names})

    def initial_state(self, count: int = 1) -> State:
        """The state of `count` episodes at their start."""
        config, hierarchy = self.config, self.config.hierarchy
        rows = count * (1 if config.symmetry is None else 2)
        latent = 0 if hierarchy is None else hierarchy.latent_size
        low = 0 if hierarchy is None else hierarchy.low_level.state_size(latent + config.sensors)
        hidden = config.controller.state_size(config.controller_inputs_size)
        sizes = [(config.features_size,), (config.frames - 1, config.encoding_size), (config.encoding_size,)]
        device = self.get_buffer("normaliser_mean").device
        tensors = [torch.zeros(rows, *size, device=device) for size in [*sizes, (hidden,), (low,), (latent,)]]
        counts = [torch.zeros(n, dtype=torch.int64, device=device) for n in (count, count)]
        return State(*tensors, *counts)

    def forward(self, images: torch.Tensor | None, sensors: torch.Tensor, state: State) -> tuple[Any, State, Encoding]:
        """One step of n episodes: actions (n, k), the next state, and what the encoder computed.

        Args:
            images: (n, H, W, C) uint8 or float32; None for a policy that uses none.
            sensors: (n, number of sensors).
            state: as `initial_state` or the last step returned it.
        """
        encoded = state.hold_steps == 0
        rows = encoded if self.config.symmetry is None else torch.cat([encoded, encoded])
        encoding, after = self._encode(images, state, encoded, rows)
        normal = self._normalise(torch.cat([after.features, self._mirror_sensors(sensors)], dim=1))
        actions, after = self._decide(normal, after, encoded, rows)
        return self._merge(actions), after._replace(frames=state.frames + encoded), encoding

    def _encode(
        self, images: torch.Tensor | None, state: State, encoded: torch.Tensor, rows: torch.Tensor
    ) -> tuple[Encoding, State]:
        config = self.config
        if images is None or not config.encoder.uses_image:
            return Encoding(state.features), state
        starts = (state.frames == 0)[:, None, None, None]
        previous = images if state.image is None else torch.where(starts, images, state.image)
        first = images if state.first_image is None else torch.where(starts, images, state.first_image)
        shown = preprocess(config.preprocessing, images, previous, first)
        if config.symmetry is not None:
            shown = torch.cat([shown, shown.flip(2)])
        encoding = self.encoder(shown)
        after = self._combine(encoding.features, state, rows)
        if config.preprocessing != ("image",):
            kept = torch.where(encoded[:, None, None, None], images, previous)
            after = after._replace(image=kept, first_image=first)
        return encoding, after

    def _combine(self, features: torch.Tensor, state: State, rows: torch.Tensor) -> State:
        """As `combine_frames`; rows without an image stay as they were."""
        config = self.config
        frames = state.frames if config.symmetry is None else torch.cat([state.frames, state.frames])
        first = torch.where((frames == 0)[:, None], features, state.first)
        origin = first if config.relative_to_first_frame else torch.zeros_like(first)
        newest = features - origin
        known = torch.arange(config.frames - 1, device=frames.device)[None] < frames[:, None]
        differences = (newest[:, None] - (state.previous - origin[:, None])) * known[..., None]
        parts = [newest, first] if config.first_frame_features else [newest, differences.flatten(1)]
        combined = torch.cat(parts, dim=1)
        previous = torch.cat([features[:, None], state.previous], dim=1)[:, : config.frames - 1]
        return state._replace(
            features=torch.where(rows[:, None], combined, state.features),
            previous=torch.where(rows[:, None, None], previous, state.previous),
            first=first,
        )

    def _normalise(self, inputs: torch.Tensor) -> torch.Tensor:
        if not self.config.normalise:
            return inputs
        mean, scale, clip = self.normaliser().coefficients
        centre, factor = (torch.tensor(x, device=inputs.device) for x in (mean, scale))
        return ((inputs - centre) * factor).clamp(-clip, clip).to(inputs.dtype)

    def _decide(
        self, normal: torch.Tensor, state: State, encoded: torch.Tensor, rows: torch.Tensor
    ) -> tuple[Any, State]:
        config, hierarchy = self.config, self.config.hierarchy
        if hierarchy is None:
            hold = torch.where(encoded, config.image_every, state.hold_steps) - 1
            action, hidden = config.controller.step(self.controller.tensors(), state.hidden, normal)
            return action, state._replace(hidden=hidden, hold_steps=hold)
        inputs = normal[:, : config.controller_inputs_size]
        outputs, hidden = config.controller.step(self.controller.tensors(), state.hidden, inputs)
        share = (outputs[:, -1].detach().double() + 1) / 2
        steps = (share * (hierarchy.max_command_steps - 1)).round().to(torch.int64).reshape(-1, len(encoded))
        hold = torch.where(encoded, 1 + steps.sum(0) // len(steps), state.hold_steps) - 1
        latent = torch.where(rows[:, None], outputs[:, :-1], state.latent)
        low_inputs = torch.cat([latent, normal[:, config.features_size :]], dim=1)
        action, low_hidden = hierarchy.low_level.step(self.low_level.tensors(), state.low_hidden, low_inputs)
        hidden = torch.where(rows[:, None], hidden, state.hidden)
        return action, state._replace(hidden=hidden, low_hidden=low_hidden, latent=latent, hold_steps=hold)

    def _mirror_sensors(self, sensors: torch.Tensor) -> torch.Tensor:
        symmetry = self.config.symmetry
        if symmetry is None:
            return sensors
        return torch.cat([sensors, _reflected(sensors, SignedPermutation(symmetry.sensors, symmetry.offsets))])

    def _merge(self, actions: torch.Tensor) -> torch.Tensor:
        symmetry = self.config.symmetry
        if symmetry is None:
            return actions
        plain, mirrored = actions.chunk(2)
        return (plain + _reflected(mirrored, SignedPermutation(symmetry.actions))) / 2


def _reflected(x: torch.Tensor, reflection: SignedPermutation) -> torch.Tensor:
    signs, offsets = (torch.tensor(y, device=x.device) for y in (reflection.signs, reflection.offsets))
    return x[:, torch.tensor(reflection.places, device=x.device)] * signs + offsets


class Actor:
    """A module acting on one observation at a time: `reset`, `needs_image` and `act` as `iap.Policy` has them."""

    def __init__(self, module: Policy) -> None:
        self.module, self.inputs_size = module, module.config.inputs_size

    def reset(self, seed: int = 0) -> State:
        """The state at the start of an episode; the seed is not used."""
        return self.module.initial_state(1)

    def needs_image(self, state: State) -> bool:
        """Whether the next step encodes an image."""
        return self.module.config.encoder.uses_image and int(state.hold_steps[0]) == 0

    @torch.no_grad()
    def act(self, state: State, observation: Mapping[str, Any]) -> tuple[np.ndarray, State, Attention | None]:
        """The action, the next state, and the attention (None if no image was encoded)."""
        encodes, config = self.needs_image(state), self.module.config
        images = torch.tensor(np.asarray(observation["image"]))[None] if config.encoder.uses_image else None
        action, after, encoding = self.module(images, torch.tensor(sensors_of(observation))[None], state)
        window = config.encoder.window(config.input_shape)
        if not encodes or window is None or encoding.scores is None:
            return action[0].numpy(), after, None
        scores, selected = encoding.scores.numpy(), encoding.selected
        patches = [] if selected is None else list(selected.numpy())
        if len(scores) > 1:
            columns = window.grid.columns
            scores = scores / np.maximum(np.abs(scores).max(1, keepdims=True), 1e-30)
            scores[1] = scores[1].reshape(window.grid)[:, ::-1].ravel()
            patches = [patches[0], patches[1] + columns - 1 - 2 * (patches[1] % columns)] if patches else []
        chosen = np.unique(np.concatenate(patches)) if patches else np.empty(0, np.int64)
        return action[0].numpy(), after, Attention(scores.sum(0), chosen, *window)
