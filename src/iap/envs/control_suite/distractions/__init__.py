"""The Distracting Control Suite's backgrounds, camera poses and colours."""
