"""Which function writes a part of a policy in another format; a part without one is refused with a clear error."""

from collections.abc import Callable
from typing import Any

from iap._registry import Registry
from iap.policies import CONTROLLERS, ENCODERS, Controller, Encoder

Emitters = Registry[Callable[..., Any]]

# The name of an encoder or a controller → the function that adds its code to a `Source`. Packages that register a part
# of their own add its emitter through the entry points `iap.c_encoders` and `iap.c_controllers`.
C_ENCODERS: Emitters = Registry("C emitter of an encoder", group="iap.c_encoders")
C_ENCODERS.register("rank", "iap.interop.c.encoders.rank:emit_rank")
C_ENCODERS.register("multi-head-rank", "iap.interop.c.encoders.multi_head_rank:emit_multi_head_rank")
C_ENCODERS.register("residual-rank", "iap.interop.c.encoders.residual_rank:emit_residual_rank")
C_ENCODERS.register("trans", "iap.interop.c.encoders.trans:emit_trans")
C_ENCODERS.register("cnn", "iap.interop.c.encoders.convolutions:emit_cnn")
C_ENCODERS.register("blind", "iap.interop.c.encoders.rank:emit_blind")

C_CONTROLLERS: Emitters = Registry("C emitter of a controller", group="iap.c_controllers")
C_CONTROLLERS.register("linear", "iap.interop.c.controllers:emit_layers")
C_CONTROLLERS.register("mlp", "iap.interop.c.controllers:emit_layers")
C_CONTROLLERS.register("lstm", "iap.interop.c.controllers:emit_lstm")
C_CONTROLLERS.register("gru", "iap.interop.c.controllers:emit_gru")
C_CONTROLLERS.register("quadratic", "iap.interop.c.controllers:emit_quadratic")

# The name of an encoder or a controller → the function that adds its nodes to a `Graph`. Packages that register a part
# of their own add its function through the entry points `iap.onnx_encoders` and `iap.onnx_controllers`.
ONNX_ENCODERS: Emitters = Registry("ONNX emitter of an encoder", group="iap.onnx_encoders")
ONNX_ENCODERS.register("rank", "iap.interop.onnx.encoders:add_rank")
ONNX_ENCODERS.register("multi-head-rank", "iap.interop.onnx.encoders:add_multi_head_rank")
ONNX_ENCODERS.register("residual-rank", "iap.interop.onnx.residual_rank:add_residual_rank")
ONNX_ENCODERS.register("trans", "iap.interop.onnx.encoders:add_trans")
ONNX_ENCODERS.register("cnn", "iap.interop.onnx.encoders:add_cnn")
ONNX_ENCODERS.register("blind", "iap.interop.onnx.encoders:add_blind")

ONNX_CONTROLLERS: Emitters = Registry("ONNX emitter of a controller", group="iap.onnx_controllers")
ONNX_CONTROLLERS.register("linear", "iap.interop.onnx.controllers:add_layers")
ONNX_CONTROLLERS.register("mlp", "iap.interop.onnx.controllers:add_layers")
ONNX_CONTROLLERS.register("lstm", "iap.interop.onnx.controllers:add_lstm")
ONNX_CONTROLLERS.register("gru", "iap.interop.onnx.controllers:add_gru")
ONNX_CONTROLLERS.register("quadratic", "iap.interop.onnx.controllers:add_quadratic")


def encoder_emitter(emitters: Emitters, encoder: Encoder, format_name: str) -> Callable[..., Any]:
    """The function for this encoder."""
    return _emitter(emitters, ENCODERS.name_of(type(encoder)), f"encoder cannot be exported as {format_name}")


def controller_emitter(emitters: Emitters, controller: Controller, format_name: str) -> Callable[..., Any]:
    """The function for this controller."""
    return _emitter(emitters, CONTROLLERS.name_of(type(controller)), f"controller cannot be exported as {format_name}")


def _emitter(emitters: Emitters, name: str, problem: str) -> Callable[..., Any]:
    if name not in emitters:
        raise ValueError(f"{name!r}: this {problem}; those that can: {', '.join(emitters)}")
    return emitters[name]
