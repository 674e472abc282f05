"""Train PPO of Stable-Baselines3 with attention in place of a CNN, and draw what it attends to.

Run it: python examples/07_stable_baselines3.py --out out
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces
from PIL import Image
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from iap.interop.sb3 import AttentionExtractor
from iap.interop.sb3.overlays import attended, picture
from iap.policies import PooledMoments, Rank

SIDE, EPISODE, DOT = 12, 8, 2
STEPS, SHOWN, GAP = 4096, 4, 12
ENCODER = Rank(patch=3, stride=3, d=4, top_k=3, bias=True, features=PooledMoments(2, True, True))


class FindTheDot(gymnasium.Env):
    """A white dot in the upper half of a noisy image: is it left or right? 1 for the right answer, eight images."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, *, as_dict: bool = False, continuous: bool = False) -> None:
        self.render_mode, self.as_dict = "rgb_array", as_dict
        image = spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8)
        self.observation_space = spaces.Dict({"camera": image, "speed": spaces.Box(-1, 1, (2,))}) if as_dict else image
        self.action_space = spaces.Box(-1, 1, (1,)) if continuous else spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Start an episode."""
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {}

    def step(self, action):
        """Reward the answer and show the next image."""
        reward = float((float(np.ravel(action)[0]) > 0) == self.is_right)
        self.steps += 1
        return self._observe(), reward, False, self.steps == EPISODE, {}

    def render(self):
        """The image as RGB."""
        return np.repeat(self.image, 3, axis=2)

    def _observe(self):
        self.is_right = bool(self.np_random.integers(2))
        self.image = self.np_random.integers(0, 80, (SIDE, SIDE, 1)).astype(np.uint8)
        row, column = self.np_random.integers(0, SIDE // 2 - DOT + 1, 2)
        column += SIDE // 2 * self.is_right
        self.image[row : row + DOT, column : column + DOT] = 255
        return {"camera": self.image, "speed": np.zeros(2, np.float32)} if self.as_dict else self.image


def main() -> None:
    """Train, evaluate and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of training")
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    arguments = parser.parse_args()
    policy_kwargs = {
        "features_extractor_class": AttentionExtractor,
        "features_extractor_kwargs": {"encoder": ENCODER},
        "net_arch": [16],
    }
    env = FindTheDot()
    options = {"n_steps": 256, "learning_rate": 0.01, "gamma": 0, "seed": arguments.seed, "device": "cpu"}
    model = PPO("CnnPolicy", env, policy_kwargs=policy_kwargs, **options)
    model.learn(arguments.steps)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=20, warn=False)
    print(f"mean return {mean:.2f} of {EPISODE}; guessing gives {EPISODE / 2:.0f}")
    rows = []
    for seed in range(SHOWN):
        observation, _ = env.reset(seed=seed)
        [(image, attention)] = attended(model, observation).values()
        rows.append(picture(image, attention))
    gap = np.full((rows[0].shape[0], GAP, 3), 255, np.uint8)
    row = np.concatenate([part for shown in rows for part in (shown, gap)][:-1], axis=1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    Image.fromarray(row).save(arguments.out / "sb3-attention.png")
    print(f"wrote {arguments.out / 'sb3-attention.png'}")


if __name__ == "__main__":
    main()
