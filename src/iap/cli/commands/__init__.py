"""The commands of `iap`, one file each."""
