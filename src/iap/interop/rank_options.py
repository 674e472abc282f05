"""The options of IAP-rank that exported policies support."""

from iap.attention import ReLU
from iap.policies import Rank


def refuse_rank_options(encoder: Rank, form: str) -> None:
    """Raise an error that names the option that has no counterpart in this form, such as "C code"."""
    supported = {
        "kernel": isinstance(encoder.kernel, ReLU),
        "select": encoder.select == "top",
        "keys_every": encoder.keys_every == 1,
        "normalise_rows": not encoder.normalise_rows,
        "pixel_offset": encoder.pixel_offset == 0,
        "pixel_scale": encoder.pixel_scale == 1,
    }
    for option, is_supported in supported.items():
        if not is_supported:
            raise ValueError(f"encoder 'rank' has no {form} for {option}={getattr(encoder, option)!r}")
