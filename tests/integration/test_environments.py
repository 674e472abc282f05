"""Environments of other packages on the command line: training, evaluation and video."""

import json

import pytest
from training_cases import iap_here

pytest.importorskip("Box2D")

TINY = ["--strategy", "open-es", "--strategy.population", 2, "--iterations", 1, "--episodes", 1]
TINY += ["--max-steps", 12, "--evaluate-episodes", 1, "--pool", "inline"]
RENDERED = ["--env-option", "image_from=render", "--env-option", "image_size=[40,60]"]


@pytest.mark.parametrize(
    ("words", "image", "actions", "max_steps"),
    [
        (["CarRacing-v3"], [96, 96, 3], 3, 60),
        pytest.param(["CarRacing-v3", "--env-option", "continuous=false"], [96, 96, 3], 5, 60, marks=pytest.mark.slow),
        (["CartPole-v1", *RENDERED], [40, 60, 3], 2, None),
    ],
    ids=["continuous", "discrete", "rendered"],
)
def test_a_policy_is_trained_evaluated_and_filmed_in_any_environment(words, image, actions, max_steps, tmp_path):
    run, video = tmp_path / "run", tmp_path / "video.mp4"
    limit = [] if max_steps is None else ["--env-option", f"max_episode_steps={max_steps}"]
    shown = iap_here("train", "--env", *words, *limit, *TINY, "--out", run).stdout
    assert f"iap watch {run}" in shown
    policy = json.loads((run / "config.json").read_text())["policy"]
    assert (policy["image_shape"], policy["actions"]) == (image, actions)
    result = json.loads(iap_here("eval", run, "--episodes", 2, "--pool", "inline", "--json", "-").stdout)
    assert (len(result["returns"]), result["failed"], result["env"]) == (2, 0, words[0])
    assert max_steps is None or result["steps"] == [max_steps, max_steps]
    iap_here("watch", run, "--out", video, "--max-steps", 10)
    assert video.stat().st_size > 5_000
