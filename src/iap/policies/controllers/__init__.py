"""Controllers: features and sensors → action. Each is one file; one line here registers it."""

from iap._registry import Registry
from iap.policies.controllers.base import Controller, control
from iap.policies.controllers.feedforward import MLP, Linear
from iap.policies.controllers.gru import GRU
from iap.policies.controllers.lstm import LSTM
from iap.policies.controllers.quadratic import Quadratic

CONTROLLERS: Registry[type[Controller]] = Registry("controller", group="iap.controllers")
CONTROLLERS.register("linear", Linear)
CONTROLLERS.register("mlp", MLP)
CONTROLLERS.register("lstm", LSTM)
CONTROLLERS.register("gru", GRU)
CONTROLLERS.register("quadratic", Quadratic)

__all__ = ["CONTROLLERS", "GRU", "LSTM", "MLP", "Controller", "Linear", "Quadratic", "control"]
