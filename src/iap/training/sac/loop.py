"""SAC, top to bottom: act and store, update after every few decisions; evaluate, save, repeat."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

from iap.envs.core import action_map
from iap.envs.protocols import LazyRendering, env_name, find_protocol
from iap.policies import Normaliser, PolicyConfig
from iap.rollouts import TRAINING_SEEDS, VALIDATION_SEEDS, InlinePool, draw_seeds
from iap.training.checkpoints import Best
from iap.training.loop import one_thread
from iap.training.returns import finite, mean_return
from iap.training.run_directory import Row, RunDirectory
from iap.training.sac.checkpoints import Progress, resume, save
from iap.training.sac.config import SAC, actor_config
from iap.training.sac.learner import Batch, Learner, make_updates, rates_of
from iap.training.sac.networks import actor_theta, gaussian

TOGETHER = 10  # updates in one call of compiled code, after as many decisions

Updates = Callable[[Learner, Batch], Learner]


def train_sac(
    config: SAC, run: RunDirectory, on_row: Callable[[Row], None] = lambda _row: None, command: str | None = None
) -> Progress:
    """Run the iterations that are left. A checkpoint follows each evaluation.

    Args:
        config: what is trained.
        run: the folder of the run.
        on_row: called with each row of metrics.
        command: the command that starts this training, for the policy files.
    """
    policy = actor_config(config)
    with run.locked(), one_thread(), InlinePool(config.job(policy)) as pool:
        progress = resume(config, policy, run)
        run.truncate_metrics(progress.iteration)
        updates, env = make_updates(rates_of(config)), config.env.make()
        try:
            while progress.iteration < config.iterations:
                started = time.perf_counter()
                progress, returns = iterate(config, policy, env, updates, progress)
                row: Row = _row(progress, returns)
                if progress.iteration % config.evaluate_every == 0 or progress.iteration == config.iterations:
                    progress, best = _evaluated(config, policy, pool, progress)
                    row |= {"held_out": finite(progress.held_out), "held_out_best": finite(best.held_out)}
                    save(config, policy, run, progress, command)
                row["seconds"] = round(time.perf_counter() - started, 3)
                run.append_metrics(row)
                on_row(row)
        finally:
            env.close()
    return progress


def iterate(
    config: SAC, policy: PolicyConfig, env: gymnasium.Env, updates: Updates, progress: Progress
) -> tuple[Progress, list[float]]:
    """Whole episodes with at least `config.decisions` decisions, and their returns."""
    rng = np.random.default_rng([config.seed, 1 + progress.iteration])
    actor = Actor(policy.actions, rng, progress.learner, progress.normaliser)
    returns, start, normaliser = [], progress.replay.count, progress.normaliser
    while progress.replay.count < start + config.decisions:
        [seed] = draw_seeds(config.seed, progress.episodes + len(returns), 1, TRAINING_SEEDS)
        returns.append(run_training_episode(config, env, seed, actor, progress.replay, updates))
    if config.normalise:
        normaliser = normaliser.merge(progress.replay.moments_since(start))
    counts = {"episodes": progress.episodes + len(returns), "iteration": progress.iteration + 1}
    return replace(progress, learner=actor.learner, normaliser=normaliser, **counts), returns


def run_training_episode(
    config: SAC, env: gymnasium.Env, seed: int, actor: "Actor", replay: Any, updates: Updates
) -> float:
    """One episode without images; its transitions go to the memory, and the learner is updated on the way."""
    rendering, to_action = find_protocol(env, LazyRendering), action_map(env.action_space)
    observation, _ = env.reset(seed=seed)
    if rendering is not None:
        rendering.set_rendering(False)
    total, sensors, ended = 0.0, observation["sensors"], False
    while not ended:
        raw = actor.act(sensors, is_random=replay.count < config.random_decisions)
        observation, reward, terminated, truncated, _ = env.step(to_action(raw))
        if not math.isfinite(reward):
            raise ValueError(f"{env_name(env)} gave a reward that is not finite: {reward}")
        replay.add(sensors, raw, float(reward), observation["sensors"], terminated)
        total, sensors, ended = total + float(reward), observation["sensors"], terminated or truncated
        if replay.count > config.random_decisions and replay.count % TOGETHER == 0:
            actor.update(updates(actor.learner, replay.sample(actor.rng, TOGETHER, config.batch, actor.normaliser)))
    return total


@dataclass
class Actor:
    """Samples actions with NumPy, which for one observation is faster than a call of JAX."""

    actions: int
    rng: np.random.Generator
    learner: Learner
    normaliser: Normaliser

    def __post_init__(self) -> None:
        self.update(self.learner)

    def update(self, learner: Learner) -> None:
        """Act by a newer learner."""
        self.learner = learner
        self._arrays = {name: np.array(array) for name, array in learner.learnt.actor.items()}

    def act(self, sensors: Float[np.ndarray, " n"], *, is_random: bool) -> Float[np.ndarray, " k"]:
        """An action in [−1, 1]: uniform, or drawn from the actor's distribution."""
        if is_random:
            return self.rng.uniform(-1, 1, self.actions).astype(np.float32)
        mean, log_std = gaussian(self._arrays, self.normaliser.apply(sensors)[None])
        noise = self.rng.standard_normal(self.actions, np.float32)
        return np.tanh(mean[0] + np.exp(log_std[0]) * noise)


def _row(progress: Progress, returns: list[float]) -> Row:
    return {
        "iteration": progress.iteration,
        "episodes": progress.episodes,
        "best": max(returns),
        "mean": float(np.mean(returns)),
        "failed": 0,
        "steps": progress.replay.count,
        "held_out": None,
        "held_out_best": None if progress.best is None else finite(progress.best.held_out),
    }


def _evaluated(config: SAC, policy: PolicyConfig, pool: InlinePool, progress: Progress) -> tuple[Progress, Best]:
    """The progress with the return of the actor's mean action on validation seeds, and the best policy so far."""
    theta = actor_theta(policy, progress.learner.learnt.actor)
    seeds = draw_seeds(config.seed, 0, config.evaluate_episodes, VALIDATION_SEEDS)
    [episodes] = pool.evaluate(theta[None], [seeds], progress.normaliser)
    held_out, best = mean_return(episodes), progress.best
    if best is None or not best.held_out >= held_out:
        best = Best(theta, progress.normaliser, held_out)
    return replace(progress, held_out=held_out, best=best), best
