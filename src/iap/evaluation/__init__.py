"""Evaluation of trained policies: returns, ablations, attention statistics, probes."""
