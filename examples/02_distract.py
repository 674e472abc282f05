"""Render the six tasks of the Distracting Control Suite without distractions and at each difficulty.

Run it: python examples/02_distract.py --out out
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from iap.envs.control_suite import DISTRACTING_TASKS

SIZE = (240, 320)
SHOWN_PX = (192, 144)  # width, height
DIFFICULTIES = (None, "easy", "medium", "hard")
STEPS = 5
CAPTION_PX = 18
COLOURS = 160


def picture(task: str, difficulty: str | None) -> Image.Image:
    """A small image of the task with a caption."""
    env = gymnasium.make(f"iap/{task}-v0", size=SIZE, difficulty=difficulty)
    observation, _ = env.reset(seed=DISTRACTING_TASKS.index(task))
    for _ in range(STEPS):
        observation, *_ = env.step(np.zeros(env.action_space.shape or (), np.float32))
    env.close()
    tile = Image.new("RGB", (SHOWN_PX[0], SHOWN_PX[1] + CAPTION_PX), "white")
    tile.paste(Image.fromarray(observation["image"]).resize(SHOWN_PX, Image.Resampling.BOX), (0, CAPTION_PX))
    caption = f"{task}, {difficulty or 'no distractions'}"
    ImageDraw.Draw(tile).text((2, 3), caption, fill="black", font=ImageFont.load_default(12))
    return tile


def main() -> None:
    """Render one row per task, and save them as one image."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the image")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    rows = [
        np.hstack([np.asarray(picture(task, difficulty)) for difficulty in DIFFICULTIES]) for task in DISTRACTING_TASKS
    ]
    sheet = Image.fromarray(np.vstack(rows)).quantize(COLOURS, dither=Image.Dither.NONE)
    sheet.save(out / "distractions.png", optimize=True)
    print(f"wrote {out / 'distractions.png'}")


if __name__ == "__main__":
    main()
