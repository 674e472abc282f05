"""Drawing: attention overlays, videos, learning curves and plots. matplotlib is imported when something is drawn."""
