"""The attention mathematics compiled for one CPU core: image → scores."""
