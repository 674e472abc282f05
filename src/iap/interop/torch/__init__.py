"""Encoders and policies as PyTorch modules: batched, differentiable, from a policy file and back."""

from iap._extras import explain_missing

with explain_missing("iap.interop.torch"):
    from iap.interop.torch.encoder import Encoder
    from iap.interop.torch.policy import Policy, State

__all__ = ["Encoder", "Policy", "State"]
