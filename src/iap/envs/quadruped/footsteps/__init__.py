"""A Laikago that chooses its footholds on step-stones, grids and stairs."""
