import logging
import os
import subprocess
import sys

import numpy as np
import pytest

from iap.envs.control_suite.frames import render_frames
from iap.envs.rendering.gl import INSTALL

WITHOUT_GL = """
from iap.envs.control_suite.frames import render_frames
from iap.envs.rendering.gl import RenderingError
for _ in range(2):
    try:
        render_frames(size=(8, 8))
    except RenderingError as error:
        print(error)
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {
        k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "LP_NUM_THREADS", "DISPLAY", "WAYLAND_DISPLAY")
    }
    return subprocess.run(
        [sys.executable, "-c", code], env=kept | environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_equal_seeds_give_equal_frames():
    first = render_frames(size=(48, 64), count=3, seed=5)
    render_frames("ball_in_cup-catch", size=(30, 20), seed=5)
    again = render_frames(size=(48, 64), count=3, seed=5)
    assert first.shape == (3, 48, 64, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)


def test_frames_differ_over_time_and_by_seed():
    frames = render_frames(size=(48, 64), count=2, seed=0)
    assert (frames[0] != frames[1]).any()
    assert (frames[0] != render_frames(size=(48, 64), seed=1)[0]).any()


def test_a_frame_shows_the_orange_cheetah_in_front_of_a_blue_sky():
    frame = render_frames(size=(120, 160))[0].astype(int)
    red_minus_blue = frame[..., 0] - frame[..., 2]
    assert 0.005 < np.mean(red_minus_blue > 60) < 0.1
    assert np.mean(red_minus_blue < 0) > 0.8


def test_a_frame_can_be_larger_than_the_buffer_of_the_model():
    assert render_frames("pendulum-swingup", size=(500, 700))[0].std() > 1


def test_a_task_without_action_bounds_renders():
    assert render_frames("lqr-lqr_2_1", size=(16, 16), count=2).shape == (2, 16, 16, 3)


def test_an_unknown_task_is_refused_with_similar_names():
    with pytest.raises(ValueError, match=r"'ball-in-cup-catch' .* ball_in_cup-catch"):
        render_frames("ball-in-cup-catch")


@pytest.mark.parametrize("size", [(0, 10), (10, -1), (10, 100_000)])
def test_an_invalid_size_is_refused(size):
    with pytest.raises(ValueError, match="size must be between 1 and"):
        render_frames(size=size)


def test_loading_the_cheetah_logs_nothing_and_other_messages_are_kept(caplog):
    render_frames(size=(8, 8))
    assert not caplog.records
    logging.getLogger("absl").warning("the compiler attribute 'settotalmass' is deprecated")
    assert len(caplog.records) == 1


def test_a_process_without_a_display_renders_and_prints_nothing_else():
    code = "from iap.envs.control_suite.frames import render_frames; print(render_frames(size=(8, 8)).shape)"
    done = run(code, PYTHONWARNINGS="error")
    assert done.stdout == "(1, 8, 8, 3)\n"
    assert done.stderr == ""


def test_importing_the_module_does_not_load_the_simulator():
    done = run(
        "import sys, iap.envs.control_suite.frames; print('mujoco' in sys.modules or 'dm_control' in sys.modules)"
    )
    assert done.stdout == "False\n"


def test_without_opengl_the_error_says_what_to_install_each_time(tmp_path):
    done = run(WITHOUT_GL, __EGL_VENDOR_LIBRARY_DIRS=str(tmp_path))
    assert done.stdout.count(INSTALL) == 2
    assert done.stderr == ""


def test_a_backend_that_needs_a_display_is_refused_where_there_is_none():
    done = run(WITHOUT_GL, MUJOCO_GL="glfw")
    assert done.stdout.count("set MUJOCO_GL=egl") == 2
    assert done.stderr == ""
