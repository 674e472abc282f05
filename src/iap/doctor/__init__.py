"""What `iap doctor` checks."""
