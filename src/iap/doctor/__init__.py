"""The checks of `iap doctor`: does each part of the installation work on this computer?"""
