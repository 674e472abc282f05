"""What eyes that are taught by gradients look at: images, and where the simulator knows things to be in them.

Robots in any pose, before many backgrounds; where there is a policy that was told where things are, what that meets on
its way; and what the taught policy itself meets: eyes that take a wrong place for the right one lead there.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

from iap.distillation.es_pretraining import TEACHING, Told
from iap.envs.core import to_action
from iap.envs.protocols import Keypoints, LazyRendering, RandomizableState, require_protocol
from iap.evaluation.evaluate import locate_policy
from iap.policies import LSTM, Blind, Policy, PolicyConfig, Quadratic
from iap.policies.params import unflatten
from iap.policies.preprocessing import show
from iap.policies.serialization import PolicyFile
from iap.rollouts import EnvConfig
from iap.training.config import TRAINING_SEEDS, Distillation, TrainConfig
from iap.training.returns import draw_seeds

HELD_BACK = 10  # one pair of episodes in so many: one of any poses, one of what a told policy meets
LONGEST_EPISODE = 120  # steps of an episode that are looked at; the shortest of the suite have 125

Row = tuple[np.ndarray, np.ndarray]  # what is seen, and the places
Lesson = tuple[np.ndarray, np.ndarray]  # the same of successive looks


class Lessons(NamedTuple):
    """Images of each lesson's looks, with the episode's first if that is recalled; places; the episode's number."""

    seen: UInt8[np.ndarray, "n looks 1+recalled H W C"]
    places: Float[np.ndarray, "n looks s"]
    episodes: Int[np.ndarray, " n"]

    def joined(self, others: "Lessons") -> "Lessons":
        """These, then the others."""
        return Lessons(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))

    def parted(self) -> tuple["Lessons", "Lessons"]:
        """Those to learn from, and those of one pair of episodes in ten, by which what was learnt is judged."""
        held_back = self.episodes // 2 % HELD_BACK == 0
        known, new = (Lessons(*(part[chosen] for part in self)) for chosen in (~held_back, held_back))
        return known, new


def told_policy(config: TrainConfig, wanted: Distillation) -> PolicyFile | None:
    """The policy whose controller is to be the low level or to teach it, once that is known to fit."""
    if wanted.teacher is None:
        return None
    policy, _ = locate_policy(wanted.teacher)
    level = config.policy.hierarchy
    assert level is not None
    if isinstance(level.low, LSTM):
        as_wanted, controller = True, "any controller"
    else:
        as_wanted = isinstance(level.low, Quadratic) and policy.spec.controller == level.low
        controller = f"the controller {level.low}"
    sizes = policy.spec.sensors, policy.spec.actions
    if sizes != (level.latent, config.policy.actions) or not isinstance(policy.spec.encoder, Blind) or not as_wanted:
        raise ValueError(
            f"teach.teacher must be a blind policy with {level.latent} sensors and {controller}, which "
            f"{wanted.teacher} is not"
        )
    return policy


def require_teacher(env: Any) -> None:
    """Refuse an environment that does not tell where things are."""
    require_protocol(env, RandomizableState)
    require_protocol(env, Keypoints)


def collect(config: TrainConfig, wanted: Distillation, told: PolicyFile | None, tell_about: Told) -> Lessons:
    """Lessons before the backgrounds of training: of any poses, and every other of a told policy's, if there is one."""
    policy = None if told is None else Policy(told.spec, unflatten(told.spec, told.theta), told.normaliser)
    env: Any = _telling(config.env, wanted, told).make()

    def one(seed: int, number: int, rng: np.random.Generator) -> Iterator[Lesson]:
        if policy is not None and number % 2 == 1:
            return _met(env, config, wanted, policy, seed, rng)
        return _scattered(env, config, wanted, seed, rng)

    return _lessons(env, config, wanted, 0, one, lambda share: tell_about("looking at poses", share))


def collect_own(config: TrainConfig, wanted: Distillation, policy: Policy, time: int, tell_about: Told) -> Lessons:
    """What the policy that is being taught meets, for the n-th time."""
    env: Any = config.env.make()

    def one(seed: int, _number: int, rng: np.random.Generator) -> Iterator[Lesson]:
        return _met(env, config, wanted, policy, seed, rng)

    return _lessons(env, config, wanted, time, one, lambda share: tell_about("looking at its own episodes", share))


def _lessons(
    env: Any,
    config: TrainConfig,
    wanted: Distillation,
    time: int,
    one: Callable[[int, int, np.random.Generator], Iterator[Lesson]],
    tell_about: Callable[[float], None],
) -> Lessons:
    """An equal share of all lessons, from episodes of their own."""
    episodes = -(-wanted.samples // ((1 + wanted.student_rounds) * wanted.samples_per_episode))
    first, *seeds = draw_seeds(config.seed, TEACHING + 2 + time, 1 + episodes)
    rng = np.random.default_rng(first)
    lessons: list[tuple[np.ndarray, np.ndarray, int]] = []
    try:
        require_teacher(env)
        for number, seed in enumerate(seeds):
            tell_about(number / len(seeds))
            lessons += [(*lesson, number) for lesson in one(TRAINING_SEEDS + seed, number, rng)]
    finally:
        env.close()
    if not lessons:
        raise ValueError(f"teach.parts must be in view at times: none of {wanted.keypoints} ever was")
    seen, places, numbers = zip(*lessons, strict=True)
    return Lessons(np.array(seen), np.array(places, np.float32), np.array(numbers))


def _telling(env: EnvConfig, wanted: Distillation, told: PolicyFile | None) -> EnvConfig:
    """The environment, with sensors for a told policy that err as they did when it was trained."""
    if told is None:
        return env
    error = told.env_kwargs.get("keypoint_noise", 0.0)
    return EnvConfig.of(env.id, **dict(env.kwargs), keypoints=wanted.keypoints, keypoint_noise=error)


def _scattered(
    env: Any, config: TrainConfig, wanted: Distillation, seed: int, rng: np.random.Generator
) -> Iterator[Lesson]:
    """Poses of any kind, after the first look of an episode."""
    first = env.reset(seed=seed)[0]["image"].copy()
    looks = successive_looks(config.policy)
    for _ in range(wanted.samples_per_episode):
        rows, before = [], require_protocol(env, RandomizableState).randomize_state(rng)["image"].copy()
        image = before
        for turn in range(("frame_difference" in config.policy.preprocessing) + looks):
            if turn > 0:
                raw = rng.uniform(-1, 1, config.policy.actions).astype(np.float32)
                before, image = image, env.step(to_action(env.action_space, raw))[0]["image"].copy()
            rows.append(_row(env, config, wanted, image, before, first))
        yield from _lesson(rows[-looks:])


def _met(
    env: Any, config: TrainConfig, wanted: Distillation, policy: Policy, seed: int, rng: np.random.Generator
) -> Iterator[Lesson]:
    """What a policy meets: its first look, which it may remember, and others."""
    observation, _ = env.reset(seed=seed)
    state, look, looks = policy.begin(seed), require_protocol(env, LazyRendering).set_rendering, successive_looks(config.policy)
    first = before = observation["image"].copy()
    others = rng.choice(np.arange(looks, LONGEST_EPISODE), wanted.samples_per_episode - 1, replace=False)
    chosen, rows = {looks - 1, *others.tolist()}, []  # the last step of each lesson
    for step in range(LONGEST_EPISODE):
        image = observation["image"].copy()
        if chosen & set(range(step, step + looks)):
            rows.append(_row(env, config, wanted, image, before, first))
        if step in chosen:
            yield from _lesson(rows[-looks:])
        raw, state, _ = policy.act(state, observation)
        # An image is wanted by the policy, for a lesson, and as the one before it, of which changes are seen.
        look(policy.needs_image(state) or bool(chosen & set(range(step + 1, step + looks + 2))))
        observation, *_ = env.step(to_action(env.action_space, raw))
        before = image


def successive_looks(spec: PolicyConfig) -> int:
    """How many looks are one lesson: two where the low level knows changes, which have to be right too."""
    return 2 if spec.hierarchy is not None and spec.hierarchy.low_level == Quadratic(changes=True) else 1


def _row(env: Any, config: TrainConfig, wanted: Distillation, *images: np.ndarray) -> Row | None:
    """What is seen now, and what was seen at first if that is recalled; and the places, unless they are out of view."""
    located = require_protocol(env, Keypoints)
    if not located.keypoints_visible(wanted.keypoints):
        return None
    return shown(config.policy, *images), located.keypoints(wanted.keypoints)


def shown(spec: PolicyConfig, image: np.ndarray, before: np.ndarray, first: np.ndarray) -> np.ndarray:
    """What is seen now, and what was seen at first if that is recalled."""
    now = show(spec.preprocessing, image, before, first)
    return np.stack([now, show(spec.preprocessing, first, first, first)]) if spec.first_frame_features else now[None]


def _lesson(rows: list[Row | None]) -> list[Lesson]:
    """Successive looks as one lesson, if all are in view."""
    keypoints_visible = [row for row in rows if row is not None]
    if len(keypoints_visible) < len(rows):
        return []
    seen, places = zip(*keypoints_visible, strict=True)
    return [(np.stack(seen), np.stack(places))]
