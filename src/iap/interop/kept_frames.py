"""Which earlier frames a policy's preprocessing needs."""

from iap.policies.config import PolicyConfig

# The frame that is kept → the kinds of channels that are differences to it.
KINDS = {
    "first": ("first_frame_difference",),
    "previous": ("frame_difference", "signed_frame_difference"),
}


def kept_frames(config: PolicyConfig) -> list[str]:
    """The frames that are kept: "first", "previous", both or none."""
    if not config.encoder.uses_image:
        return []
    return [frame for frame, kinds in KINDS.items() if set(kinds) & set(config.preprocessing)]


def frame_of(kind: str) -> str | None:
    """The frame that a kind of channels is a difference to."""
    return next((frame for frame, kinds in KINDS.items() if kind in kinds), None)
