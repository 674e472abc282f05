"""Policies as C99: a header and a source file without dependencies but libm."""

from iap.interop.c.export import export_c
from iap.interop.c.files import CFiles, policy_to_c
from iap.interop.emitters import C_CONTROLLERS, C_ENCODERS

__all__ = ["C_CONTROLLERS", "C_ENCODERS", "CFiles", "export_c", "policy_to_c"]
