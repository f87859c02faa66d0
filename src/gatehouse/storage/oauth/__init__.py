"""Clients, grants, consents and device requests."""
