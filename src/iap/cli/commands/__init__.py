"""The commands in folders by purpose, one file each. `iap.cli` registers them."""
