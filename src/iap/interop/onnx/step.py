"""One step of a policy as an ONNX graph: preprocessing, encoder, frames, normaliser, hierarchy, symmetry."""

import math
from typing import Any

import numpy as np

from iap.interop.emitters import ONNX_CONTROLLERS, ONNX_ENCODERS, controller_emitter, encoder_emitter
from iap.interop.onnx.encoders import Encoded
from iap.interop.onnx.graph import Graph
from iap.interop.onnx.preprocessing import add_preprocessing
from iap.interop.onnx.signature import STATE, holds, sides_of, state_tensors
from iap.policies import Normaliser, Policy
from iap.policies.params import Part
from iap.policies.symmetry import SignedPermutation

FLOAT, INT64 = 1, 7  # of onnx.TensorProto
Values = dict[str, str]  # what a value is → its name in the graph


class Step:
    """Adds one step of a policy to a graph; `outputs` are its results by name, `state` the next state."""

    def __init__(self, graph: Graph, policy: Policy, image_type: str) -> None:
        self.graph, self.policy, self.config = graph, policy, policy.config
        self.is_bytes = image_type == "uint8"
        self.sides = sides_of(policy.config)
        self.before: Values = {name: f"{STATE}{name}" for name in state_tensors(policy.config, image_type)}
        self.state: Values = dict(self.before)
        self.outputs: Values = {}

    def add(self) -> None:
        """The whole step."""
        graph, config = self.graph, self.config
        encoded = None
        if holds(config):
            encoded = graph.op("Equal", self.before["hold_steps"], 0)
        parts = [] if not config.features_size else [self._features(encoded)]
        if config.sensors:
            parts.append(self._sensors())
        normal = self._normalise(graph.concat(*parts, axis=1))
        action = self._decide(normal, encoded)
        self.outputs["action"] = self._merge_actions(action)

    def _features(self, encoded: str | None) -> str:
        """The features of this step: of the image, or as they were if none is encoded."""
        values = self._encode() if encoded is None else self._encode_if(encoded)
        self.state.update({name: value for name, value in values.items() if name in self.state})
        self.outputs |= {name: values[name] for name in ("scores", "selected") if name in values}
        return values["features"]

    def _encode_if(self, encoded: str) -> Values:
        """`_encode` in a branch that runs only at steps with an image."""
        from onnx import helper

        graph = self.graph
        with graph.branch() as then_nodes:
            values = self._encode()
        with graph.branch() as else_nodes:
            kept = {name: graph.op("Identity", self.before[name]) for name in values if name in self.before}
            for name in set(values) - set(kept):
                kept[name] = graph.op("Mul", graph.op("ConstantOfShape", np.array(self._shape(name))), 0.0)
                if name == "selected":
                    kept[name] = graph.op("Cast", kept[name], to=INT64)
        branches = {}
        for branch, nodes, names in (("then_branch", then_nodes, values), ("else_branch", else_nodes, kept)):
            infos = [helper.make_empty_tensor_value_info(names[name]) for name in values]
            branches[branch] = helper.make_graph(nodes, branch, [], infos)
        results = graph.op("If", encoded, outputs=len(values), **branches)
        return dict(zip(values, [results] if len(values) == 1 else results, strict=True))

    def _shape(self, name: str) -> tuple[int, ...]:
        """The shape of an output that is zeros at steps without an image."""
        window = self.config.encoder.window(self.config.input_shape)
        assert window is not None
        top_k = getattr(self.config.encoder, "top_k", 0) * getattr(self.config.encoder, "heads", 1)
        return (window.grid.patches,) if name == "scores" else (self.sides * top_k,)

    def _encode(self) -> Values:
        """Features of all frames, scores, selected patches, and the state that belongs to images."""
        graph, config, op = self.graph, self.config, self.graph.op
        after: Values = {}
        is_first = op("Equal", self.before["frames"], 0) if "frames" in self.before else ""
        kept = {}
        for name in ("previous", "first"):
            if f"{name}_image" in self.before:
                image = graph.either(is_first, "image", self.before[f"{name}_image"])
                kept[name] = self._to_planes(image)
                after[f"{name}_image"] = op("Identity", "image") if name == "previous" else image
        shown = add_preprocessing(graph, config, self._to_planes("image"), kept, is_bytes=self.is_bytes)
        if self.is_bytes:
            shown = op("Sub", op("Div", shown, 255.0), 0.5)
        if self.sides == 2:  # noqa: PLR2004
            backwards = np.arange(config.image_shape[1])[::-1]
            shown = graph.concat(shown, op("Gather", shown, backwards, axis=3), axis=0)
        emit = encoder_emitter(ONNX_ENCODERS, config.encoder, "ONNX")
        encoded: Encoded = emit(graph, config.encoder, self.policy.params["encoder"], shown, config.input_shape)
        after |= self._frames(encoded.features, is_first)
        return after | self._attention(encoded)

    def _to_planes(self, image: str) -> str:
        """(H, W, C) → (1, C, H, W) float32."""
        graph = self.graph
        return graph.unsqueeze(graph.transpose(graph.op("Cast", image, to=FLOAT), 2, 0, 1), 0)

    def _frames(self, encoding: str, is_first: str) -> Values:
        """As `combine_frames`: newest features, differences to earlier ones, or the first frame's."""
        graph, config, op, before = self.graph, self.config, self.graph.op, self.before
        after: Values = {}
        if "frames" in before:
            after["frames"] = op("Add", before["frames"], 1)
        newest, first = encoding, ""
        if "first" in before:
            first = after["first"] = graph.either(is_first, encoding, before["first"])
        if config.relative_to_first_frame:
            newest = op("Sub", encoding, first)
        parts = [newest]
        if config.first_frame_features:
            parts.append(first)
        if "previous" in before:
            earlier = before["previous"]
            then = op("Sub", earlier, graph.unsqueeze(first, 1)) if config.relative_to_first_frame else earlier
            differences = op("Sub", graph.unsqueeze(newest, 1), then)
            is_known = op("Less", np.arange(config.frames - 1)[None, :, None], before["frames"])
            differences = graph.either(is_known, differences, 0.0)
            parts.append(graph.reshape(differences, self.sides, -1))
            shifted = graph.slice(earlier, 0, config.frames - 2, 1)
            after["previous"] = graph.concat(graph.unsqueeze(encoding, 1), shifted, axis=1)
        return after | {"features": graph.concat(*parts, axis=1)}

    def _attention(self, encoded: Encoded) -> Values:
        """The scores, with largest magnitude 1 on each side, and the selected patches, in the image's coordinates."""
        graph, op = self.graph, self.graph.op
        if encoded.scores is None:
            return {}
        window = self.config.encoder.window(self.config.input_shape)
        assert window is not None
        largest = graph.reduce("Max", op("Abs", encoded.scores), 1)
        scores = op("Div", encoded.scores, graph.either(op("Greater", largest, 0.0), largest, 1.0))
        patches, columns = window.grid.patches, window.grid.columns
        values = {"scores": graph.reshape(graph.slice(scores, 0, 1, 0), patches)}
        index = np.arange(patches)
        mirrored = index + columns - 1 - 2 * (index % columns)
        if self.sides == 2:  # noqa: PLR2004
            other = op("Gather", graph.reshape(graph.slice(scores, 1, 2, 0), patches), mirrored, axis=0)
            values["scores"] = op("Add", values["scores"], other)
        if encoded.selected is not None:
            selected = encoded.selected
            if self.sides == 2:  # noqa: PLR2004
                selected = graph.concat(
                    graph.slice(selected, 0, 1, 0), op("Gather", mirrored, graph.slice(selected, 1, 2, 0)), axis=0
                )
            values["selected"] = graph.reshape(selected, -1)
        return values

    def _sensors(self) -> str:
        """The sensors, and those of the mirror image: (sides, n)."""
        graph, op = self.graph, self.graph.op
        if self.config.symmetry is None:
            return graph.unsqueeze("sensors", 0)
        reflection = SignedPermutation(self.config.symmetry.sensors, self.config.symmetry.offsets)
        permuted = op("Gather", "sensors", reflection.places, axis=0)
        mirrored = op("Add", op("Mul", permuted, reflection.signs), reflection.offsets)
        return graph.concat(graph.unsqueeze("sensors", 0), graph.unsqueeze(mirrored, 0), axis=0)

    def _normalise(self, inputs: str) -> str:
        config, op = self.config, self.graph.op
        normaliser: Normaliser = self.policy.normaliser
        mean, scale, clip = normaliser.coefficients
        if not config.normalise or not math.isfinite(clip):
            return inputs
        rest = mean - mean.astype(np.float32)
        centred = op("Sub", op("Sub", inputs, mean[None]), rest[None])
        return op("Clip", op("Mul", centred, scale[None]), np.float32(-clip), np.float32(clip))

    def _control(self, level: Part, controller: Any, inputs: str, state: str, encoded: str | None) -> str:
        """A controller; its state stays at steps at which it does not act."""
        graph = self.graph
        emit = controller_emitter(ONNX_CONTROLLERS, controller, "ONNX")
        params = self.policy.params[level]
        outputs, after = emit(graph, controller, params, inputs, self.before.get(state))
        if state in self.before:
            self.state[state] = after if encoded is None else graph.either(encoded, after, self.before[state])
        return outputs

    def _decide(self, normal: str, encoded: str | None) -> str:
        graph, config, op = self.graph, self.config, self.graph.op
        hierarchy = config.hierarchy
        if hierarchy is None:
            if encoded is not None:
                hold = graph.either(encoded, graph.constant(config.image_every), self.before["hold_steps"])
                self.state["hold_steps"] = op("Sub", hold, 1)
            return self._control("controller", config.controller, normal, "hidden", None)
        high_inputs = graph.slice(normal, 0, config.controller_inputs_size, 1)
        outputs = self._control("controller", config.controller, high_inputs, "hidden", encoded)
        size = hierarchy.latent_size
        latent = graph.slice(outputs, 0, size, 1)
        if encoded is not None:
            latent = self.state["latent"] = graph.either(encoded, latent, self.before["latent"])
            share = op("Mul", op("Add", graph.slice(outputs, size, size + 1, 1), 1.0), 0.5)
            steps = op("Round", op("Mul", share, float(hierarchy.max_command_steps - 1)))
            total = graph.reduce("Sum", op("Cast", steps, to=INT64), 0, keep=False)
            chosen = op("Add", op("Div", graph.reshape(total), self.sides), 1)  # the mean of both sides, rounded down
            hold = graph.either(encoded, chosen, self.before["hold_steps"])
            self.state["hold_steps"] = op("Sub", hold, 1)
        low_inputs = latent
        if config.sensors:
            low_inputs = graph.concat(latent, graph.slice(normal, config.features_size, config.inputs_size, 1), axis=1)
        return self._control("low_level", hierarchy.low_level, low_inputs, "low_hidden", None)

    def _merge_actions(self, action: str) -> str:
        """The mean of the action and of the reflected action of the mirror image."""
        graph, op, count = self.graph, self.graph.op, self.config.actions
        first = graph.reshape(graph.slice(action, 0, 1, 0), count)
        if self.config.symmetry is None:
            return first
        reflection = SignedPermutation(self.config.symmetry.actions)
        second = op("Gather", graph.reshape(graph.slice(action, 1, 2, 0), count), reflection.places, axis=0)
        return op("Mul", op("Add", first, op("Mul", second, reflection.signs)), 0.5)
