"""DAgger as a whole: students that do what their teachers do, interrupted runs, teachers that do not fit."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dot import Dot, dot_config, mean_of_sensor

from iap.attention import Positions
from iap.distillation import DAgger
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.distillation.dagger.loop import distil_by_dagger
from iap.distillation.teachers import TeacherConfig
from iap.envs.core import EnvConfig
from iap.policies import CNN, MLP, Blind, Linear, Policy, ResidualRank, Trans
from iap.rollouts import InlinePool
from iap.training.config import TrainConfig

SHORT = DAgger(
    steps=(200, 100), teacher_share=(1.0, 0.0), updates=(250, 150), batch=64, learning_rate=2e-2, noise=(0.0, 0.5)
)
TRANS = Trans(2, 2, rows=6, positions=Positions("concat", scale=1.0), bias=True)
RECURRENT = replace(
    SHORT,
    updates=(120, 80),
    batch=16,
    sequence=8,
    burn_in=2,
    encoder=EncoderPretraining(
        samples=300,
        samples_per_episode=12,
        episode_steps=12,
        random_share=0.0,
        keypoints=("dot",),
        updates=250,
        batch=32,
    ),
)
HEADS = ResidualRank(stem=((8, 3, 1),), dilations=(1,), d=4, heads=2, top_k=4, values=1)


def distilled(
    config: TrainConfig, folder: Path, teacher: TeacherConfig | None = None, checkpoint_s: float = 1e9
) -> Policy:
    assert isinstance(config.pretraining, DAgger)
    with InlinePool(config.job) as pool:
        result = distil_by_dagger(
            config.pretraining, config.job, config.seed, pool, folder, teacher=teacher, checkpoint_s=checkpoint_s
        )
    return Policy(config.policy, result.theta, result.normaliser)


def mean_return(config: TrainConfig, policy: Policy) -> float:
    with InlinePool(config.job) as pool:
        [episodes] = pool.evaluate(policy.theta[None], [range(100, 110)], policy.normaliser)
    return float(np.mean([episode.total for episode in episodes]))


def test_a_student_without_memory_does_what_its_teacher_does(tmp_path):
    config = dot_config(SHORT, TRANS, MLP((16,)))
    blind = dot_config(SHORT, Blind(), MLP((16,)))
    seeing = mean_return(config, distilled(config, tmp_path / "a"))
    assert seeing > 0.5 * mean_return(blind, distilled(blind, tmp_path / "b"))  # returns are negative: half the error
    assert not (tmp_path / "a" / "dataset").exists()


def test_a_recurrent_student_does_what_its_teacher_does(tmp_path):
    config = dot_config(RECURRENT, HEADS, recurrent=True)
    student = distilled(config, tmp_path)
    zero = Policy(config.policy, np.zeros_like(student.theta))
    assert mean_return(config, student) > 0.5 * mean_return(config, zero)


def test_a_function_teaches(tmp_path):
    config = dot_config(SHORT)
    policy = distilled(config, tmp_path, TeacherConfig(function=mean_of_sensor))
    env = config.env.make()
    observation, _ = env.reset(seed=7)
    action, _, _ = policy.act(policy.reset(), observation)
    np.testing.assert_allclose(action, [0.0, observation["sensors"][0]], atol=0.2)


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from test_loop import HEADS, RECURRENT, SHORT, distilled
from dot import dot_config
config = dot_config(RECURRENT, HEADS, recurrent=True) if sys.argv[2] == "recurrent" else dot_config(SHORT)
policy = distilled(config, Path(sys.argv[1]), checkpoint_s=0.0)
print(policy.theta.tobytes().hex(), policy.normaliser.mean.tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["end to end", "recurrent"])
def test_a_distillation_that_is_killed_ends_as_one_that_is_not(kind, tmp_path):
    config = dot_config(RECURRENT, HEADS, recurrent=True) if kind == "recurrent" else dot_config(SHORT)
    wanted = distilled(config, tmp_path / "whole")
    program = [sys.executable, "-c", PROGRAM.format(folder=str(Path(__file__).parent)), str(tmp_path / "killed"), kind]
    moments, killed, output = iter(np.random.default_rng(0).uniform(0.2, 1.5, 50)), 0, ""
    while True:
        process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        started = tmp_path / "killed"
        while process.poll() is None and not started.exists():
            time.sleep(0.01)  # imports and compilation
        time.sleep(float(next(moments)))
        if process.poll() is None and killed < 4:
            process.send_signal(signal.SIGKILL)
            killed += 1
            process.communicate()
            continue
        output, _ = process.communicate()
        break
    assert killed > 0
    assert output.split() == [wanted.theta.tobytes().hex(), wanted.normaliser.mean.tobytes().hex()]


def test_a_teacher_of_another_action_space_is_refused(tmp_path):
    with pytest.raises(ValueError, match="teacher's action must be 2 numbers"):
        distilled(dot_config(SHORT), tmp_path, TeacherConfig(function=lambda _env: np.zeros(3)))


def test_labels_with_nan_are_refused(tmp_path):
    with pytest.raises(ValueError, match="action of the teacher's label must be finite"):
        distilled(dot_config(SHORT), tmp_path, TeacherConfig(function=lambda _env: np.array([np.nan, 0])))


def test_an_environment_without_an_expert_needs_a_teacher(tmp_path):
    class NoExpert(Dot):
        label = None  # pyright: ignore[reportAssignmentType]

    config = replace(dot_config(SHORT), env=EnvConfig.from_factory(NoExpert))
    with pytest.raises(ValueError, match="no expert of its own"):
        distilled(config, tmp_path)


def test_without_pytorch_the_error_names_the_command_that_installs_it(tmp_path):
    program = "import sys; sys.modules['torch'] = None\n" + PROGRAM.format(folder=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), "end to end"], capture_output=True, text=True, check=False
    )
    assert 'pip install "iap-rl[torch]"' in done.stderr


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"steps": (100,)}, "teacher_share must be 1 numbers"),
        ({"teacher_share": (0.5, 0.0)}, "must start with 1"),
        ({"updates": (0, 1)}, "updates"),
        ({"noise": (3.0,)}, "noise"),
        ({"batch": 1}, "batch"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"burn_in": 200}, "burn_in"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes, named):
    with pytest.raises((ValueError, TypeError), match=named):
        replace(SHORT, **changes)


def test_a_recurrent_student_with_an_encoder_needs_its_pretraining():
    with pytest.raises(ValueError, match=r"needs pretraining\.encoder"):
        dot_config(SHORT, recurrent=True)


def test_keypoints_need_two_heads_each():
    with pytest.raises(ValueError, match=r"encoder\.heads must be at least 2"):
        dot_config(RECURRENT, CNN(), Linear(), recurrent=True)
