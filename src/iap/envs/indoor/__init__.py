"""Indoor navigation in scenes of the Gibson format: a loader, a generator of apartments, and environments."""
