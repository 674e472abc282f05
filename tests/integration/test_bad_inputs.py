"""Wrong inputs of the command line: each is refused with one line that says what would be right, and leaves nothing."""

from pathlib import Path

import pytest
from PIL import Image
from training_cases import error_of, iap_here, run_here, tiny

TRAIN = ["train", "seek"]
CASES = {
    "unknown command": (["trian", "seek"], "there is no command 'trian'; did you mean 'train'?"),
    "train without anything": (["train"], "give a preset's name, --env ID or --resume DIR"),
    "unknown preset": (["train", "sek"], "there is no preset 'sek'; did you mean 'seek'?"),
    "unknown environment": (["train", "--env", "CarRacing-v9"], "the closest ids are CarRacing-v3"),
    "unknown module": (["train", "--env", "nowhere:Env-v0"], "modules are looked for in the current folder"),
    "environment without images": (["train", "--env", "CartPole-v1"], 'use image_from="render"'),
    "preset in an environment without keypoints": (
        ["train", "reacher-easy", "--env", "iap/Seek-v0", "--env-option", "size=100"],
        "iap/Seek-v0 offers no keypoints",
    ),
    "unknown encoder": ([*TRAIN, "--encoder", "rnak"], "there is no encoder 'rnak'; did you mean 'rank'?"),
    "unknown controller": ([*TRAIN, "--controller", "lstn"], "did you mean 'lstm'?"),
    "unknown kernel": ([*TRAIN, "--kernel", "favor+"], "did you mean 'favor++'?"),
    "unknown strategy": ([*TRAIN, "--strategy", "cmaes"], "did you mean 'cma-es'?"),
    "unknown hierarchy": ([*TRAIN, "--hierarchy", "three"], "hierarchy must be one of one, two, two-mlp"),
    "kernel of an encoder without attention": ([*TRAIN, "--encoder", "cnn", "--kernel", "relu"], "kernel is an option"),
    "no workers": ([*TRAIN, "--workers", "0"], "workers must be at least 1, not 0"),
    "no time": ([*TRAIN, "--timeout-s", "0"], "timeout_s must be more than 0"),
    "no iterations": ([*TRAIN, "--iterations", "0"], "iterations must be at least 1 without pretraining, not 0"),
    "no episodes": ([*TRAIN, "--episodes", "0"], "episodes must be at least 1, not 0"),
    "no steps": ([*TRAIN, "--max-steps", "0"], "max_steps must be at least 1, not 0"),
    "negative seed": ([*TRAIN, "--seed", "-1"], "seed must be at least 0, not -1"),
    "negative comparison": ([*TRAIN, "--compare", "-1"], "compare must be at least 0, not -1"),
    "negative random search": ([*TRAIN, "--random-search", "-1"], "random_search must be at least 0, not -1"),
    "two starts": ([*TRAIN, "--random-search", "4", "--warm-start", "zoo:seek"], "exclude each other"),
    "never evaluated": ([*TRAIN, "--evaluate-every", "0"], "evaluate_every must be at least 1, not 0"),
    "too large a patch": ([*TRAIN, "--policy.encoder.patch", "99"], "patch must be between 1 and 32"),
    "too many patches": ([*TRAIN, "--policy.encoder.top-k", "999"], "top_k must be between 1 and 256"),
    "too small a population": ([*TRAIN, "--strategy.population", "2"], "population must be at least 4, not 2"),
    "no sigma": ([*TRAIN, "--strategy.sigma", "0"], "sigma must be positive and finite"),
    "negative multiplier": ([*TRAIN, "--sigma-multipliers.encoder", "-1"], "sigma_multipliers.encoder must be 0 or"),
    "option without a value": ([*TRAIN, "--env-option", "size"], "--env-option must be KEY=VALUE, not 'size'"),
    "unknown option of an environment": ([*TRAIN, "--env-option", "colour=3"], "iap/Seek-v0 has no option colour"),
    "wrong option of an environment": ([*TRAIN, "--env-option", "size=4"], "size must be between 8 and 1024, not 4"),
    "size that is no size": ([*TRAIN, "--env-option", "image_size=8"], "image_size must be (height, width), not 8"),
    "source that is none": (
        [*TRAIN, "--env-option", "image_from=eyes"],
        'image_from must be "observation" or "render"',
    ),
    "camera that is none": (
        [*TRAIN, "--env-option", 'cameras=["left"]'],
        "cameras must name images of the observation",
    ),
    "unknown warm start": ([*TRAIN, "--warm-start", "zoo:sek"], "there is no 'sek' in the zoo; did you mean 'seek'?"),
    "warm start of other shapes": ([*TRAIN, "--warm-start", "zoo:obstacle-course"], "has other shapes"),
    "resume of nothing": (["train", "--resume", "nowhere"], "nowhere holds no run"),
    "eval of no episodes": (["eval", "zoo:seek", "--episodes", "0"], "episodes must be at least 1, not 0"),
    "eval of a negative seed": (["eval", "zoo:seek", "--seed", "-1"], "seed must be between 0 and"),
    "eval of a training seed": (["eval", "zoo:seek", "--seed", str(1 << 30)], "higher ones are used in training"),
    "eval of an unknown policy": (["eval", "zoo:sek"], "did you mean 'seek'?"),
    "eval of a missing file": (["eval", "nowhere.policy"], "nowhere.policy: cannot be read: No such file"),
    "eval of a folder without policies": (["eval", "empty"], "is a folder without best.policy or last.policy"),
    "eval of a text": (["eval", "text.txt"], "text.txt: is truncated, or not a safetensors file"),
    "eval in an environment with other images": (
        ["eval", "zoo:seek", "--env-option", "size=16", "--pool", "inline"],
        "but the environment has ((16, 16, 3), 0, 2)",
    ),
    "film of no steps": (["watch", "zoo:seek", "--out", "a.mp4", "--max-steps", "0"], "max_steps must be at least 1"),
    "film of a negative seed": (["watch", "zoo:seek", "--out", "a.mp4", "--seed", "-2"], "seed must be at least 0"),
    "film in an unknown format": (
        ["watch", "zoo:seek", "--out", "a.avi"],
        "path must end in .mp4 or .webm or .gif, not 'a.avi'",
    ),
    "film in a missing folder": (["watch", "zoo:seek", "--out", "nowhere/a.mp4"], "there is no folder nowhere"),
    "plot of nothing": (["plot"], "runs must be at least one folder"),
    "plot of no run": (["plot", "empty"], "empty holds no run"),
    "plot in an unknown format": (["plot", "run", "--out", "a.docx"], "--out must end in .png, not 'a.docx'"),
    "probe of an unknown preset": (["probe", "seeek"], "there is no preset 'seeek'; did you mean 'seek'?"),
    "probe of nothing": (["probe"], "give a preset's name, --env ID"),
    "probe of few steps": (["probe", "seek", "--steps", "1"], "steps must be at least 100, not 1"),
    "probe of no policies": (["probe", "seek", "--draws", "0"], "draws must be at least 1, not 0"),
    "description of nothing": (["describe"], "give a preset's name, --env ID"),
    "description of a missing file": (["describe", "nowhere.policy"], "nowhere.policy"),
    "sweep without values": (["sweep", "seek", "--grid", "patch"], "--grid must be NAME=VALUE,VALUE,…, not 'patch'"),
    "sweep of an unknown option": (
        ["sweep", "seek", "--grid", "policy.encoder.pach=1", "--out", "new"],
        "there is no option 'policy.encoder.pach'",
    ),
    "sweep whose second point is wrong": (
        ["sweep", "seek", "--grid", "policy.encoder.patch=2,99", "--out", "new"],
        "patch must be between 1 and 32",
    ),
    "blind policy with images": (
        ["ablate", "zoo:seek", "--blind", "zoo:seek"],
        "blind must be a policy without images (iap train … --encoder blind), but its encoder is Rank",
    ),
    "blind policy of another environment": (
        ["ablate", "zoo:seek", "--blind", "zoo:reacher-easy-teacher"],
        "blind must be a policy of iap/Seek-v0, not of iap/reacher-easy-v0",
    ),
    "presets of an unknown environment": (["presets", "--env", "CarRacing-v9"], "--env must be part of an"),
    "attend to a missing file": (["attend", "nowhere.png"], "there is no image, folder or video nowhere.png"),
    "attend to an empty folder": (["attend", "empty"], "empty has no images"),
    "attend to a text": (["attend", "text.txt"], "text.txt must be an image"),
    "attend to a damaged image": (["attend", "damaged.png"], "damaged.png cannot be read as an image"),
    "attend to a damaged video": (["attend", "damaged.mp4"], "damaged.mp4 cannot be read as a video"),
    "attend to too many patches": (["attend", "grey.png", "--top-k", "9999"], "top_k must be between 1 and"),
    "attend to no images": (["attend", "grey.png", "--max-frames", "0"], "max_frames must be at least 1, not 0"),
    "options of a trained encoder": (
        ["attend", "grey.png", "--policy", "zoo:seek", "--patch", "2"],
        "leave out --policy",
    ),
    "attend without attention": (
        ["attend", "grey.png", "--policy", "zoo:reacher-easy-teacher"],
        "policy must have attention, but its encoder is Blind",
    ),
    "attend to depth": (["attend", "grey.png", "--policy", "zoo:stairs-single-foot"], "policy must take"),
    "import of a missing file": (["import", "attention-agent", "nowhere.npz"], "nowhere.npz"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An empty folder, a text, an image, damaged files and a run."""
    path = tmp_path_factory.mktemp("inputs")
    (path / "empty").mkdir()
    (path / "text.txt").write_text("text")
    Image.new("L", (40, 30), 90).save(path / "grey.png")
    for name in ("damaged.png", "damaged.mp4"):
        (path / name).write_bytes(b"nothing")
    run_here(tiny(iterations=1), path / "run")
    return path


def test_there_are_at_least_sixty_cases():
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_input_gives_one_line_and_leaves_nothing(case, folder, monkeypatch):
    words, message = CASES[case]
    monkeypatch.chdir(folder)
    before = sorted(str(path) for path in folder.rglob("*"))
    assert message in error_of(iap_here(*words, code=1))
    assert sorted(str(path) for path in folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["eval", "zoo:seek", "--episods", "3"], "--episodes"),
        (["train", "seek", "--iteration", "3"], "--iterations"),
        (["watch", "zoo:seek", "--max-step", "3"], "--max-steps"),
        (["train", "seek", "--iterations", "many"], "--iterations"),
        (["train", "seek", "--pool", "cloud"], "local"),
        (["eval"], "policy"),
    ],
)
def test_a_wrong_option_exits_with_status_2_and_names_what_was_meant(words, named):
    assert named in iap_here(*words, code=2).stderr


def test_a_run_is_not_shortened(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["train", "--resume", "run", "--iterations", "0"]
    assert "iterations must be at least 1 (the run has as many), not 0" in error_of(iap_here(*words, code=1))
