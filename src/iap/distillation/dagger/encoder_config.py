"""The config of an encoder's pretraining on a teacher's actions, its state, and keypoints in the image."""

from dataclasses import dataclass

from iap._validation import require_count, require_number, require_positive
from iap.policies import PolicyConfig


@dataclass(frozen=True)
class EncoderPretraining:
    """Pretraining of an encoder by supervision, before the controller's. Needs PyTorch.

    The encoder's features are trained to give the teacher's action and the state that it acted on, through layers that
    are thrown away. Each keypoint supervises the map of a head for the current frame, and of another for the last one.

    Attributes:
        samples: labelled images, at least.
        samples_per_episode: of each episode, which has one background, camera and colours.
        episode_steps: length of the episodes.
        random_share: of the episodes that start in a random state.
        visual_seeds: number of visual seeds (background, camera, colours) that the episodes share; None for one of its
            own for each episode.
        noise: standard deviations of the noise on the teacher's actions; each episode draws one of them.
        keypoints: names of points in the image; the encoder needs two heads for each.
        updates: steps of gradient descent.
        batch: images of an update.
        learning_rate: the largest.
        weight_decay: of AdamW.
        hidden: units between the features and the estimated action.
        state_weight: of the loss of the state.
        keypoint_weight: of the loss of the keypoints.
    """

    samples: int = 24_000
    samples_per_episode: int = 40
    episode_steps: int = 120
    random_share: float = 0.5
    visual_seeds: int | None = None
    noise: tuple[float, ...] = (0.0, 0.25, 0.5)
    keypoints: tuple[str, ...] = ()
    updates: int = 12_000
    batch: int = 32
    learning_rate: float = 3e-3
    weight_decay: float = 1e-4
    hidden: int = 64
    state_weight: float = 0.3
    keypoint_weight: float = 0.1

    def __post_init__(self) -> None:
        for name in ("samples", "samples_per_episode", "episode_steps", "updates", "batch", "hidden"):
            require_count(f"pretraining.encoder.{name}", getattr(self, name))
        require_count(
            "pretraining.encoder.samples_per_episode",
            self.samples_per_episode,
            most=self.episode_steps,
            why=" (episode_steps)",
        )
        require_number("pretraining.encoder.random_share", self.random_share, 0, 1)
        if self.visual_seeds is not None:
            require_count("pretraining.encoder.visual_seeds", self.visual_seeds)
        require_positive("pretraining.encoder.learning_rate", self.learning_rate)
        for name in ("weight_decay", "state_weight", "keypoint_weight"):
            require_number(f"pretraining.encoder.{name}", getattr(self, name), 0, 100)

    def check(self, policy: PolicyConfig) -> None:
        """Refuse a policy whose encoder cannot be trained this way."""
        heads = getattr(policy.encoder, "heads", 0)
        if self.keypoints and heads < 2 * len(self.keypoints):
            raise ValueError(
                f"encoder.heads must be at least {2 * len(self.keypoints)}, two for each keypoint of "
                f"pretraining.encoder.keypoints, not {heads}"
            )
