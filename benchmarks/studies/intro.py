"""The paper's first figure: cheetah-run at 100 × 100, the 5 best of 625 patches, four kinds of attention."""

from iap.attention import Kernel, Positions, ReLU, Softmax
from iap.envs.core import EnvConfig
from iap.evolution import SNES
from iap.policies import MLP, AttentionAgent, Encoder, PolicyConfig, Rank, SelectedPatches
from iap.training.config import SigmaMultipliers, TrainConfig

PATCH, TOP_K, PROJECTIONS = 4, 5, 15
SEEDS = range(5)


def config_with(encoder: Encoder) -> TrainConfig:
    """One training configuration for all arms; only the encoder differs."""
    return TrainConfig(
        env=EnvConfig.of("iap/cheetah-run-v0"),
        policy=PolicyConfig((100, 100, 3), 0, 6, encoder, MLP((16,)), frames=2),
        strategy=SNES(population=8, sigma=0.1),
        sigma_multipliers=SigmaMultipliers(encoder=0.5),
        max_steps=125,  # half an episode
        iterations=100,
        episodes=1,
        evaluate_every=25,
        evaluate_episodes=8,
    )


def rank(kernel: Kernel) -> Rank:
    """IAP-rank with the output of AttentionAgent: the centres of the selected patches, highest score first."""
    return Rank(
        patch=PATCH,
        stride=PATCH,
        top_k=TOP_K,
        kernel=kernel,
        bias=True,
        positions=Positions("none"),
        features=SelectedPatches(values=("centres",), order="score"),
    )


ARMS = {
    "exact": config_with(AttentionAgent(patch=PATCH, stride=PATCH, top_k=TOP_K)),
    "relu": config_with(rank(ReLU())),
    "softmax": config_with(rank(Softmax("positive", PROJECTIONS))),
    "trigonometric": config_with(rank(Softmax("trigonometric", PROJECTIONS))),
}
