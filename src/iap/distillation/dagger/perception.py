"""How well an encoder can be trained on labelled images: errors on new appearances and new states, in minutes."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from iap.distillation.bank import Bank
from iap.distillation.collecting import BLOCK, collect
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.distillation.dagger.encoder_training import VALIDATED, EncoderTraining
from iap.distillation.labelling import LabellingJob
from iap.distillation.optimisation import load_torch, one_torch_thread
from iap.distillation.pretrained import Report
from iap.distillation.teachers import TeacherConfig
from iap.envs.protocols import VisualSeeds, find_protocol
from iap.policies import Normaliser, PolicyConfig, describe, flatten, init
from iap.rollouts import TRAINING_SEEDS, VALIDATION_SEEDS, Job, Pool, draw_seeds

VISUAL_SEEDS = 500
EPISODES = 1 << 40  # the stream of the episodes' seeds
REPORT_EVERY = 50  # updates


def measure_perception(
    options: EncoderPretraining,
    job: Job,
    encoders: dict[str, PolicyConfig],
    budgets: Sequence[int],
    seed: int,
    pool: Pool,
    report: Report = lambda _what, _share: None,
    teacher: TeacherConfig | None = None,
) -> list[dict[str, Any]]:
    """A row for each encoder, budget and dataset: the errors of action, state and keypoints.

    The datasets are the training images; if the environment has visual seeds, the same states with other visual seeds;
    and other states with other visual seeds. All encoders are trained on the same images.

    Args:
        options: of the training; `updates` are those of the budgets.
        job: the environment, and the policy whose preprocessing all encoders share.
        encoders: policies by the name of their encoder; keypoints supervise those with enough heads.
        budgets: numbers of updates; each is a training of its own.
        seed: of everything random.
        pool: where the episodes run.
        report: called with what is being done and which share of it is done.
        teacher: labels the states; None for the environment's own expert.
    """
    load_torch()
    with one_torch_thread(), _datasets(options, job, seed, pool, report, teacher or TeacherConfig()) as banks:
        rows = []
        updates, done = sum(budgets) * len(encoders), 0
        for name, policy in encoders.items():
            for budget in budgets:
                chosen = replace(options, updates=budget, keypoints=_keypoints(options, policy))
                training = EncoderTraining(chosen, policy, banks["training"], flatten(init(policy, seed)), seed)
                for number in range(budget):
                    training.step(np.random.default_rng((seed, number)))
                    if number % REPORT_EVERY == 0:
                        report(f"training {name}, {number:,} of {budget:,} updates", (done + number) / updates)
                done += budget
                size = describe(policy).parts.get("encoder", 0)
                for dataset, bank in banks.items():
                    some = np.random.default_rng(seed).permutation(bank.steps())[:VALIDATED]
                    found = training.errors(bank, some)
                    rows.append({"encoder": name, "parameters": size, "updates": budget, "images": dataset} | found)
    return rows


def _keypoints(options: EncoderPretraining, policy: PolicyConfig) -> tuple[str, ...]:
    heads = getattr(policy.encoder, "heads", 0)
    return options.keypoints if heads >= 2 * len(options.keypoints) else ()


@contextmanager
def _datasets(
    options: EncoderPretraining, job: Job, seed: int, pool: Pool, report: Report, teacher: TeacherConfig
) -> Iterator[dict[str, Bank]]:
    """The labelled images by the name of their dataset, in a temporary folder."""
    env = job.env.make()
    try:
        teacher.check(env, job.policy.actions)
        has_visual_seeds = find_protocol(env, VisualSeeds) is not None
    finally:
        env.close()
    shared = (options.visual_seeds or VISUAL_SEEDS) if has_visual_seeds else None
    labelling = LabellingJob(
        job.env,
        job.policy,
        options.episode_steps,
        teacher=teacher,
        noise=options.noise,
        keypoints=options.keypoints,
        random_share=options.random_share,
        samples_per_episode=options.samples_per_episode,
        visual_seeds=shared,
    )
    other = replace(labelling, first_visual_seed=shared) if shared is not None else labelling
    plans = {"training": (labelling, options.samples, TRAINING_SEEDS)}
    if shared is not None:
        plans["same states, other visual seeds"] = other, VALIDATED, TRAINING_SEEDS
    plans["other states and visual seeds"] = other, VALIDATED, VALIDATION_SEEDS
    with tempfile.TemporaryDirectory() as folder:
        banks = {}
        for name, (labels, samples, seeds) in plans.items():
            banks[name] = Bank(Path(folder) / str(len(banks)))
            _fill(
                banks[name],
                labels,
                samples,
                seeds,
                seed,
                pool,
                lambda share, name=name: report(f"images: {name}", share),
            )
        yield banks


def _fill(bank: Bank, job: LabellingJob, samples: int, seeds: Any, seed: int, pool: Pool, report: Any) -> None:
    theta, none = flatten(init(job.policy, seed)), Normaliser.none(job.policy.inputs_size)
    with pool.for_job(job) as labelling:
        collect(
            bank,
            0,
            samples,
            labelling,
            theta,
            none,
            lambda block: draw_seeds(seed, EPISODES + block, BLOCK, seeds),
            lambda done: report(done / samples),
        )
