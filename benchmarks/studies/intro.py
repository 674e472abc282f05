"""The paper's first figure: cheetah-run at 100 × 100, 625 patches of which 5 are kept, by each kind of attention."""

from iap.attention import Kernel, ReLU, Softmax
from iap.attention.positions import Positions
from iap.evolution import SNES
from iap.training.config import SigmaMultipliers, TrainConfig
from iap.policies import MLP, AttentionAgent, PolicyConfig, Rank, Encoder
from iap.rollouts import EnvConfig

PATCH, KEEP, FEATURES = 4, 5, 15
SEEDS = range(5)


def seen_by(encoder: Encoder) -> TrainConfig:
    """Training that differs in the attention alone."""
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
    """IAP-rank that gives what AttentionAgent's encoder gives: the centres of the patches kept, best first."""
    return Rank(
        patch=PATCH,
        stride=PATCH,
        top_k=KEEP,
        kernel=kernel,
        bias=True,
        values=("centres",),
        order="score",
        positions=Positions("none"),
    )


ARMS = {
    "exact": seen_by(AttentionAgent(patch=PATCH, stride=PATCH, top_k=KEEP)),
    "relu": seen_by(rank(ReLU())),
    "softmax": seen_by(rank(Softmax("positive", FEATURES))),
    "trigonometric": seen_by(rank(Softmax("trigonometric", FEATURES))),
}
