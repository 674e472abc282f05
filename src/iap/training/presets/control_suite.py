"""What the presets of the Distracting Control Suite share: pixels only; static backgrounds, cameras and colours."""

from typing import Any

from iap.attention.positions import Positions
from iap.policies import Hierarchy, PolicyConfig, PooledMoments, Rank
from iap.training.config import SigmaMultipliers

ALL_BACKGROUNDS = 0.21  # a difficulty slightly above medium (0.2), which has only eight backgrounds to train on

# With a pretrained encoder only the low level is trained, with the normaliser of the pretraining.
PRETRAINED: dict[str, Any] = {
    "sigma_multipliers": SigmaMultipliers(encoder=0, controller=0, low_level=1),
    "freeze_normaliser": True,
    "evaluate_every": 10,
    "evaluate_episodes": 12,
}


def pooling_encoder(patch: int, top_k: int, heads: int, score_weighted: bool = True) -> Rank:
    """IAP-rank whose heads pool the parts of the robot by colour and position.

    About as many patches are selected as the robot covers: with fewer the heads cover one spot of it, with more the
    background. Keys have no positions, which differ with the camera from episode to episode.
    """
    return Rank(
        patch=patch,
        stride=patch,
        top_k=top_k,
        d=4,
        bias=True,
        positions=Positions("none"),
        features=PooledMoments(heads, position_weighted=True, score_weighted=score_weighted),
    )


def limb_policy(
    actions: int, top_k: int, latent_size: int, command_gain: float, *, relative_to_first_frame: bool = False
) -> PolicyConfig:
    """A policy on local contrast, coarse and fine, in colour, whose encoder can be pretrained."""
    return PolicyConfig(
        (100, 100, 3),
        sensors=0,
        actions=actions,
        encoder=pooling_encoder(patch=2, top_k=top_k, heads=4),
        frames=2,
        preprocessing=("local_contrast_fine", "local_contrast_coarse"),
        relative_to_first_frame=relative_to_first_frame,
        hierarchy=Hierarchy(latent_size, max_command_steps=1, high_level_sensors=False, command_gain=command_gain),
    )
