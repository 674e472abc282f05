"""Pictures: overlays and plots."""
