"""Fetch the third-party scenes that some tests use; those tests are skipped where it cannot be done.

Run it: python tools/fetch_rooms.py

| scenes | from | with |
|---|---|---|
| five captured rooms with labels (MIT) | the npm package `@iwer/sem` | npm |
| textured furniture with several materials (CC0) | Debian's `sweethome3d-furniture` | apt-get, dpkg-deb |

They go to the folder `third-party` of the scene cache. Nothing of them is part of the project.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from iap.envs.indoor.scenes.cache import cached_folder

THIRD_PARTY = "third-party"
ROOMS, FURNITURE = "iwer-sem-2.4.0", "sweethome3d-furniture"
CATALOGUE = "BlendSwap-CC-0.sh3f"


def fetch_rooms() -> Path:
    """The folder of the captured rooms, as JSON files."""

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            _run("npm", "pack", "@iwer/sem@2.4.0", folder=Path(temporary))
            [archive] = Path(temporary).glob("*.tgz")
            with tarfile.open(archive) as content:
                for member in content.getmembers():
                    file = content.extractfile(member)
                    if member.name.startswith("package/captures/") and file is not None:
                        (folder / Path(member.name).name).write_bytes(file.read())

    return cached_folder(THIRD_PARTY, ROOMS, fill)


def fetch_furniture() -> Path:
    """The folder of the furniture, as OBJ files with materials and textures, a folder each."""

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary)
            _run("apt-get", "download", "sweethome3d-furniture", folder=place)
            [archive] = place.glob("*.deb")
            _run("dpkg-deb", "-x", archive.name, "content", folder=place)
            [catalogue] = place.rglob(CATALOGUE)
            with zipfile.ZipFile(catalogue) as content:
                content.extractall(folder)

    return cached_folder(THIRD_PARTY, FURNITURE, fill)


def _run(*command: str, folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[-200:]}")


def main() -> None:
    """Fetch both."""
    fetchers: dict[str, Callable[[], Path]] = {ROOMS: fetch_rooms, FURNITURE: fetch_furniture}
    for name, fetch in fetchers.items():
        try:
            sys.stdout.write(f"{name}: {fetch()}\n")
        except (RuntimeError, OSError, ValueError) as error:
            sys.stdout.write(f"{name} cannot be had: {error}\n")


if __name__ == "__main__":
    main()
