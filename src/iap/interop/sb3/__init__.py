"""Stable-Baselines3: an attention extractor for its agents, pictures of what they attend to, and our policies in it."""

from iap._extras import explain_missing

with explain_missing("iap.interop.sb3"):
    from iap.interop.sb3.extractor import AttentionExtractor
    from iap.interop.sb3.film import film_agent
    from iap.interop.sb3.overlays import AttentionCallback
    from iap.interop.sb3.predictor import Predictor

__all__ = ["AttentionCallback", "AttentionExtractor", "Predictor", "film_agent"]
