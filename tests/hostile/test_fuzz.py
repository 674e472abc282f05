"""Files, observations and command lines with random changes: opened, or refused with a documented error.

`pytest tests/hostile --fuzz 10` tries ten times as many cases. Files of the kinds that once did harm are in `corpus`.
"""

import contextlib
import io
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measured import Measured
from mutations import VALUES, cases, edited_bytes, edited_tensors
from PIL import Image

from iap.cli import COMMANDS, parse
from iap.cli.errors import EXPECTED
from iap.envs.indoor.scenes.errors import SceneError
from iap.envs.indoor.scenes.folder import read_scene
from iap.evaluation.evaluate import policy_job
from iap.policies import Policy
from iap.policies.serialization import PolicyFileError, load
from iap.viz.frames import frames_of
from iap.zoo import zoo_file

sys.path.insert(0, str(Path(__file__).parents[1] / "envs" / "indoor"))
from conftest import write_small_scene  # pyright: ignore[reportAttributeAccessIssue] # of the indoor tests

CORPUS = Path(__file__).parent / "corpus"
POLICIES = ("seek", "cartpole-swingup", "step-stones-trans", "walker-walk", "obstacle-course")
SCENE_FILES = ("mesh_z_up.obj", "mesh_z_up.mtl", "floors.txt", "floor_trav_0.png", "wall.png")


def read_images(path: Path) -> None:
    """What `iap attend` reads."""
    for frame in frames_of(path, 2):
        assert frame.image.dtype == np.uint8


READERS: dict[str, tuple[Callable[[Path], Any], tuple[type[Exception], ...]]] = {
    ".policy": (lambda path: policy_job(load(path)), (PolicyFileError, ValueError)),
    ".png": (read_images, (ValueError,)),
    ".jpg": (read_images, (ValueError,)),
    ".gif": (read_images, (ValueError,)),
}


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_kept_files_are_refused_with_the_documented_error_in_little_memory(path):
    read, errors = READERS[path.suffix]
    measured = Measured(path.name, errors)
    measured.run(0, lambda: read(path))
    assert measured.accepted == 0
    measured.finish()


def test_mutated_policy_files_are_refused_or_opened(tmp_path):
    contents = [zoo_file(name).read_bytes() for name in POLICIES]
    measured, file = Measured("policy files", (PolicyFileError,)), tmp_path / "a.policy"
    for seed in cases(1000):
        rng = random.Random(seed)
        content = rng.choice(contents)
        file.write_bytes(edited_bytes(rng, content) if rng.random() < 0.4 else edited_tensors(rng, content))
        measured.run(seed, lambda: load(file))
    measured.finish()
    assert len(measured.reasons) > 50


def test_mutated_images_are_refused_or_opened(tmp_path):
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
    contents = {}
    for suffix in (".png", ".jpg", ".gif"):
        picture.save(tmp_path / f"whole{suffix}")
        contents[suffix] = (tmp_path / f"whole{suffix}").read_bytes()
    measured = Measured("images", (ValueError,))
    for seed in cases(500):
        chooser = random.Random(seed)
        suffix = chooser.choice(sorted(contents))
        file = tmp_path / f"a{suffix}"
        file.write_bytes(edited_bytes(chooser, contents[suffix]))
        measured.run(seed, lambda file=file: read_images(file))
    measured.finish()
    assert measured.accepted > 0


def test_mutated_scene_folders_are_refused_or_opened(tmp_path):
    scene = write_small_scene(tmp_path / "scene")
    contents = {name: (scene.folder / name).read_bytes() for name in SCENE_FILES}
    measured = Measured("scene folders", (SceneError,))
    for seed in cases(150):
        rng = random.Random(seed)
        name = rng.choice(SCENE_FILES)
        (scene.folder / name).write_bytes(edited_bytes(rng, contents[name]))
        measured.run(seed, lambda: read_scene(scene.folder, resolution_m=0.05))
        (scene.folder / name).write_bytes(contents[name])
    measured.finish()
    assert measured.accepted > 0


def observation(rng: random.Random, shape: tuple[int, ...]) -> dict[str, Any]:
    """An observation of any shape and type, some of them right."""
    shapes = [shape, shape, shape[:2], shape[::-1], (), (0,), (1, *shape)]
    types = ["uint8", "uint8", "float32", "float64", "int64", "bool", "complex64", "object", "U3"]
    image: Any = np.full(rng.choice(shapes), rng.choice([0, 1, 255]), "uint8").astype(rng.choice(types))
    if image.dtype.kind == "f" and image.size and rng.random() < 0.7:
        image.flat[0] = rng.choice([float("nan"), float("inf"), -1e38, 1e38])
    if rng.random() < 0.1:
        image = rng.choice(VALUES)
    found: dict[str, Any] = {"image": image}
    if rng.random() < 0.6:
        found["sensors"] = rng.choice([np.zeros(0, np.float32), np.zeros(3), *VALUES])
    return found


def test_observations_of_any_kind_are_refused_or_acted_on():
    policy = Policy.of(load(zoo_file("seek")))
    measured = Measured("observations", (ValueError, TypeError))
    for seed in cases(1000):
        shown = observation(random.Random(seed), policy.config.image_shape)
        measured.run(seed, lambda shown=shown: act(policy, shown))
    measured.finish()
    assert 0 < measured.accepted < len(cases(1000))


def act(policy: Policy, shown: dict[str, Any]) -> None:
    """One step, whose errors are made printable as the command line does."""
    try:
        action, _, _ = policy.act(policy.reset(), shown)
    except (ValueError, TypeError) as error:
        raise type(error)("".join(filter(str.isprintable, str(error)))[:5000]) from error
    assert np.isfinite(action).all()


WORDS = [
    "seek",
    "zoo:seek",
    "--out",
    "--help",
    "--env",
    "iap/Seek-v0",
    "--env-option",
    "size=32",
    "size=",
    "=",
    "--",
    "-",
]
WORDS += [
    "--iterations",
    "--strategy",
    "open-es",
    "--strategy.population",
    "--encoder",
    "rank",
    "--workers",
    "--pool",
    "ray",
]
WORDS += [
    "--json",
    "--episodes",
    "--seed",
    "0",
    "-1",
    "1e400",
    "nan",
    "",
    "\x1b[31m",
    "\ud800",
    "é",
    "x" * 5000,
    "../..",
    "None",
]
WORDS += ["--resume", "--top-k", "--patch", "--format", "c", "[]", "{}", "'", '"', "$(id)", "--warm-start", "--compare"]


def parse_line(words: list[str]) -> None:
    """Parse, without output; help and usage errors end with an exit status."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            parse(words)
        except SystemExit as ended:
            if ended.code not in (0, 1, 2):
                raise RuntimeError(f"ended with status {ended.code}") from ended
        except EXPECTED as error:
            raise ValueError("".join(filter(str.isprintable, str(error)))[:5000]) from error


def test_random_command_lines_are_parsed_or_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [*COMMANDS]
    measured = Measured("command lines", (ValueError,))
    for seed in cases(60):
        rng = random.Random(seed)
        words = [rng.choice(names), *(rng.choice(WORDS) for _ in range(rng.randrange(6)))]
        measured.run(seed, lambda words=words: parse_line(words))
    measured.finish()
    assert measured.accepted > 0
    assert [*tmp_path.iterdir()] == []
