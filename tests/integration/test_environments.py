"""Environments of others through the command line: trained in, evaluated in, filmed."""

import json

import pytest
from training_cases import iap

pytest.importorskip("Box2D")

TINY = ["--strategy", "open-es", "--strategy.population", 2, "--iterations", 1, "--episodes", 1]
TINY += ["--max-steps", 12, "--evaluate-episodes", 1, "--pool", "inline"]
DRAWN = ["--env-option", "image_from=render", "--env-option", "image_size=[40,60]"]


@pytest.mark.parametrize(
    ("words", "image", "actions", "cut"),
    [
        (["CarRacing-v3"], [96, 96, 3], 3, 60),
        (["CarRacing-v3", "--env-option", "continuous=false"], [96, 96, 3], 5, 60),
        (["CartPole-v1", *DRAWN], [40, 60, 3], 2, None),
    ],
    ids=["continuous", "discrete", "drawn"],
)
def test_any_environment_is_trained_evaluated_and_filmed(words, image, actions, cut, tmp_path):
    run, film = tmp_path / "run", tmp_path / "film.mp4"
    limit = [] if cut is None else ["--env-option", f"max_episode_steps={cut}"]
    shown = iap("train", "--env", *words, *limit, *TINY, "--out", run).stdout
    assert f"iap watch {run}" in shown
    policy = json.loads((run / "config.json").read_text())["policy"]
    assert (policy["image_shape"], policy["actions"]) == (image, actions)
    result = json.loads(iap("eval", run, "--episodes", 2, "--pool", "inline", "--json", "-").stdout)
    assert (len(result["returns"]), result["failed"], result["env"]) == (2, 0, words[0])
    assert cut is None or result["steps"] == [cut, cut]
    iap("watch", run, "--out", film, "--max-steps", 10)
    assert film.stat().st_size > 5_000
