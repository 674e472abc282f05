"""Tests of exported policies can import the module of their cases; PyTorch computes with one thread."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
torch.set_num_threads(1)  # batches are small: more threads wait for each other longer than they compute
