"""Policies as ONNX graphs, built without PyTorch, and run with onnxruntime."""

from iap.interop.emitters import ONNX_CONTROLLERS, ONNX_ENCODERS
from iap.interop.onnx.export import export_onnx, policy_to_onnx
from iap.interop.onnx.runtime import OnnxPolicy

__all__ = ["ONNX_CONTROLLERS", "ONNX_ENCODERS", "OnnxPolicy", "export_onnx", "policy_to_onnx"]
