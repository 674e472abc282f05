"""Modules in this folder can be imported by the tests and by workers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
