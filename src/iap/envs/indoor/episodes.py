"""Published episodes: Gibson's CSV files and Habitat's JSON files.

| format | scene | start and goal |
|---|---|---|
| CSV with a header | `sceneId` | `startX`, `startY`, `startZ`, `startAngle` in rad; `goalX`, `goalY`, `goalZ`; z up |
| JSON, or .json.gz | `scene_id`, a file | `start_position`, `start_rotation` (x, y, z, w), `goals`; y up |

Habitat's y is Gibson's z, and its z is Gibson's −y. Its agents face −z.
"""

import csv
import gzip
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iap.envs.indoor.scenes.errors import SceneError, read_bytes

AXES, QUATERNION = 3, 4


@dataclass(frozen=True)
class Episode:
    """A start and a goal.

    Attributes:
        scene: its name.
        start: x and y.
        yaw_rad: heading at the start.
        goal: x and y.
        height_m: of the floor, z.
    """

    scene: str
    start: tuple[float, float]
    yaw_rad: float
    goal: tuple[float, float]
    height_m: float = 0.0


def load_episodes(path: str | Path) -> list[Episode]:
    """The episodes of a file, by its name: .csv, .json or .json.gz."""
    path = Path(path)
    name = path.name.lower()
    if not name.endswith((".csv", ".json", ".json.gz")):
        raise ValueError(f"episodes must be a .csv, .json or .json.gz file, not {path}")
    content = read_bytes(path)
    try:
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        text = content.decode("utf-8")
        episodes = _from_csv(text) if name.endswith(".csv") else _from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, IndexError, EOFError, OSError) as error:
        raise SceneError(path, f"is no file of episodes ({type(error).__name__}: {error})") from error
    if not episodes:
        raise SceneError(path, "has no episodes")
    return episodes


def find_scene(folder: str | Path, name: str) -> Path:
    """The folder of a scene by its name, below a folder of scenes; or that folder itself."""
    folder = Path(folder)
    if (folder / name / "floors.txt").exists():
        return folder / name
    if folder.name == name and (folder / "floors.txt").exists():
        return folder
    raise SceneError(folder / name, "does not exist, and an episode names it")


def _from_csv(text: str) -> list[Episode]:
    episodes = []
    for row in csv.DictReader(io.StringIO(text)):
        values = {str(key).strip().lower().replace("_", ""): value for key, value in row.items()}
        numbers = [_finite(values[name]) for name in ("startx", "starty", "startz", "startangle", "goalx", "goaly")]
        x, y, z, angle, goal_x, goal_y = numbers
        episodes.append(Episode(_scene_name(values["sceneid"]), (x, y), angle, (goal_x, goal_y), z))
    return episodes


def _from_json(data: Any) -> list[Episode]:
    return [_habitat_episode(entry) for entry in data["episodes"]]


def _habitat_episode(entry: Mapping[str, Any]) -> Episode:
    start, goal = ([_finite(a) for a in place] for place in (entry["start_position"], entry["goals"][0]["position"]))
    rotation = [_finite(a) for a in entry["start_rotation"]]
    if len(start) != AXES or len(goal) != AXES or len(rotation) != QUATERNION:
        raise ValueError("positions must be 3 numbers and rotations 4")
    x, y, z, w = rotation
    ahead = -2 * (x * z + w * y), -(1 - 2 * (x * x + y * y))  # x and z of the rotated (0, 0, −1)
    yaw = math.atan2(-ahead[1], ahead[0])
    return Episode(_scene_name(entry["scene_id"]), (start[0], -start[2]), yaw, (goal[0], -goal[2]), start[1])


def _scene_name(text: str) -> str:
    """The name of a scene in a path such as "gibson/Adrian.glb"."""
    name = text.replace("\\", "/").rstrip("/").rpartition("/")[2].partition(".")[0]
    if not name:
        raise ValueError(f"{text!r} names no scene")
    return name


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number
