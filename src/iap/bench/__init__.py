"""What `iap bench` measures."""
