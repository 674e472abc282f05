"""DAgger: imitation of a teacher on the states that the student reaches, end to end or through time."""
