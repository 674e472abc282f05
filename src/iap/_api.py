"""The functions of the public API. Each imports what it needs when it is called."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iap._arguments import env_config, open_pool, policy_file, policy_job_anywhere
from iap._extras import explain_missing
from iap.policies import Attention, Policy, PolicyFile

if TYPE_CHECKING:
    import gymnasium

    from iap.evaluation.evaluate import Evaluation

Row = dict[str, Any]


def load_policy(name: str | Path) -> Policy:
    """A trained policy.

    Args:
        name: a policy file, the folder of a run (its best policy), or zoo:NAME.

    Example:
        >>> import iap
        >>> policy = iap.load_policy("zoo:seek")
        >>> policy.env.id, len(policy.theta)
        ('iap/Seek-v0', 162)
    """
    from iap.zoo.locate import policy_path

    return Policy.load(policy_path(name))


def make_env(env: Any, **options: Any) -> "gymnasium.Env":
    """An environment with observations {"image": (H, W, C), "sensors": (n,)}.

    Args:
        env: a Gymnasium id, an `EnvConfig`, a policy's `env`, a `gymnasium.Env` object with an image in its
            observation, or a function that makes one.
        options: of the environment.

    Example:
        >>> import iap
        >>> env = iap.make_env("iap/Seek-v0")
        >>> observation, _ = env.reset(seed=0)
        >>> observation["image"].shape
        (32, 32, 3)
    """
    with explain_missing(f"the environment {getattr(env, 'id', env)}"):
        from iap.envs.core import make_env as make

        return make(env, **options)


def evaluate(
    policy: Policy | PolicyFile | str | Path,
    episodes: int = 100,
    *,
    seed: int = 0,
    env: Any = None,
    workers: int | None = None,
) -> "Evaluation":
    """The returns of a policy on seeds that training never used: `.mean`, `.ci95`, `.returns`.

    Args:
        policy: a policy, or its name.
        episodes: number of episodes; the i-th has seed `seed` + i.
        seed: of the first episode.
        env: another environment than its own: anything that `make_env` takes.
        workers: number of local processes; 0 runs everything in this process. All cores by default.

    Example:
        >>> import iap
        >>> result = iap.evaluate("zoo:seek", episodes=4, workers=0)
        >>> len(result.returns), result.failed
        (4, 0)
    """
    with explain_missing("evaluation"):
        from iap.evaluation.evaluate import evaluate as run_evaluation
        from iap.evaluation.evaluate import policy_job

        file = policy_file(policy)
        job = policy_job(file) if env is None else replace(policy_job_anywhere(file), env=env_config(env))
        with open_pool(job, workers) as pool:
            return run_evaluation(file, pool, episodes, seed)


def ablate(
    policy: Policy | PolicyFile | str | Path,
    episodes: int = 100,
    *,
    seed: int = 0,
    blind: Policy | PolicyFile | str | Path | None = None,
    env: Any = None,
    workers: int | None = None,
) -> list[Row]:
    """The return of a policy beside that of its ablations: does it use its images, its training, its attention?

    Args:
        policy: a policy, or its name.
        episodes: of each ablation, the same for all.
        seed: of the first episode.
        blind: a policy that was trained the same way without an image.
        env: another environment than its own: anything that `make_env` takes.
        workers: number of local processes; 0 runs everything in this process. All cores by default.

    Example:
        >>> import iap
        >>> rows = iap.ablate("zoo:seek", episodes=2, workers=0)
        >>> [row["ablation"] for row in rows][:3]
        ['trained', 'zero action', 'initial']
    """
    with explain_missing("ablations"):
        from iap.evaluation.ablations import run_ablations

        other = None if blind is None else policy_file(blind)
        where = None if env is None else env_config(env)
        return run_ablations(policy_file(policy), lambda job: open_pool(job, workers), episodes, seed, other, env=where)


def record_video(
    policy: Policy | PolicyFile | str | Path,
    out: str | Path,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    env: Any = None,
) -> float:
    """Write a video of one episode: the scene, the image with attended patches, the scores. Returns the return.

    Args:
        policy: a policy, or its name.
        out: an .mp4 or .gif file.
        seed: of the episode.
        max_steps: at which it is cut.
        env: another environment than its own: anything that `make_env` takes.

    Example:
        >>> import iap, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "seek.gif")
        ...     total = iap.record_video("zoo:seek", file, max_steps=3)
        ...     file.exists()
        True
    """
    with explain_missing("videos"):
        from iap.evaluation.video import film

        where = None if env is None else env_config(env)
        return film(policy_file(policy), Path(out), seed, max_steps, env=where).total


def attend(
    image: np.ndarray,
    *,
    patch: int = 4,
    stride: int | None = None,
    top_k: int = 10,
    kernel: str = "relu",
    queries: np.ndarray | None = None,
    keys: np.ndarray | None = None,
    d: int = 4,
    seed: int = 0,
) -> Attention:
    """Score every patch of an image by linear attention, and select the best.

    Args:
        image: (H, W, C), uint8 or float.
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next; the patch's side by default.
        top_k: number of patches to select.
        kernel: a name of `iap.attention.KERNELS`.
        queries: learnt projection of a patch to its query, (patch²·C, d); random by default.
        keys: the same for keys.
        d: dimension of random queries and keys.
        seed: of random projections.

    Example:
        >>> import iap, numpy as np
        >>> image = np.zeros((32, 32, 3), np.uint8)
        >>> image[8:12, 20:24] = 255
        >>> attention = iap.attend(image, patch=4, top_k=1)
        >>> attention.scores.shape, attention.grid
        ((64,), Grid(rows=8, columns=8))
    """
    from iap.attention import KERNELS, top
    from iap.attention.kernels.folding import Layer
    from iap.attention.kernels.ranker import compile_ranker

    if not isinstance(image, np.ndarray) or image.ndim != 3:  # noqa: PLR2004
        raise ValueError(
            f"image must be an array (height, width, channels), not {getattr(image, 'shape', type(image))}"
        )
    rng = np.random.default_rng(seed)
    size = patch * patch * image.shape[2]
    drawn = rng.standard_normal((2, size, d)).astype(np.float32) / np.float32(np.sqrt(size))
    layers = [
        Layer(np.asarray(drawn[i] if given is None else given, np.float32)) for i, given in enumerate((queries, keys))
    ]
    step = patch if stride is None else stride
    ranker = compile_ranker(KERNELS[kernel], *layers, image.shape, patch=patch, stride=step)  # pyright: ignore
    scores = ranker.values(image)
    return Attention(scores, top(scores, top_k), ranker.grid, patch, step)
