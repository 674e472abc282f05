"""What can be run: benchmarks and comparisons, each returning rows."""
