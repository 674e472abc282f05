"""The tests of this folder can import its writer of glTF files."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
