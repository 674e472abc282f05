"""An ONNX file in onnxruntime, with the methods of a policy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from iap._extras import explain_missing
from iap.interop.onnx.signature import NEXT, STATE, holds, observation_tensors, state_tensors
from iap.policies import Attention, PolicyConfig, from_json

Arrays = dict[str, np.ndarray]


class OnnxPolicy:
    """A policy that acts through onnxruntime on one thread: `reset`, `needs_image` and `act` as `Policy` has them.

    Its state is a dict of the graph's state inputs.
    """

    def __init__(self, model: str | Path | bytes) -> None:
        """Load a model.

        Args:
            model: an ONNX file that `iap export` wrote, or its content.
        """
        with explain_missing("running an ONNX file"):
            import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        content = model if isinstance(model, bytes) else str(model)
        self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        import json

        metadata = self.session.get_modelmeta().custom_metadata_map
        if "config" not in metadata:
            raise ValueError("the ONNX file was not written by iap: its metadata has no config")
        self.config: PolicyConfig = from_json(json.loads(metadata["config"]))
        types = {value.name: value.type for value in self.session.get_inputs()}
        self.image_type = "uint8" if types.get("image") == "tensor(uint8)" else "float32"
        self.inputs_size = self.config.inputs_size
        self._observed = observation_tensors(self.config, self.image_type)
        self._state = state_tensors(self.config, self.image_type)
        self._holds = holds(self.config)
        self._outputs = [value.name for value in self.session.get_outputs()]
        self._window = self.config.encoder.window(self.config.input_shape)

    def reset(self, seed: int = 0) -> Arrays:
        """The state at the start of an episode; the seed is not used."""
        return {f"{STATE}{name}": np.zeros(tensor.shape, tensor.dtype) for name, tensor in self._state.items()}

    def needs_image(self, state: Arrays) -> bool:
        """Whether the next step encodes an image."""
        return self.config.encoder.uses_image and not (self._holds and state[f"{STATE}hold_steps"] > 0)

    def act(self, state: Arrays, observation: Mapping[str, Any]) -> tuple[np.ndarray, Arrays, Attention | None]:
        """The action in [−1, 1], the next state, and the attention (None if no image was encoded)."""
        encodes = self.needs_image(state)
        given = {
            name: np.zeros(tensor.shape, tensor.dtype)
            if name == "image" and not encodes
            else np.asarray(observation[name], tensor.dtype)
            for name, tensor in self._observed.items()
        }
        results: dict[str, Any] = dict(zip(self._outputs, self.session.run(None, {**given, **state}), strict=True))
        after = {f"{STATE}{name}": results[f"{NEXT}{name}"] for name in self._state}
        if not encodes or self._window is None:
            return results["action"], after, None
        selected = np.unique(results["selected"]) if "selected" in results else np.empty(0, np.int64)
        scores = results["scores"]
        order = np.argsort(-scores[selected], kind="stable")
        return results["action"], after, Attention(scores, selected[order], *self._window)
