"""Modules in this folder, and the toy parts beside it, can be imported by the tests and by workers."""

import sys
from pathlib import Path

for folder in (Path(__file__).parents[1], Path(__file__).parent):
    sys.path.insert(0, str(folder))
