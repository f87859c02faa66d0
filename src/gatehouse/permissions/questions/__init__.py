"""Queries about who may do what and why, decided by the same evaluation as requests."""
