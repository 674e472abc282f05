"""Pretraining of a policy from privileged information."""
