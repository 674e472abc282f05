"""What a policy attends to in images of a camera or a folder.

The same on the command line: iap attend FOLDER --policy zoo:seek

Run it: python examples/05_attend_to_images.py --images FOLDER --out out
"""

import argparse
from pathlib import Path

from PIL import Image

import iap
from iap.evaluation.attend import attend_to
from iap.viz.composition import side_by_side
from iap.viz.frames import frames_of

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--images", type=Path, default=Path("docs/images"), help="an image, a folder or a video")
parser.add_argument("--policy", default="zoo:seek", help="a policy file, the folder of a run, or zoo:NAME")
parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the pictures")

if __name__ == "__main__":
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for one in attend_to(iap.load_policy(options.policy), frames_of(options.images)):
        Image.fromarray(side_by_side(one.image, one.attention)).save(options.out / f"{one.name}.png")
        print(one.row)
