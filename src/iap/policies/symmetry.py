"""A policy that does in a mirrored world the mirror image of what it does in this one, whatever its parameters."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.policies.normalization import Normaliser
from iap.policies.policy import Policy
from iap.policies.rankers import Ranker
from iap.policies.specs import PolicyConfig
from iap.policies.state import Actor, Attention, State
from iap.policies.symmetry_kernels import (
    flipped,
    follow_both,
    in_mirror,
    in_turns,
    look_both,
    mean_with_mirrored,
    sum_with_mirrored,
)
from iap.policies.trees import Params


class TwoStates(NamedTuple):
    """The memory of a policy in this world, and in the mirrored one."""

    here: State
    there: State

    @property
    def inputs(self) -> Float[np.ndarray, " d"]:
        """What the controller received in this world."""
        return self.here.inputs


class SymmetricPolicy:
    """Acts on the observation and on its mirror image, and takes the mean of one action and the other mirrored back.

    Robots and their tasks are often symmetric: so a random policy does not veer to one side, evolution need not learn
    everything twice, and θ is as short as without.
    """

    _following: tuple[Any, ...] = ()
    _commanding: tuple[Any, ...] = ()

    def __init__(self, spec: PolicyConfig, params: Params, normaliser: Normaliser | None = None) -> None:
        assert config.symmetry is not None
        told, needed = (len(config.symmetry.sensors), len(config.symmetry.actions)), (spec.sensors, spec.actions)
        if told != needed:
            raise ValueError(f"mirror must tell of {needed} sensors and actions, not of {told}")
        self.spec = spec
        self._policy = Policy(spec, params, normaliser)
        self.inputs_size = self._policy.inputs_size
        self._mirror_sensors = sensors = SignedOrder(config.symmetry.sensors, config.symmetry.offsets)
        self._mirror_action = action = SignedOrder(config.symmetry.actions)
        # What a step takes that is one compiled call for both worlds; nothing if it is more than that.
        mirror = sensors.places, sensors.signs, sensors.offsets, action.places, action.signs
        policy, level, encoder = self._policy, self._policy.hierarchy, self._policy.encoder
        if level.follows is not None:
            self._following = policy.features_size, policy.normal, level.follows, mirror
        of_one_image = policy.forgets and spec.preprocessing == ("image",)
        if level.commands is not None and isinstance(encoder, Ranker) and encoder.glances and of_one_image:
            self._glance, self._patches = encoder.glance, (encoder.grid, encoder.patch, encoder.stride)
            self._commanding = policy.normal, level.commands, mirror

    def begin(self, seed: int = 0) -> TwoStates:
        """The states at the start of an episode."""
        return TwoStates(self._policy.begin(seed), self._policy.begin(seed))

    def needs_image(self, state: TwoStates) -> bool:
        """Whether the next step looks at the image, which it does in both worlds or in none."""
        return self._policy.needs_image(state.here)

    def act(
        self, state: TwoStates, observation: Mapping[str, Any]
    ) -> tuple[Float[np.ndarray, " k"], TwoStates, Attention | None]:
        """The action in [−1, 1], the next states, and what was attended to in both worlds, drawn in this one."""
        policy, hold = self._policy, state.here.hold
        if hold > 0 and self._following:
            return self._follow(state, policy.sensors(observation))
        if hold == 0 and self._commanding:
            return self._command(state, policy.image(observation), policy.sensors(observation))
        mirrored = {"sensors": self._mirror_sensors(np.asarray(observation["sensors"], np.float32))}
        if self.needs_image(state) and isinstance(image := observation["image"], np.ndarray):
            mirrored["image"] = flipped(image)
        action, here, seen = policy.act(state.here, observation)
        action_there, there, seen_there = policy.act(state.there, mirrored)
        if here.hold != there.hold:  # both look at the same steps, so that an image serves twice
            hold = (here.hold + there.hold) // 2
            here, there = here._replace(hold=hold), there._replace(hold=hold)
        both = mean_with_mirrored(action, action_there, self._mirror_action.places, self._mirror_action.signs)
        return both, TwoStates(here, there), _both(seen, seen_there)

    def _follow(self, state: TwoStates, sensors: np.ndarray) -> tuple[Float[np.ndarray, " k"], TwoStates, None]:
        """`act`, where the image is not looked at."""
        here, there = state
        inputs, inputs_there, action = follow_both(
            here.inputs, there.inputs, here.latent, there.latent, sensors, *self._following
        )
        looks, hold = here.looks, here.hold - 1
        after = TwoStates(
            _after(here, inputs, here.latent, looks, hold), _after(there, inputs_there, there.latent, looks, hold)
        )
        return action, after, None

    def _command(
        self, state: TwoStates, image: np.ndarray, sensors: np.ndarray
    ) -> tuple[Float[np.ndarray, " k"], TwoStates, Attention]:
        """`act`, where it is."""
        inputs, inputs_there, latent, latent_there, steps, action, scores, chosen = look_both(
            self._glance(image), sensors, *self._commanding
        )
        looks, hold = state.here.looks + 1, steps - 1
        after = TwoStates(
            _after(state.here, inputs, latent, looks, hold),
            _after(state.there, inputs_there, latent_there, looks, hold),
        )
        return action, after, Attention(scores, chosen, *self._patches)


def _after(state: State, inputs: np.ndarray, latent: np.ndarray, looks: int, hold: int) -> State:
    return State(inputs, state.readouts, state.hidden, latent, state.keys, state.images, looks, hold, state.seed)


class SignedOrder:
    """What a mirror does to a vector: numbers change places, signs, and what they are counted from."""

    def __init__(self, signed: tuple[int, ...], offsets: tuple[float, ...] = ()) -> None:
        numbers = np.array(signed, np.int64)
        self.places = np.abs(numbers) - 1
        self.signs = np.sign(numbers).astype(np.float32)
        self.offsets = np.array(offsets or np.zeros(len(numbers)), np.float32)

    def __call__(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The vector in the mirror."""
        return in_mirror(x, self.places, self.signs, self.offsets)


def _both(here: Attention | None, there: Attention | None) -> Attention | None:
    """What was attended to in both worlds, in this one's places."""
    if here is None or there is None:
        return None
    columns = there.grid.columns
    scores = sum_with_mirrored(here.scores, there.scores, columns)
    return here._replace(scores=scores, chosen=in_turns(here.selected, there.selected, columns))


def build_policy(spec: PolicyConfig, params: Params, normaliser: Normaliser | None = None) -> Actor:
    """The policy that a spec asks for."""
    return (Policy if config.symmetry is None else SymmetricPolicy)(spec, params, normaliser)
