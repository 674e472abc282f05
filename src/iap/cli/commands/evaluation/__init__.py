"""Commands that measure and show what a trained policy does."""
