"""The options of IAP-rank that exported policies support."""

from iap.policies import Rank


def refuse_rank_options(encoder: Rank, form: str) -> None:
    """Raise an error that names the option that has no counterpart in this form, such as "C code"."""
    supported = {
        "select": encoder.select == "top",
        "keys_every": encoder.keys_every == 1,
    }
    for option, is_supported in supported.items():
        if not is_supported:
            raise ValueError(f"encoder 'rank' has no {form} for {option}={getattr(encoder, option)!r}")
