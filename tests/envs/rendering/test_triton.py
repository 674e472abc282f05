"""PyTorch's triton and Mesa's software renderer in one process."""

import subprocess
import sys
from pathlib import Path

import pytest

RENDER_THEN_OPTIMISE = """
import sys
import iap

env = iap.make_env("iap/ObstacleCourse-v0")
env.reset(seed=0)
import torch

torch.optim.Adam([torch.zeros(2, requires_grad=True)])
print("libLLVM" in open("/proc/self/maps").read(), sys.modules.get("triton", "absent"))
env.close()
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's list of loaded libraries")
def test_an_optimiser_can_be_made_after_an_image_was_rendered_in_software():
    done = subprocess.run([sys.executable, "-c", RENDER_THEN_OPTIMISE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    in_software, triton = done.stdout.split()
    assert triton == "None" or in_software == "False"
