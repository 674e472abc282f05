"""The tests of this folder, and their subprocesses, can import its small environment."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
