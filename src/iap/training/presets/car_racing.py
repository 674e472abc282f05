"""`car-racing`: Gymnasium's CarRacing with linear attention and an LSTM, the task of AttentionAgent."""

from iap.attention import Softmax
from iap.envs.core import EnvConfig
from iap.evolution import OpenES
from iap.policies import LSTM, PolicyConfig, Rank
from iap.training.config import TrainConfig

CAR_RACING = TrainConfig(
    env=EnvConfig.of("CarRacing-v3"),
    policy=PolicyConfig(
        image_shape=(96, 96, 3),
        sensors=0,
        actions=3,
        encoder=Rank(patch=4, stride=4, top_k=10, kernel=Softmax("positive")),
        controller=LSTM(16),
    ),
    strategy=OpenES(population=64, sigma=0.1),
    iterations=200,
    episodes=1,
    evaluate_episodes=8,
)
