"""Arrays of any library, arrays with a separate scale against overflow, and checks of array arguments."""

import sys
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array

from iap._validation import require_count

__all__ = [
    "Array",
    "Scaled",
    "is_concrete",
    "is_known_false",
    "like",
    "namespace",
    "require_count",
    "require_finite",
    "require_floats",
    "require_same_dtype",
]

Array = Any  # a NumPy, JAX or PyTorch array; annotations give the shapes


class Scaled(NamedTuple):
    """The array `values · exp(log_scale)`, in two parts so that nothing overflows.

    The two broadcast against each other: there is one scale for the array, for each row or for each entry.
    """

    values: Array
    log_scale: Array

    def true(self) -> Array:
        """The product, which may overflow."""
        return self.values * namespace(log_scale=self.log_scale).exp(self.log_scale)


def namespace(**arrays: Array) -> Any:
    """The array API of the library that all of `arrays` belong to. This imports neither JAX nor PyTorch."""
    for name, x in arrays.items():
        if not is_array_api_obj(x):
            raise TypeError(f"{name} must be a NumPy, JAX or PyTorch array, not {type(x).__name__}")
    try:
        return array_namespace(*arrays.values())
    except TypeError:
        kinds = ", ".join(f"{name}: {type(x).__module__.split('.')[0]}" for name, x in arrays.items())
        raise TypeError(f"arrays of different libraries cannot be mixed ({kinds})") from None


def like(constant: np.ndarray, x: Array) -> Array:
    """A NumPy constant as an array of x's library, dtype and device."""
    if isinstance(x, np.ndarray):
        return constant.astype(x.dtype, copy=False)
    where = {"device": x.device} if is_torch_array(x) else {}
    return namespace(x=x).asarray(np.array(constant), dtype=x.dtype, **where)


def require_floats(name: str, x: Array, rank: int | None = None, least_rank: int | None = None) -> Array:
    """`x`, if it is a float32 or float64 array with the required number of axes."""
    xp = namespace(**{name: x})
    if x.dtype not in (xp.float32, xp.float64):
        raise TypeError(f"{name} must be float32 (or float64), not {x.dtype}")
    if rank is not None and x.ndim != rank:
        raise ValueError(f"{name} must have {rank} axes, not shape {tuple(x.shape)}")
    if least_rank is not None and x.ndim < least_rank:
        raise ValueError(f"{name} must have at least {least_rank} axes, not shape {tuple(x.shape)}")
    return x


def require_same_dtype(**arrays: Array) -> None:
    """Refuse arrays of different dtypes, whose result would silently be float64."""
    if len({str(x.dtype) for x in arrays.values()}) > 1:
        kinds = ", ".join(f"{name} {x.dtype}" for name, x in arrays.items())
        raise TypeError(f"arrays must share one dtype: {kinds}")


def require_finite(name: str, x: Array) -> Array:
    """`x`, if it holds no NaN or infinity. Values that are being traced are unknown and pass."""
    if is_known_false(namespace(**{name: x}).isfinite(x).all()):
        raise ValueError(f"{name} must be finite, but holds NaN or infinity")
    return x


def is_known_false(condition: Array) -> bool:
    """Whether `condition` is known and False. While JAX traces, even results of known arrays are unknown."""
    return is_concrete(condition) and not bool(condition)


def is_concrete(x: Array) -> bool:
    """Whether the values of `x` are known: not while JAX or torch.func traces it."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(x, jax.core.Tracer):
        return False
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return not torch._C._functorch.is_functorch_wrapped_tensor(x)
    return True
