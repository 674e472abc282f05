"""How configs are written in files: as JSON, with versions that are upgraded."""
