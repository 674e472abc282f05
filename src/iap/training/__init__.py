"""Training: config, presets, the loop, checkpoints, the run directory."""
