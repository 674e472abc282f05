"""The measurements of `iap bench` and `iap fidelity`, for users to run on their own computer."""
