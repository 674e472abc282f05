"""`iap export --format onnx`: a policy as one ONNX file; its state is an input and an output."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from iap._extras import explain_missing
from iap._files import write_whole
from iap.interop.image_formats import require_exported_format
from iap.interop.onnx.graph import IR_VERSION, OPSET, Graph
from iap.interop.onnx.signature import NEXT, STATE, Tensor, observation_tensors, state_tensors
from iap.interop.onnx.step import Step
from iap.interop.recording import image_type_of
from iap.policies import Policy, to_json


def policy_to_onnx(policy: Policy, name: str = "policy", image_type: str = "uint8") -> Any:
    """The policy as an ONNX ModelProto.

    Inputs are "image" (H, W, C), "sensors" (n,) and the fields of the state, "state_…", which are zeros at the start of
    an episode; outputs are "action" (k,) in [−1, 1], "scores" (L,), "selected" (l,), and the next state, "next_…".
    At steps at which state_hold_steps is not 0 the image is not used, and scores and selected are zeros.

    Args:
        policy: the policy.
        name: of the graph.
        image_type: of the images that it receives, "uint8" or "float32".
    """
    with explain_missing("export to ONNX"):
        from onnx import checker, helper

    if image_type not in ("uint8", "float32"):
        raise ValueError(f"image_type must be uint8 or float32, not {image_type!r}")
    graph, config = Graph(), policy.config
    require_exported_format(config, "ONNX graph")
    step = Step(graph, policy, image_type)
    step.add()
    state = state_tensors(config, image_type)
    inputs = observation_tensors(config, image_type) | {f"{STATE}{field}": tensor for field, tensor in state.items()}
    outputs = {}
    for output, value in step.outputs.items():
        graph.name_output(value, output)
        size = config.actions if output == "action" else None
        outputs[output] = (np.dtype(np.int64 if output == "selected" else np.float32), [size])
    for field, tensor in state.items():
        graph.name_output(step.state[field], f"{NEXT}{field}")
        outputs[f"{NEXT}{field}"] = (tensor.dtype, list(tensor.shape))
    body = helper.make_graph(
        graph.nodes(),
        name,
        [_info(key, tensor) for key, tensor in inputs.items()],
        [_info(key, Tensor(dtype, shape)) for key, (dtype, shape) in outputs.items()],
        list(graph.constants.values()),
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="iap")
    model.ir_version = IR_VERSION
    helper.set_model_props(model, _metadata(policy))
    checker.check_model(model, full_check=True)
    return model


def export_onnx(policy: Policy, path: Path, *, image_type: str | None = None) -> Path:
    """Write a policy as an ONNX file.

    Args:
        policy: the policy.
        path: the file.
        image_type: of the images, "uint8" or "float32"; by default what the policy's environment gives.
    """
    chosen = image_type_of(policy) if image_type is None else image_type
    write_whole(path, policy_to_onnx(policy, path.stem, chosen).SerializeToString())
    return path


def _info(name: str, tensor: Any) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(tensor.dtype), tensor.shape)


def _metadata(policy: Policy) -> dict[str, str]:
    import iap

    env = {} if policy.env is None else {"env": policy.env.id, "env_kwargs": json.dumps(dict(policy.env.kwargs))}
    return {
        "iap_version": iap.__version__,
        "action_range": "[-1, 1]",
        "parameters": str(len(policy.theta)),
        "config": json.dumps(to_json(policy.config)),
        **env,
    }
