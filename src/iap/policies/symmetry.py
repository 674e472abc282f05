"""Reflection-equivariant steps: the policy acts on the observation and on its mirror image, and averages both.

Robots and their tasks are often symmetric. A random equivariant policy does not drift to one side, a search does not
have to learn everything twice, and θ has the same length as without symmetry.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap._compile import compiled
from iap.policies.step import State, act_on_image, act_on_sensors

__all__ = ["Reflection", "SymmetricState", "Symmetry", "reflect_both", "reflection_of"]


@dataclass(frozen=True)
class Symmetry:
    """How a reflection of left and right changes sensors and actions; fields left empty are taken from the environment.

    Attributes:
        sensors: for each reflected sensor, the number of the sensor it equals, counted from 1; negative if its sign
            changes.
        actions: the same for actions.
        offsets: added to each reflected sensor; all 0 if not given.
    """

    sensors: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()
    offsets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("sensors", "actions"):
            places = getattr(self, name)
            if sorted(map(abs, places)) != list(range(1, len(places) + 1)):
                raise ValueError(
                    f"symmetry.{name} must hold each of 1 to {len(places)} once, with a sign, not {places}"
                )
        if self.offsets and len(self.offsets) != len(self.sensors):
            raise ValueError(f"symmetry.offsets must be {len(self.sensors)}, one a sensor, not {len(self.offsets)}")


class SignedPermutation:
    """A reflection of a vector: a permutation with signs and offsets."""

    def __init__(self, signed: tuple[int, ...], offsets: tuple[float, ...] = ()) -> None:
        numbers = np.array(signed, np.int64)
        self.places = np.abs(numbers) - 1
        self.signs = np.sign(numbers).astype(np.float32)
        self.offsets = np.array(offsets or np.zeros(len(numbers)), np.float32)

    def __call__(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The reflected vector."""
        return (x[self.places] * self.signs + self.offsets).astype(np.float32)


class SymmetricState(NamedTuple):
    """The state of the policy on the observations, and its state on their mirror images."""

    plain: State
    mirrored: State

    @property
    def inputs(self) -> Float[np.ndarray, " d"]:
        """The controller's inputs on the plain observation."""
        return self.plain.inputs

    @property
    def hold_steps(self) -> int:
        """Steps until the next image is encoded, the same for both."""
        return self.plain.hold_steps

    @property
    def frames(self) -> int:
        """The number of images that were encoded."""
        return self.plain.frames

    @property
    def latent(self) -> Float[np.ndarray, " latent"]:
        """The command on the plain observation."""
        return self.plain.latent

    @property
    def seed(self) -> int:
        """The seed of the random numbers."""
        return self.plain.seed


class Reflection(NamedTuple):
    """A reflection in compiled code: permutations with signs, offsets of sensors, and the columns of patches."""

    sensor_places: Any
    sensor_signs: Any
    sensor_offsets: Any
    action_places: Any
    action_signs: Any
    columns: Any


class SymmetricOutcome(NamedTuple):
    """As `Outcome`, with both states; scores are the sum of both, selections alternate."""

    action: Any
    plain: Any
    mirrored: Any
    scores: Any
    selected: Any


def reflection_of(symmetry: Symmetry, sensors: int, actions: int, columns: int) -> Reflection:
    """The reflection of a policy with these numbers of sensors, actions and columns of patches."""
    given, wanted = (len(symmetry.sensors), len(symmetry.actions)), (sensors, actions)
    if given != wanted:
        raise ValueError(f"symmetry must be of {wanted} sensors and actions, not of {given}")
    sensor, action = SignedPermutation(symmetry.sensors, symmetry.offsets), SignedPermutation(symmetry.actions)
    return Reflection(sensor.places, sensor.signs, sensor.offsets, action.places, action.signs, columns)


def reflect_both(
    outcome: Any, mirrored: Any, reflection: Reflection
) -> tuple[np.ndarray, SymmetricState, np.ndarray, np.ndarray]:
    """The mean action, both states, and the attention of both steps, in the plain image's coordinates."""
    hold_steps = (outcome.state.hold_steps + mirrored.state.hold_steps) // 2
    action = mean_with_mirrored(outcome.action, mirrored.action, reflection.action_places, reflection.action_signs)
    states = SymmetricState(
        outcome.state._replace(hold_steps=hold_steps), mirrored.state._replace(hold_steps=hold_steps)
    )
    scores, selected = _both(outcome, mirrored, reflection.columns)
    return action, states, scores, selected


@compiled
def act_on_image_symmetrically(policy, reflection, plain, mirrored, image, sensors, uniforms):
    """A step at which the image and its mirror image are encoded; both hold their commands equally long."""
    one = act_on_image(policy, plain, image, sensors, uniforms)
    other = act_on_image(policy, mirrored, flip(image), reflect_sensors(sensors, reflection), uniforms)
    hold_steps = (one.state.hold_steps + other.state.hold_steps) // 2
    action = mean_with_mirrored(one.action, other.action, reflection.action_places, reflection.action_signs)
    scores, selected = _both(one, other, reflection.columns)
    return SymmetricOutcome(
        action, with_hold_steps(one.state, hold_steps), with_hold_steps(other.state, hold_steps), scores, selected
    )


@compiled
def act_on_sensors_symmetrically(control, reflection, plain, mirrored, sensors):
    """A step at which no image is encoded: the action, and both memories after it."""
    one, plain_after = act_on_sensors(control, plain, sensors)
    other, mirrored_after = act_on_sensors(control, mirrored, reflect_sensors(sensors, reflection))
    action = mean_with_mirrored(one, other, reflection.action_places, reflection.action_signs)
    return action, plain_after, mirrored_after


@compiled
def with_hold_steps(s, hold_steps):
    """The state with another number of steps until the next image."""
    return State(
        s.inputs,
        s.previous,
        s.first,
        s.hidden,
        s.low_hidden,
        s.latent,
        s.keys,
        s.image,
        s.first_image,
        s.frames,
        hold_steps,
        s.seed,
    )


@compiled
def flip(image):
    """An image with left and right exchanged."""
    out = np.empty_like(image)
    rows, columns, channels = image.shape
    for y in range(rows):
        for x in range(columns):
            for c in range(channels):
                out[y, x, c] = image[y, columns - 1 - x, c]
    return out


@compiled
def reflect_sensors(x, reflection):
    """The sensors of the mirror image."""
    out = np.empty(len(reflection.sensor_places), np.float32)
    for i in range(len(out)):
        out[i] = x[reflection.sensor_places[i]] * reflection.sensor_signs[i] + reflection.sensor_offsets[i]
    return out


@compiled
def mean_with_mirrored(action, mirrored, places, signs):
    """The mean of an action and of the reflection of another."""
    out = np.empty(len(action), np.float32)
    for i in range(len(out)):
        out[i] = (action[i] + mirrored[places[i]] * signs[i]) / 2
    return out


@compiled
def _both(one, other, columns):
    """The sum of both scores, and the selected patches of both in turn, each once, as indices of the plain image."""
    scores = np.empty_like(one.scores)
    for start in range(0, len(scores), columns):
        for i in range(columns):
            scores[start + i] = one.scores[start + i] + other.scores[start + columns - 1 - i]
    selected = np.empty(len(one.selected) + len(other.selected), np.int64)
    count = 0
    for i in range(max(len(one.selected), len(other.selected))):
        for is_mirrored in range(2):
            own = other.selected if is_mirrored else one.selected
            if i < len(own):
                index = own[i]
                if is_mirrored:
                    index += columns - 1 - 2 * (index % columns)
                if index not in selected[:count]:
                    selected[count] = index
                    count += 1
    return scores, selected[:count]
