"""Conversion of glTF rooms to the folder format of Gibson scenes."""
